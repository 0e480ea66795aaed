// What moves in a report, each where the page has it: notes, pairs by metric, and pairs to listen to.

// Buttons that play notes: <button data-notes="[[onset, duration, pitch], ...]" data-step-sec="0.1">.
document.querySelectorAll("button[data-notes]").forEach(button => button.addEventListener("click", () => {
  const again = button.textContent === "Stop";
  musicEvalsPlayer.stop();
  if (again) return;
  button.textContent = "Stop";
  musicEvalsPlayer.play(JSON.parse(button.dataset.notes), Number(button.dataset.stepSec), {
    onEnd: () => { button.textContent = "Play"; },
  });
}));

// What a link leads to may lie in a part of the page that is closed.
const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.localName === "details") at.open = true;
  target?.scrollIntoView();
};
addEventListener("hashchange", reveal);
if (location.hash) reveal();

// Tables that are made when what they lie in is opened: of each couple of systems, a list of rows, the head first.
document.querySelectorAll("script.couples").forEach(script => {
  const held = JSON.parse(script.textContent);
  const couples = [...script.parentElement.querySelectorAll(".couple")];
  couples.forEach((couple, i) => couple.addEventListener("toggle", () => {
    if (!couple.open || couple.querySelector("table")) return;
    const box = Object.assign(document.createElement("div"), {className: "scroll"});
    const table = box.appendChild(Object.assign(document.createElement("table"), {className: "plain"}));
    const parts = [table.createTHead(), table.createTBody()];
    held[i].forEach((texts, at) => {
      const row = parts[Math.min(at, 1)].insertRow();
      texts.forEach(text => {
        const cell = row.appendChild(document.createElement(at ? "td" : "th"));
        if (!at) cell.scope = "col";
        cell.textContent = text;
      });
    });
    couple.append(box);
  }));
});

document.querySelectorAll(".pair-list").forEach(list => musicEvals.pairList.start(list));

// Original and edit: the links to their files say where they are, and data-gains how loud they are played.
document.querySelectorAll(".pair[data-gains]").forEach(element => {
  const gains = element.dataset.gains.split(" ").map(Number);
  const tracks = [...element.querySelectorAll("a[data-side]")].map((link, i) => ({file: {url: link.href}, gain: gains[i]}));
  const props = {value: {tracks, seconds: Number(element.dataset.seconds)}};
  musicEvals.abPlayer.start({element, props, watch: () => {}}, {keysOf: element, lazy: true});
});
