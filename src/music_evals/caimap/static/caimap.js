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
  const play = section.querySelector(".play");
  const position = section.querySelector(".position");
  const rate = section.querySelector(".rate");
  const saved = section.querySelector(".saved");
  const wave = section.querySelector(".wave");
  const enforced = section.dataset.enforced === "yes";
  const duration = Number(section.dataset.duration);
  const address = `/task/${section.dataset.task}/events`;
  const form = document.querySelector("form.annotation");
  const line = musicEvals.reports.line((body) => send(address, section.dataset.csrf, body).then((answer) => answer.json()));
  let writes = section.dataset.writes === "yes";
  let dragged = false;

  function say(text) {
    saved.textContent = text;
  }

  function report(kind, value = 0) {
    const at = Math.min(audio.currentTime, duration);
    // without a connection nothing is heard; the next beat tries again
    line(kind, { events: [{ kind, position_sec: at, value }] }).then(show).catch(() => undefined);
  }

  function show(found) {
    if (found === null) return; // a beat that a later report made needless
    if (found.error !== undefined) {
      say(found.error);
      return;
    }
    if (!enforced) return;
    if (found.told) say(found.told);
    section.querySelector(".heard").value = found.longest_sec;
    if (found.writes && !writes) {
      writes = true;
      letWrite(true);
      say(section.dataset.mayWrite);
    }
    if (found.complete && position.disabled) {
      letSeek(true);
      say(section.dataset.maySeek);
    }
  }

  function letWrite(may) {
    form.classList.toggle("closed", !may);
    form.querySelectorAll("input:not([type=hidden]), textarea").forEach((field) => {
      // what is disabled would not be sent, and be lost with the next draft
      if (isTick(field)) field.setAttribute("aria-disabled", String(!may));
      else field.readOnly = !may;
    });
  }

  function letSeek(may) {
    for (const each of [position, rate, ...section.querySelectorAll("[data-loop]")]) each.disabled = !may;
    section.classList.toggle("seeks", may);
    section.querySelector(".locked")?.toggleAttribute("hidden", may);
  }

  function seek(second) {
    if (position.disabled) return; // the waveform obeys the rule of the slider
    report("seek", second);
    audio.currentTime = second;
  }

  function follow() {
    const now = musicEvals.waveform.clock(audio.currentTime);
    section.querySelector(".now").textContent = now;
    if (dragged) return;
    position.value = audio.currentTime;
    position.setAttribute("aria-valuetext", now);
  }

  play.addEventListener("click", () => toggle(audio));
  for (const kind of ["play", "pause"]) {
    audio.addEventListener(kind, () => { play.textContent = audio.paused ? play.dataset.play : play.dataset.pause; });
  }
  audio.addEventListener("play", () => report("play"));
  audio.addEventListener("pause", () => { if (!audio.ended) report("pause"); });
  audio.addEventListener("ended", () => report("ended"));
  audio.addEventListener("error", () => say(section.dataset.silent));
  for (const kind of ["timeupdate", "seeking"]) audio.addEventListener(kind, follow);
  position.addEventListener("input", () => { dragged = true; });
  position.addEventListener("change", () => {
    dragged = false;
    seek(Number(position.value));
  });
  rate.addEventListener("change", () => {
    audio.playbackRate = Number(rate.value);
    report("rate", Number(rate.value));
  });
  document.addEventListener("visibilitychange", () => report(document.hidden ? "hidden" : "shown"));
  setInterval(() => { if (!audio.paused) report("beat"); }, 5000);
  letSeek(!position.disabled);
  startWave(wave, audio, duration, seek);

  if (enforced) {
    letWrite(writes);
    form.addEventListener("click", (event) => { if (!writes && isTick(event.target)) event.preventDefault(); });
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
        say(saved.dataset.blocked);
        report("blocked");
      });
    }
  }
  startLoop(section, audio, duration, seek, say);
  keepDraft(form, section, say);
  listenToKeys(form, audio);
  return { audio, seek };
}

/** A stretch that is played again and again, from A to B; who may not seek yet sets none. */
function startLoop(section, audio, duration, seek, say) {
  const bar = section.querySelector(".stretch");
  let [begin, end] = [0, null];
  section.addEventListener("click", ({ target: { dataset: { loop }, ariaLabel } }) => {
    if (!loop) return;
    const now = Math.min(audio.currentTime, duration - 0.5); // before the song ends by itself
    if (loop === "begin") [begin, end] = [now, end > now ? end : null];
    else [begin, end] = loop === "end" ? [begin < now ? begin : 0, now] : [0, null];
    bar.hidden = loop === "off";
    bar.style.marginInline = `${(100 * begin) / duration}% ${100 - (100 * (end ?? duration)) / duration}%`;
    say(`${ariaLabel} ${bar.hidden ? "" : [begin, end ?? duration].map(musicEvals.waveform.clock).join(" – ")}`);
  });
  audio.addEventListener("timeupdate", () => { if (end !== null && !audio.paused && audio.currentTime >= end) seek(begin); });
}

function isTick(field) {
  return field.type === "radio" || field.type === "checkbox";
}

