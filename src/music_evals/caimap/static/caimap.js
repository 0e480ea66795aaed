// The player's and the editor's reports, drafts that save themselves, keys, and the terms of lexica.
// What counts is worked out by the server, by its own clock.
"use strict";

const SAVE_EVERY_MS = 5000;

function send(address, csrf, body) {
  const headers = { "content-type": "application/json", "x-csrf": csrf };
  return fetch(address, { method: "POST", headers, body: JSON.stringify(body), keepalive: true });
}

function startPlayer(section) {
  const audio = section.querySelector("audio");
  const position = section.querySelector(".position");
  const rate = section.querySelector(".rate");
  const enforced = section.dataset.enforced === "yes";
  const address = `/task/${section.dataset.task}/events`;
  const form = document.querySelector("form.annotation");
  const saved = section.querySelector(".saved");
  let queue = Promise.resolve();

  function report(kind, value = 0) {
    const at = Math.min(audio.currentTime, Number(section.dataset.duration));
    const body = { events: [{ kind, position_sec: at, value }] };
    queue = queue
      .then(() => send(address, section.dataset.csrf, body))
      .then((answer) => answer.json())
      .then(show)
      .catch(() => undefined); // without a connection nothing is heard; the next beat tries again
    return queue;
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
    if (found.writes) letWrite(true);
  }

  function letWrite(may) {
    form.querySelectorAll("input:not([type=hidden]), textarea").forEach((field) => {
      if (field.type === "radio" || field.type === "checkbox") field.disabled = !may;
      else field.readOnly = !may;
    });
  }

  section.querySelector(".play").addEventListener("click", () => audio.play());
  section.querySelector(".pause").addEventListener("click", () => audio.pause());
  audio.addEventListener("play", () => report("play"));
  audio.addEventListener("pause", () => { if (!audio.ended) report("pause"); });
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
  document.addEventListener("visibilitychange", () => report(document.hidden ? "hidden" : "shown"));
  setInterval(() => { if (!audio.paused) report("beat"); }, 5000);

  if (enforced) {
    letWrite(section.dataset.writes === "yes");
    let wrote = false;
    form.addEventListener("input", (event) => {
      // what a browser lets in although it was kept away, and the first word
      if (["insertFromPaste", "insertFromDrop"].includes(event.inputType)) report("paste");
      if (!wrote) report("write");
      wrote = true;
    });
    for (const kind of ["paste", "copy", "cut", "drop"]) {
      form.addEventListener(kind, (event) => {
        event.preventDefault();
        if (kind !== "paste" && kind !== "drop") return;
        saved.textContent = saved.dataset.blocked;
        report("blocked");
      });
    }
  }
  keepDraft(form, section, saved);
  listenToKeys(form, audio);
}

function keepDraft(form, section, saved) {
  const versions = document.querySelectorAll("input[name=version]");
  const fields = () => Object.fromEntries([...new FormData(form)].filter(([name]) => name !== "csrf" && name !== "version"));
  let kept = JSON.stringify(fields());
  let saving = null;

  async function save() {
    const now = fields();
    if (saving || JSON.stringify(now) === kept) return;
    saving = (async () => {
      try {
        const body = { version: Number(versions[0].value), fields: now };
        const answer = await send(`/task/${section.dataset.task}/draft`, section.dataset.csrf, body);
        const found = await answer.json();
        if (found.error !== undefined) {
          saved.textContent = found.error;
          return;
        }
        kept = JSON.stringify(now);
        versions.forEach((field) => { field.value = found.version; });
        saved.textContent = saved.dataset.saved;
      } catch {
        saved.textContent = saved.dataset.unsaved; // the next turn tries again
      }
    })();
    await saving;
    saving = null;
  }

  const timer = setInterval(save, SAVE_EVERY_MS);
  document.querySelectorAll("form[action^='/task/']").forEach((any) => any.addEventListener("submit", (event) => {
    clearInterval(timer);
    if (saving) { // the version on the page is about to change
      event.preventDefault();
      saving.then(() => any.requestSubmit(event.submitter));
      return;
    }
    kept = JSON.stringify(fields());
  }));
  window.addEventListener("beforeunload", (event) => {
    if (JSON.stringify(fields()) !== kept) event.preventDefault();
  });
}

function listenToKeys(form, audio) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.code === "Space" && audio.paused) audio.play();
    else if (event.ctrlKey && event.code === "Space") audio.pause();
    else if (event.ctrlKey && event.key === "s") form.requestSubmit(form.querySelector("[formaction$='/save']"));
    else if (event.ctrlKey && event.key === "Enter") form.requestSubmit(form.querySelector("button:not([formaction]):not([type])"));
    else if (event.altKey && ["ArrowUp", "ArrowDown"].includes(event.key)) {
      const lines = [...form.querySelectorAll("input[name^='line_']")];
      const row = event.target.closest("tr");
      const at = lines.findIndex((line) => line.closest("tr") === row);
      const next = lines[at + (event.key === "ArrowUp" ? -1 : 1)];
      if (next) next.focus();
    } else return;
    event.preventDefault();
  });
}

document.querySelectorAll(".player").forEach(startPlayer);

document.addEventListener("click", (event) => {
  const button = event.target.closest(".term");
  if (!button) return;
  const field = document.getElementById(button.dataset.field);
  if (field.readOnly) return;
  const kept = field.value.replaceAll(",", "、").split("、").slice(0, -1);
  field.value = [...kept, button.dataset.term].join("、") + "、";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
});
