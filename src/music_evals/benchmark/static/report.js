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

document.querySelectorAll(".pair-list").forEach(list => musicEvals.pairList.start(list));

// Original and edit: the links to their files say where they are, and data-gains how loud they are played.
document.querySelectorAll(".pair[data-gains]").forEach(element => {
  const gains = element.dataset.gains.split(" ").map(Number);
  const tracks = [...element.querySelectorAll("a[data-side]")].map((link, i) => ({file: {url: link.href}, gain: gains[i]}));
  const props = {value: {tracks, seconds: Number(element.dataset.seconds)}};
  musicEvals.abPlayer.start({element, props, watch: () => {}}, {keysOf: element, lazy: true});
});
