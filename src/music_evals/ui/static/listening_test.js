// A listening test: one page after the other, each with its sounds and its questions; for the page of studies, which says
// what `start` is given. `study.settings` and `plan` are those of `studies.listening.settings` and `studies.listening.build`.
//
// Several sounds play at one moment of one clock, and one of them is heard: see `abPlayer`. Nobody can answer before
// enough was heard. What was heard is measured while it sounds, as spans of each file, so that a part heard twice counts
// once. Everything is kept at once: a page that was left goes on where it stood.
((ns) => {
  "use strict";

  const TICK_MS = 50;
  const KEEP_MS = 1000;
  const MOST_TONES = 5;
  const WORDS = ["bad", "poor", "fair", "good", "excellent"]; // of the scale of BS.1534
  const NEARLY_SEC = 0.05;
  const CHECK = { name: "tones", text: "How many tones do you hear?", low: "", high: "" };
  const TASKS = {
    rating: "Listen, then answer.",
    ab: "Listen to both, then choose one. You can switch while it plays.",
    mushra: "Compare all sounds with the reference, and place each on the scale. One of them is the reference itself.",
    check: "Listen, then answer.",
  };

  /** Spans that were heard, with another one: in order, none touching the next. */
  const addSpan = (spans, from, to) => {
    if (to <= from) return spans;
    const apart = spans.filter(([start, end]) => end < from || start > to);
    const met = spans.filter(([start, end]) => end >= from && start <= to);
    const whole = [Math.min(from, ...met.map(([start]) => start)), Math.max(to, ...met.map(([, end]) => end))];
    return [...apart, whole].sort((a, b) => a[0] - b[0]);
  };

  const spanSec = (spans) => spans.reduce((total, [from, to]) => total + to - from, 0);

  /** What was played between two looks at the player; behind the end it begins again. */
  const played = (before, now, length) =>
    (now >= before ? [[before, now]] : [[before, length], [0, now]]);

  const tracksOf = (trial) => [...(trial.reference ? [trial.reference] : []), ...trial.stimuli];

  /** What the sounds of a page are called, in the order of `tracksOf`. */
  const labelsOf = (trial) => {
    const open = trial.reference ? [trial.type === "mushra" ? "Reference" : "Original"] : [];
    const letters = trial.stimuli.length > 1 ? trial.stimuli.map((_, i) => String.fromCharCode(65 + i)) : ["Sound"];
    return [...open, ...letters];
  };

  /** The sound that a key chooses, by its place in `tracksOf`; -1 for none. */
  const trackOfKey = (key, trial) => {
    const first = trial.reference ? 1 : 0;
    if (key === "o" && trial.reference) return 0;
    const letter = key.length === 1 ? key.charCodeAt(0) - 97 : -1;
    return letter >= 0 && letter < trial.stimuli.length ? first + letter : -1;
  };

  const newRow = (trial) => ({
    answers: Object.fromEntries(trial.questions.map((name) => [name, {}])),
    heard: Object.fromEntries(tracksOf(trial).map((file) => [file, []])),
    lengths: [], // of the sounds, once they are loaded
    seconds: 0,
  });

  /** Share of a sound that was heard, of what must be heard: 1 is enough. */
  const shareHeard = (spans, length, least) =>
    (length > 0 ? Math.min(1, (spanSec(spans) + NEARLY_SEC) / (least * length)) : 0);

  /** Files of a page that were not heard enough. */
  const unheard = (trial, row, least) =>
    tracksOf(trial).filter((file, i) => shareHeard(row.heard[file], row.lengths[i] || 0, least) < 1);

  /** Questions without an answer for each sound. */
  const unanswered = (trial, row) =>
    trial.questions.filter((name) => trial.stimuli.some((file) => row.answers[name][file] === undefined));

  /** An answer of a page put into its row: of two sounds the chosen one has 1. */
  const answered = (trial, row, name, file, value) => {
    const values = trial.type === "ab"
      ? Object.fromEntries(trial.stimuli.map((other) => [other, Number(other === file)]))
      : { ...row.answers[name], [file]: value };
    return { ...row, answers: { ...row.answers, [name]: values } };
  };

  const toMs = (sec) => Math.round(sec * 1000) / 1000;

  /** What is sent in the end. */
  const result = (plan, rows) => ({
    slot: plan.slot,
    trials: rows.map((row) => ({
      answers: row.answers,
      heard_sec: Object.fromEntries(Object.entries(row.heard).map(([file, spans]) => [file, toMs(spanSec(spans))])),
      seconds: toMs(row.seconds),
    })),
  });

  /** The work that was kept, where it belongs to this plan; else the beginning, as of a test that was built again. */
  const resumed = (plan, saved) => {
    const isOf = (row, i) => Boolean(plan.trials[i]) && tracksOf(plan.trials[i]).every((file) => file in (row.heard || {}));
    const fits = saved && saved.slot === plan.slot && Array.isArray(saved.rows) && saved.rows.every(isOf)
      && (!saved.row || isOf(saved.row, saved.rows.length));
    return fits ? { rows: saved.rows, row: saved.row } : { rows: [], row: null };
  };

  /** A player of several sounds that reports what was heard: `report(track, from, to)` in seconds. */
  const makePlayer = ({ make, urls, labels, report, ready, say }) => {
    const { open, startFor } = ns.abPlayer;
    const state = { playing: false, track: 0, position: 0, loop: false, from: 0, to: 0, length: 0 };
    let last = 0, timer = null, isGone = false;
    const now = () => (state.playing ? sound.now() : state.position);

    const tell = () => {
      if (!state.playing) return;
      const at = sound.now();
      for (const [from, to] of played(last, at, state.length)) report(state.track, from, to);
      last = at;
    };
    const stopAt = (at) => {
      tell();
      clearInterval(timer);
      sound.stop();
      Object.assign(state, { playing: false, position: at });
      show();
    };
    const sound = open(urls, urls.map(() => 1), () => stopAt(0));
    sound.prefetch();

    const buttons = labels.map((label, track) =>
      make("button", { type: "button", class: "track", "data-track": track, onclick: () => choose(track) }, label));
    const play = make("button", { type: "button", class: "play", onclick: () => toggle() }, "Play");
    const repeat = make("button", { type: "button", class: "repeat", onclick: () => setLoop(!state.loop) }, "Repeat");
    const seek = make("input", { type: "range", class: "seek", min: 0, max: 0, step: 0.01, value: 0, "aria-label": "Place in the sound" });
    seek.addEventListener("input", () => goTo(Number(seek.value)));

    const show = () => {
      const at = now();
      play.textContent = state.playing ? "Stop" : "Play";
      repeat.setAttribute("aria-pressed", state.loop);
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === state.track));
      seek.max = state.length;
      if (document.activeElement !== seek || state.playing) seek.value = at;
      seek.setAttribute("aria-valuetext", `${Math.round((100 * at) / (state.length || 1))} %`); // no length is told
    };
    const tick = () => {
      tell();
      show();
    };
    const playFrom = (wanted) => {
      const at = startFor(wanted, state);
      clearInterval(timer);
      sound.start(at, state.track, state);
      last = at;
      Object.assign(state, { playing: true, position: at });
      timer = setInterval(tick, TICK_MS);
      show();
    };
    const load = async () => {
      try {
        await sound.load();
      } catch {
        say("The sound could not be loaded. Check your connection, and press Play again.");
        return false;
      }
      if (isGone) return false;
      state.length = state.to = Math.max(...sound.lengths());
      ready(sound.lengths());
      return true;
    };
    const toggle = async () => {
      if (state.playing) stopAt(now());
      else if (await load()) playFrom(state.position);
    };
    const choose = (track) => {
      tell();
      state.track = track;
      if (state.playing) sound.choose(track);
      show();
    };
    const goTo = (at) => {
      tell();
      if (state.playing) playFrom(at);
      else state.position = at;
      show();
    };
    const setLoop = (loop) => {
      const at = now();
      tell();
      state.loop = loop;
      goTo(at);
    };
    const end = () => {
      isGone = true;
      if (state.playing) stopAt(now());
    };
    show();
    const keys = make("div", { class: "transport" }, play, repeat);
    const group = make("div", { class: "tracks", role: "group", "aria-label": "Sounds" }, ...buttons);
    return { keys, group, buttons, seek, toggle, choose, setLoop, end, isLooped: () => state.loop };
  };

  /** Radio buttons in a row: the answers to one question. */
  const choices = ({ make, question, options, value, onchange }) => {
    const of = ([answer, label]) => {
      const input = make("input", { type: "radio", name: question.name, value: answer, checked: answer === value });
      input.addEventListener("change", () => onchange(answer));
      return make("label", {}, input, make("span", {}, label));
    };
    const end = (text) => (text ? [make("span", { class: "end" }, text)] : []);
    return make("fieldset", { class: "question", "data-question": question.name },
      make("legend", {}, question.text), make("div", { class: "choices" }, ...end(question.low), ...options.map(of), ...end(question.high)));
  };

  /** One slider a sound, from 0 to 100; it has no value before it is moved. */
  const sliders = ({ make, question, trial, labels, buttons, values, onchange }) => {
    const offset = labels.length - trial.stimuli.length;
    const rows = trial.stimuli.map((file, i) => {
      const label = labels[offset + i];
      const output = make("output", {}, values[file] === undefined ? "–" : String(values[file]));
      const slider = make("input", { type: "range", min: 0, max: 100, step: 1, value: values[file] ?? 50,
        "aria-label": `${label}, from 0, ${WORDS[0]}, to 100, ${WORDS.at(-1)}`, "data-file": file });
      const place = () => {
        output.textContent = slider.value;
        onchange(file, Number(slider.value));
      };
      slider.addEventListener("input", place);
      return make("div", { class: "slider" }, buttons[offset + i], slider, output);
    });
    const words = make("div", { class: "words", "aria-hidden": "true" }, ...WORDS.map((word) => make("span", {}, word)));
    return make("fieldset", { class: "question", "data-question": question.name }, make("legend", {}, question.text), words, ...rows);
  };

  const start = ({ study, plan, saved, save, stored, send, finish, say, show, button, make }) => {
    if (!saved && stored.includes("answers")) {
      finish(); // in another browser
      return;
    }
    const { settings } = study;
    const state = resumed(plan, saved);
    let player = null, couldAnswer = false, counted = performance.now(), kept = 0;

    const trialNow = () => plan.trials[state.rows.length];
    const keep = () => {
      kept = performance.now();
      save({ slot: plan.slot, rows: state.rows, row: state.row });
    };
    /** Add the time since the last call to the page that is open. */
    const count = () => {
      const at = performance.now();
      if (state.row) state.row = { ...state.row, seconds: state.row.seconds + (at - counted) / 1000 };
      counted = at;
    };
    const questionOf = (name) => settings.questions.find((question) => question.name === name) || CHECK;

    const report = (track, from, to) => {
      const file = tracksOf(trialNow())[track];
      const until = Math.min(to, state.row.lengths[track]);
      count();
      state.row = { ...state.row, heard: { ...state.row.heard, [file]: addSpan(state.row.heard[file], from, until) } };
      if (performance.now() - kept > KEEP_MS) keep();
      mark();
    };

    /** Show what was heard, and let those answer who heard enough. */
    const mark = () => {
      const trial = trialNow();
      const missing = new Set(unheard(trial, state.row, settings.least_heard));
      tracksOf(trial).forEach((file, i) => {
        const share = shareHeard(state.row.heard[file], state.row.lengths[i] || 0, settings.least_heard);
        player.buttons[i].dataset.heard = share >= 1 ? "yes" : share > 0 ? "part" : "no";
      });
      if (trial.type === "mushra") {
        for (const slider of document.querySelectorAll(".listening [data-file]")) {
          slider.disabled = missing.has(slider.dataset.file) || missing.has(trial.reference);
        }
      } else {
        for (const field of document.querySelectorAll(".listening fieldset")) field.disabled = missing.size > 0;
      }
      const note = document.querySelector(".listening .heard");
      note.textContent = missing.size ? `You can answer when you have heard enough: ${namesOf(missing)} left.` : "";
      if (!missing.size && !couldAnswer) say("You have heard enough to answer.");
      couldAnswer = !missing.size;
    };
    const namesOf = (files) => {
      const labels = labelsOf(trialNow());
      return tracksOf(trialNow()).flatMap((file, i) => (files.has(file) ? [labels[i]] : [])).join(", ");
    };

    const answer = (name, file, value) => {
      count();
      state.row = answered(trialNow(), state.row, name, file, value);
      keep();
    };

    const next = async () => {
      const trial = trialNow();
      if (!trial) {
        await draw(); // what could not be sent
        return;
      }
      const missing = new Set(unheard(trial, state.row, settings.least_heard));
      const open = unanswered(trial, state.row);
      if (missing.size) {
        say(`Not heard enough yet: ${namesOf(missing)}.`);
        player.buttons[0].focus();
      } else if (open.length) {
        say(`Not answered yet: ${questionOf(open[0]).text}`);
        document.querySelector(`.listening [data-question="${open[0]}"] input`).focus();
      } else {
        count();
        player.end();
        count();
        Object.assign(state, { rows: [...state.rows, state.row], row: null });
        keep();
        await draw();
      }
    };

    const fields = (trial, labels) => trial.questions.map((name) => {
      const question = questionOf(name), values = state.row.answers[name];
      if (trial.type === "mushra") {
        return sliders({ make, question, trial, labels, buttons: player.buttons, values, onchange: (file, value) => answer(name, file, value) });
      }
      if (trial.type === "ab") {
        const options = trial.stimuli.map((file, i) => [file, labels[labels.length - trial.stimuli.length + i]]);
        const value = trial.stimuli.find((file) => values[file] === 1);
        return choices({ make, question: { ...question, low: "", high: "" }, options, value, onchange: (file) => answer(name, file, 1) });
      }
      const [file] = trial.stimuli;
      const [low, high] = trial.type === "check" ? [1, MOST_TONES] : settings.scale;
      const options = Array.from({ length: high - low + 1 }, (_, i) => [low + i, String(low + i)]);
      return choices({ make, question, options, value: values[file], onchange: (value) => answer(name, file, value) });
    });

    const help = () => make("details", { class: "keys" }, make("summary", {}, "Keys"), make("p", {},
      "Space plays and stops, where no button and no answer has the focus. The letter of a sound chooses it, O the original or reference, X repeats. Tab goes to the next field, Enter presses a button; the arrow keys choose an answer or move a slider, by ten with Page Up and Page Down."));

    const draw = async () => {
      const trial = trialNow();
      if (!trial) {
        document.removeEventListener("keydown", onKey);
        removeEventListener("pagehide", leave);
        await send("answers", result(plan, state.rows));
        await finish();
        return;
      }
      state.row ||= newRow(trial);
      couldAnswer = false;
      counted = performance.now();
      const labels = labelsOf(trial);
      const ready = (found) => {
        state.row = { ...state.row, lengths: found };
        mark();
      };
      player = makePlayer({ make, urls: tracksOf(trial), labels, report, ready, say });
      const number = state.rows.length + 1, of = plan.trials.length;
      const parts = fields(trial, labels); // those of a slider take its button with them
      show(make("section", { class: `listening ${trial.type}` },
        make("h2", {}, `Page ${number} of ${of}`),
        make("progress", { max: of, value: state.rows.length, "aria-label": "Pages done" }),
        make("p", { class: "task" }, TASKS[trial.type]),
        make("div", { class: "player" }, player.keys, player.seek, player.group),
        make("p", { class: "heard" }),
        ...parts,
        button(number === of ? "Finish" : "Next", next, { class: "next" }),
        help(),
      ));
      mark();
    };

    const onKey = (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || !trialNow()) return;
      const key = event.key.toLowerCase();
      const track = trackOfKey(key, trialNow());
      if (key === " " && event.target.closest("button, a, summary, input:not([type='range'])")) return;
      if (key === " ") player.toggle();
      else if (key === "x") player.setLoop(!player.isLooped());
      else if (track >= 0) player.choose(track);
      else return;
      event.preventDefault();
    };
    const leave = () => {
      count();
      keep();
    };
    document.addEventListener("keydown", onKey);
    addEventListener("pagehide", leave);
    draw();
  };

  ns.listeningTest = { addSpan, spanSec, played, tracksOf, labelsOf, trackOfKey, newRow, unheard, unanswered, answered, result, resumed };
  (ns.studyKinds ||= {}).listening = { start };
})((globalThis.musicEvals ||= {}));