function toggle(audio) {
  if (audio.paused) audio.play().catch(() => undefined); // paused at once, or the element says that it has no sound
  else audio.pause();
}

function startWave(wave, audio, duration, seek) {
  if (!wave) return;
  musicEvals.waveform.draw(wave, audio, duration);
  wave.addEventListener("click", (event) => {
    const { left, width } = wave.getBoundingClientRect();
    seek(musicEvals.waveform.secondAt(event.clientX, left, width, duration));
  });
}

function keepDraft(form, section, say) {
  const word = section.querySelector(".saved");
  const { saved, unsaved, conflict } = word.dataset;
  const versions = document.querySelectorAll("input[name=version]");
  const fieldsOf = (any) => Object.fromEntries([...new FormData(any)].filter(([name]) => name !== "csrf" && name !== "version"));
  const fields = () => fieldsOf(form);
  const isKept = () => JSON.stringify(fields()) === kept;
  const refused = document.querySelector("main > .message") !== null;
  const served = form.cloneNode(true);
  served.reset(); // without what was typed before this script ran
  let kept = refused ? "" : JSON.stringify(fieldsOf(served)); // a page that comes back with a refusal shows what nobody keeps yet
  let saving = null;
  let isBehind = false; // another page saved: what is here and what is kept are laid side by side before anything is saved

  /** After signing in elsewhere, this page's key is of no use any more: take the new one. */
  async function renewed() {
    const page = await fetch(`/task/${section.dataset.task}`);
    const found = new DOMParser().parseFromString(await page.text(), "text/html").querySelector(".player")?.dataset.csrf;
    if (!found || found === section.dataset.csrf) return false;
    section.dataset.csrf = found;
    document.querySelectorAll("input[name=csrf]").forEach((field) => { field.value = found; });
    return true;
  }

  async function save() {
    const now = fields();
    if (saving || isBehind || form.classList.contains("closed") || isKept()) return;
    saving = (async () => {
      try {
        const body = { version: Number(versions[0].value), fields: now };
        const answer = await send(`/task/${section.dataset.task}/draft`, section.dataset.csrf, body);
        const found = await answer.json();
        if (found.error !== undefined) {
          isBehind = answer.status === 409;
          const isSignedOut = answer.status === 401 || answer.status === 403;
          if (!(isSignedOut && await renewed())) say(isBehind ? conflict : found.error); // with a new key the next turn tries again
          return;
        }
        kept = JSON.stringify(now);
        versions.forEach((field) => { field.value = found.version; });
        if (isKept()) say(saved);
      } catch {
        say(unsaved); // the next turn tries again
      }
    })();
    await saving;
    saving = null;
  }

  const timer = setInterval(save, SAVE_EVERY_MS);
  document.querySelectorAll("form[action^='/task/']").forEach((any) => any.addEventListener("submit", (event) => {
    const isLeft = isBehind && any !== form; // by what was written here
    if (saving || isLeft) event.preventDefault();
    if (isLeft) return;
    clearInterval(timer);
    if (saving) { // the version on the page is about to change
      saving.then(() => any.requestSubmit(event.submitter));
      return;
    }
    kept = JSON.stringify(fields());
  }));
  window.addEventListener("beforeunload", (event) => {
    if (!isKept()) event.preventDefault();
  });
  form.addEventListener("input", () => { if (word.textContent === saved) say(""); });
}

function listenToKeys(form, audio) {
  const pressed = ({ code }) => document.querySelector(`[aria-keyshortcuts="Alt+${code.slice(3)}"]`);
  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.ctrlKey && event.code === "Space") toggle(audio);
    else if (event.ctrlKey && event.key === "s") form.requestSubmit(form.querySelector("[formaction$='/save']"));
    else if (event.ctrlKey && event.key === "Enter") form.requestSubmit(form.querySelector("button:not([formaction]):not([type])"));
    else if (event.altKey && pressed(event)) pressed(event).click();
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

const players = [...document.querySelectorAll(".player")].map(startPlayer);

// who judges a description may go anywhere in its song
document.querySelectorAll(".recording").forEach((section) => {
  const audio = section.querySelector("audio");
  const seek = (second) => { audio.currentTime = second; };
  startWave(section.querySelector(".wave"), audio, Number(section.dataset.duration), seek);
  players.push({ audio, seek });
});

document.querySelectorAll("table.lines").forEach((table) => musicEvals.rows.start(table, players[0]));

// the points of a description, as they are given
document.querySelectorAll(".total").forEach((total) => {
  const { mark, passes, below } = total.dataset;
  const show = () => {
    const fields = [...total.form.querySelectorAll("[type=number]")];
    const given = fields.filter(({ validity }) => validity.valid);
    const sum = given.reduce((all, { valueAsNumber }) => all + valueAsNumber, 0);
    const open = given.length < fields.length ? `${given.length} / ${fields.length}` : below;
    total.value = `${sum} / 100 · ${sum >= Number(mark) ? passes : open}`;
  };
  total.form.addEventListener("input", show);
  show();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest(".term");
  if (!button) return;
  const field = document.getElementById(button.dataset.field);
  if (field.readOnly) return;
  field.value = musicEvals.waveform.withTerm(field.value, button.dataset.term);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
});
