// The editing test: a sample after the other is repaired in a piano roll, blind, against the clock, and rated.
//
// study.settings: {limit_sec, may_add ("yes", "no" or "flagged"), questions [{name, text}], before [{name, text}],
//   about [{name, text, options, tick}], training (code), samples {code: sample}}; a sample is as in note_roll.js, with
//   tempos [[tick, quarters a minute]]. plan: {samples: [code]}.
// Parts that are sent: "sample-<place>" {code, events, counts, notes, answers}, and at the end "about" {answers}.
((ns) => {
  "use strict";

  const { make } = ns.studyPage;
  const { timeText } = ns.noteEditor;
  const SCALE = [1, 2, 3, 4, 5];

  /** Questions one below the other; `done` is told the answers when each has one. */
  const ask = ({ show, say, button }, title, questions, done) => {
    const box = (name, text) => make("p", {}, make("label", {}, make("input", { type: "checkbox", id: name }), ` ${text}`));
    const fields = questions.map(({ name, text, options, tick }) => {
      if (tick) return box(name, text);
      const field = make("fieldset", { id: name }, make("legend", {}, text));
      const choices = options || SCALE;
      choices.forEach((choice, place) => {
        const end = options ? "" : { 0: " not at all", 4: " very much" }[place] || "";
        field.append(make("label", {}, make("input", { type: "radio", name, value: choice }), ` ${choice}${end}`));
      });
      return field;
    });
    const go = async () => {
      const answers = {};
      for (const { name, options, tick } of questions) {
        if (tick) answers[name] = document.getElementById(name).checked;
        const chosen = document.querySelector(`input[name="${CSS.escape(name)}"]:checked`);
        if (chosen) answers[name] = options ? chosen.value : Number(chosen.value);
      }
      if (Object.keys(answers).length < questions.length) say("Answer every question first.");
      else await done(answers);
    };
    show(make("h2", {}, title), ...fields, button("Go on", go, { id: "answered" }));
  };

  const start = async (page) => {
    const { study, plan, saved, save, kept, keep, send, finish } = page;
    const { settings } = study;
    const steps = [
      ...(settings.training ? [{ code: settings.training, isTraining: true, title: "A piece to try the editor" }] : []),
      ...plan.samples.map((code, place) =>
        ({ code, name: `sample-${place + 1}`, title: `Piece ${place + 1} of ${plan.samples.length}` })),
    ];
    const position = saved || { step: 0, phase: "ready", before: {}, result: null };
    const go = (next) => {
      Object.assign(position, next);
      save(position);
      return run();
    };
    const phases = {
      ready: ({ isTraining, title }) => {
        const limit = settings.limit_sec === null ? "" : ` You have ${timeText(settings.limit_sec)} minutes.`;
        const what = isTraining
          ? "Nothing of it counts. Take as long as you like."
          : `The clock starts when you open it.${limit} Rest first if you like.`;
        const next = settings.before.length && !isTraining ? "before" : "edit";
        page.show(make("h2", {}, title), make("p", {}, what), page.button("Open the piece", () => go({ phase: next }), { id: "open" }));
      },
      before: () => ask(page, "Before you edit", settings.before, (answers) => go({ phase: "edit", before: answers })),
      edit: async ({ code, isTraining, title }) => {
        const log = await kept("log");
        const mine = log && log.step === position.step ? log : null;
        ns.noteEditor.open(page, {
          sample: settings.samples[code], limitSec: isTraining ? null : settings.limit_sec, mayAdd: settings.may_add, title, kept: mine,
          keep: (value) => keep("log", { ...value, step: position.step }),
          done: (result, isLimit) => {
            if (isTraining) go({ step: position.step + 1, phase: "ready", result: null });
            else go({ phase: "questions", result: { ...result, isLimit } });
          },
        });
      },
      questions: ({ code, name }) => {
        const { isLimit, ...result } = position.result;
        const title = isLimit ? "The time is over. Three questions" : "How was it?";
        ask(page, title, settings.questions, async (answers) => {
          await send(name, { code, ...result, answers: { ...position.before, ...answers } });
          await go({ step: position.step + 1, phase: "ready", before: {}, result: null });
        });
      },
    };
    const run = () => {
      if (position.step < steps.length) return phases[position.phase](steps[position.step]);
      if (settings.about.length && position.phase !== "over") {
        return ask(page, "About you", settings.about, async (answers) => {
          await send("about", { answers });
          await go({ phase: "over" });
        });
      }
      return finish();
    };
    run();
  };

  (ns.studyKinds ||= {}).editing = { start };
})((globalThis.musicEvals ||= {}));
