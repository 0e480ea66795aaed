// Buttons of a report that play notes: <button data-notes="[[onset, duration, pitch], ...]" data-step-sec="0.1">.
document.querySelectorAll("button[data-notes]").forEach(button => button.addEventListener("click", () => {
  const again = button.textContent === "Stop";
  musicEvalsPlayer.stop();
  if (again) return;
  button.textContent = "Stop";
  musicEvalsPlayer.play(JSON.parse(button.dataset.notes), Number(button.dataset.stepSec), {
    onEnd: () => { button.textContent = "Play"; },
  });
}));
