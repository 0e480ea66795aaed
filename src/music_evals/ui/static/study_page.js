// The page of a study with people: consent and instructions first, then what its kind does, kept at every step.
//
// A kind registers `musicEvals.studyKinds.<kind> = { start(options) }` with
//   root            the element to draw in
//   study, plan     the study, and what this participant does, as plain values
//   saved, save     what was kept last, or null; keep a value now
//   stored          names of parts that were sent with the same invitation in another browser
//   kept, keep      the same under a name beside it, for what is large
//   send(name, content)  a part is done: it is kept, and sent where there is a server; the last one of a name counts
//   finish()        all is done
//   say(text)       tell it to those who do not see the page
//
// Nothing leaves the browser before a part is sent. Without a server the participant gets one file at the end.
((ns) => {
  "use strict";

  const FORMAT = 1;
  const DATABASE = "music_evals_studies";
  const RETRY_MS = [1000, 2000, 5000, 10_000, 30_000];

  /** An element with attributes and children; text goes in as text. */
  const make = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (typeof value === "boolean") made.toggleAttribute(key, value);
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };

  const paragraphs = (texts) => texts.map((text) => make("p", {}, text));

  const wait = (ms) => new Promise((done) => { setTimeout(done, ms); });

  const token = () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

  /** What the browser keeps of a study; without a database, as in some private windows, only as long as the page is open. */
  const openKeeper = (study) =>
    new Promise((done) => {
      const memory = new Map();
      const forgetful = {
        lasting: false,
        get: (name) => Promise.resolve(memory.get(name) ?? null),
        put: (name, value) => Promise.resolve(memory.set(name, structuredClone(value))),
      };
      let request;
      try {
        request = indexedDB.open(DATABASE, 1);
      } catch {
        done(forgetful);
        return;
      }
      request.addEventListener("upgradeneeded", () => request.result.createObjectStore("kept"));
      request.addEventListener("error", () => done(forgetful));
      request.addEventListener("success", () => {
        const ask = (mode, act) =>
          new Promise((answer, fail) => {
            const transaction = request.result.transaction("kept", mode);
            const asked = act(transaction.objectStore("kept"));
            transaction.commit(); // not when the answer is there: by then the page may be gone
            transaction.addEventListener("complete", () => answer(asked.result ?? null));
            transaction.addEventListener("error", () => fail(transaction.error));
            transaction.addEventListener("abort", () => fail(transaction.error));
          });
        const key = (name) => `${study}/${name}`;
        done({
          lasting: true,
          get: (name) => ask("readonly", (store) => store.get(key(name))),
          put: (name, value) => ask("readwrite", (store) => store.put(value, key(name))),
        });
      });
    });

  /**
   * Write a value that changes often: one write at a time, and at the end the newest value. A page that is left has no time
   * to wait for its turn; writes keep their order, so that the newest stays the last.
   */
  const writer = (put) => {
    let newest;
    let writing = null;
    let isLeaving = false;
    const run = async () => {
      try {
        while (newest) {
          const [value] = newest;
          newest = null;
          await put(value);
        }
      } finally {
        writing = null; // what comes after a write that failed is written again
      }
    };
    addEventListener("pagehide", () => {
      isLeaving = true;
      if (newest) put(newest[0]);
      newest = null;
    });
    addEventListener("pageshow", () => { isLeaving = false; });
    return (value) => {
      if (isLeaving) return put(value);
      newest = [value];
      return (writing ||= run());
    };
  };

  const post = async (path, content, participant = "") => {
    const headers = { "Content-Type": "application/json", "X-Study-Page": "1", "X-Participant": participant };
    const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(content), credentials: "omit" });
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) throw Object.assign(new Error(said.error || `status ${answer.status}`), { status: answer.status });
    return said;
  };

  /** Send until it is stored; an answer that will never be another one ends it. */
  const insist = async (path, content, participant, onWait) => {
    for (let tries = 0; ; tries++) {
      try {
        return await post(path, content, participant);
      } catch (error) {
        if (error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
        const ms = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)];
        onWait(error.message, ms);
        await wait(ms);
      }
    }
  };

  /** The number of the plan in the address, counted from 1 there; null where it names none. */
  const slotOf = (search, plans) => {
    const given = new URLSearchParams(search).get("slot");
    const number = Number(given);
    return given && Number.isInteger(number) && number >= 1 && number <= plans ? number - 1 : null;
  };

  /** The code of an invitation, from the address; what stands behind the # is told to no server by itself. */
  const codeOf = (hash) => new URLSearchParams(hash.slice(1)).get("code") || "";

  const start = async (root, study, isServed) => {
    const code = codeOf(location.hash);
    const keeper = await openKeeper(code ? `${study.study} ${code}` : study.study); // one browser may serve several people
    const state = (await keeper.get("state")) || { token: null, slot: null, sent: 0, stored: [], parts: [], done: false };
    const keepState = () => keeper.put("state", state);
    const main = make("main");
    const live = make("p", { role: "status", class: "said" });
    const foot = make("footer");
    root.replaceChildren(main, live, foot);
    const say = (text) => { live.textContent = text; };
    const show = (...children) => {
      main.replaceChildren(...children);
      say("");
      const head = main.querySelector("h1, h2");
      if (head) {
        head.tabIndex = -1;
        head.focus();
      }
      scrollTo(0, 0);
    };
    const number = () => {
      foot.replaceChildren(state.token ? make("p", {}, "Your number: ", make("code", {}, state.token)) : "");
    };
    /** A button whose act is not begun again before it is done: two quick clicks are one. */
    const button = (text, onclick, attributes = {}) => {
      let isBusy = false;
      const act = async () => {
        if (isBusy) return;
        isBusy = true;
        try {
          await onclick();
        } finally {
          isBusy = false;
        }
      };
      return make("button", { type: "button", onclick: act, ...attributes }, text);
    };
    const about = () => ({ format: FORMAT, study: study.study, kind: study.kind, slot: state.slot });

    const sendPart = async (name) => {
      const content = await keeper.get(`part ${name}`);
      await insist("api/submit", { ...about(), sent: state.sent, part: name, content }, state.token, (why, ms) => {
        say(`Not stored yet (${why}); kept in this browser, sent again in ${ms / 1000} s.`);
      });
      state.sent += 1;
      state.parts.find((part) => part.name === name).sent = true;
      await keepState();
      say("Stored.");
    };

    let sending = Promise.resolve();
    const flush = () => {
      sending = sending.then(async () => {
        for (const part of state.parts) if (!part.sent) await sendPart(part.name);
      });
      return sending;
    };

    const download = async () => {
      const parts = {};
      for (const { name } of state.parts) parts[name] = await keeper.get(`part ${name}`);
      const content = JSON.stringify({ ...about(), token: state.token, parts });
      const address = URL.createObjectURL(new Blob([content], { type: "application/json" }));
      make("a", { href: address, download: `${study.study}-${state.token.slice(0, 8)}.json` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    };

    const failed = (error) => {
      show(
        make("h2", {}, "This could not be stored"),
        make("p", {}, `${error.message}. Nothing is lost: your answers are kept in this browser.`),
        make("p", {}, "Download them, and send the file to who leads the study."),
        button("Download my answers", download, { id: "download" }),
        button("Try again", () => location.reload(), { id: "retry" }),
      );
    };

    const end = () => {
      const keepNumber = make("p", {}, "Keep your number: with it you can withdraw.");
      const copy = button(isServed ? "Download a copy" : "Download my answers", download, { id: "download" });
      const what = isServed
        ? "Everything was stored. You may close this page."
        : "Download your answers, and send the file to who leads the study. Until then they are in this browser alone.";
      show(make("h2", {}, "Thank you"), make("p", {}, what), keepNumber, copy);
    };

    const finish = async () => {
      try {
        if (isServed) {
          show(make("h2", {}, "Storing your answers"), make("p", {}, "Leave this page open until it says that it is done."));
          await flush();
        }
        state.done = true;
        await keepState();
        end();
      } catch (error) {
        failed(error);
      }
    };

    const send = async (name, content) => {
      try {
        await keeper.put(`part ${name}`, content);
      } catch (error) {
        say(`This browser could not keep your answers (${error?.message}). Leave the page open, and try again.`);
        throw error;
      }
      state.parts = [...state.parts.filter((part) => part.name !== name), { name, sent: false }];
      await keepState();
      if (isServed) flush().catch(failed);
    };

    const work = async () => {
      const kind = ns.studyKinds[study.kind];
      const telling = (write) => (value) => write(value).catch((error) => {
        say(`This browser could not keep your last step (${error?.message}): leave the page open until the end.`);
      });
      const saving = telling(writer((value) => keeper.put("work", value)));
      const writers = new Map();
      const keep = (name, value) => {
        if (!writers.has(name)) writers.set(name, telling(writer((now) => keeper.put(`kept ${name}`, now))));
        return writers.get(name)(value);
      };
      const kept = (name) => keeper.get(`kept ${name}`);
      if (isServed) flush().catch(failed);
      kind.start({
        root: main, study, plan: study.plans[state.slot], saved: await keeper.get("work"), save: saving, kept, keep, send,
        stored: state.stored || [], finish, say, show, button, make,
      });
    };

    const instruct = () => {
      show(make("h2", {}, "What you do"), ...paragraphs(study.instructions), button("Start", work, { id: "start" }));
    };

    const join = async (chosen) => {
      const given = isServed ? await post("api/join", { study: study.study, invitation: code }) : { token: token(), slot: chosen() };
      if (given.slot === null) return;
      Object.assign(state, given);
      await keepState();
      number();
      instruct();
    };

    const consent = () => {
      const agree = make("input", { type: "checkbox", id: "agree" });
      const slot = slotOf(location.search, study.plans.length);
      const asked = make("input", { type: "number", id: "slot", min: 1, max: study.plans.length, value: slot === null ? "" : slot + 1 });
      const chosen = () => slotOf(`?slot=${asked.value}`, study.plans.length);
      const go = button("Go on", async () => {
        if (!isServed && chosen() === null) {
          say(`Enter the number of your plan, 1 to ${study.plans.length}, as it was given to you.`);
          return;
        }
        go.disabled = true;
        try {
          await join(chosen);
        } catch (error) {
          go.disabled = false;
          say(`You could not be added: ${error.message}. Try again.`);
        }
      }, { id: "go", disabled: true });
      agree.addEventListener("change", () => { go.disabled = !agree.checked; });
      const parts = [make("h1", {}, study.title), ...paragraphs(study.consent)];
      if (!keeper.lasting) {
        parts.push(make("p", { class: "warning" }, "This browser keeps nothing: what you do is lost if the page is closed."));
      }
      if (!isServed) parts.push(make("p", {}, make("label", {}, "Number of your plan ", asked)));
      parts.push(make("p", {}, make("label", {}, agree, " I have read this, and agree.")), go);
      show(...parts);
    };

    number();
    if (state.done) end();
    else if (state.token) {
      show(make("h1", {}, study.title), make("p", {}, "You have begun, and can go on where you stopped."), button("Go on", work, { id: "resume" }));
    } else consent();
  };

  ns.studyPage = { make, slotOf, codeOf, start, writer };

  if (globalThis.document?.getElementById("study")) {
    const study = JSON.parse(document.getElementById("study").textContent);
    addEventListener("DOMContentLoaded", () => {
      start(document.getElementById("root"), study, document.documentElement.dataset.submit === "server");
    });
  }
})((globalThis.musicEvals ||= {}));
