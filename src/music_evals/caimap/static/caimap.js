// The player's reports and the terms of lexica. What counts is worked out by the server, by its own clock.
"use strict";

function startPlayer(section) {
  const audio = section.querySelector("audio");
  const position = section.querySelector(".position");
  const rate = section.querySelector(".rate");
  const enforced = section.dataset.enforced === "yes";
  const address = `/task/${section.dataset.task}/events`;
  let queue = Promise.resolve();

  function report(kind, value = 0) {
    const at = Math.min(audio.currentTime, Number(section.dataset.duration));
    const body = JSON.stringify({ events: [{ kind, position_sec: at, value }] });
    const headers = { "content-type": "application/json", "x-csrf": section.dataset.csrf };
    queue = queue
      .then(() => fetch(address, { method: "POST", headers, body }))
      .then((answer) => answer.json())
      .then(show)
      .catch(() => undefined); // without a connection nothing is heard; the next beat tries again
  }

  function show(found) {
    if (found.error !== undefined) {
      section.querySelector(".heard").textContent = found.error;
      return;
    }
    section.querySelector(".heard").textContent = `${Math.floor(found.longest_sec)} / ${Math.floor(section.dataset.duration)} s`;
    if (enforced && found.complete) {
      position.disabled = false;
      rate.disabled = false;
    }
  }

  section.querySelector(".play").addEventListener("click", () => audio.play());
  section.querySelector(".pause").addEventListener("click", () => audio.pause());
  audio.addEventListener("play", () => report("play"));
  audio.addEventListener("pause", () => report("pause"));
  audio.addEventListener("ended", () => report("ended"));
  audio.addEventListener("timeupdate", () => { position.value = audio.currentTime; });
  position.addEventListener("change", () => {
    report("seek", Number(position.value));
    audio.currentTime = Number(position.value);
  });
  rate.addEventListener("change", () => {
    audio.playbackRate = Number(rate.value);
    report("rate", Number(rate.value));
  });
  setInterval(() => { if (!audio.paused) report("beat"); }, 5000);
  if (enforced) {
    const form = document.querySelector("form.description");
    for (const kind of ["paste", "copy", "drop"]) {
      form.addEventListener(kind, (event) => {
        event.preventDefault();
      });
    }
  }
}

document.querySelectorAll(".player").forEach(startPlayer);

document.addEventListener("click", (event) => {
  const button = event.target.closest(".term");
  if (!button) return;
  const field = document.getElementById(button.dataset.field);
  const kept = field.value.replaceAll(",", "、").split("、").slice(0, -1);
  field.value = [...kept, button.dataset.term].join("、") + "、";
  field.focus();
});
