// The player of notes that all pages share: reports of benchmarks (inlined) and Spaces. No network, no dependency.
//
// musicEvalsPlayer.play(notes, stepSec, {from, to, onStep, onEnd})
//   notes    [[onset, duration, pitch], ...]: onset and duration in steps, pitch as in MIDI (69 is A4); with "click" as
//            a fourth value it sounds as a metronome does
//   stepSec  seconds a step takes
//   from, to the span of steps to play; what sounds into it is cut. By default all.
//   onStep   called before each frame with the step that sounds, e.g. to move a playhead
//   onEnd    called once, whether the notes are over or were stopped
//   What sounds already is stopped first: two never sound at once on a page.
// musicEvalsPlayer.stop()
// musicEvalsPlayer.heard(notes, from, to)
//   the notes of a span, counted from its start: what `play` lets sound
window.musicEvalsPlayer ||= (() => {
  const LEVEL = 0.2, FADED = 0.02, ATTACK_SEC = 0.01, DELAY_SEC = 0.05, TAIL_SEC = 0.15;
  // long pieces are handed to the browser a little at a time; a hidden page is asked once a second
  const AHEAD_SEC = 3, FILL_MS = 500;
  let audio = null, now = null;

  const stop = () => {
    if (!now) return;
    const ended = now;
    now = null;
    ended.sounds.forEach(sound => sound.stop());
    cancelAnimationFrame(ended.frame);
    clearTimeout(ended.timer);
    clearTimeout(ended.filler);
    ended.onEnd();
  };

  const sound = (pitch, fromSec, toSec, kind) => {
    const tone = audio.createOscillator(), volume = audio.createGain();
    tone.type = kind === "click" ? "square" : "triangle";
    tone.frequency.value = 440 * 2 ** ((pitch - 69) / 12);
    volume.gain.setValueAtTime(0, fromSec);
    volume.gain.linearRampToValueAtTime(LEVEL, fromSec + ATTACK_SEC);
    volume.gain.exponentialRampToValueAtTime(FADED, toSec);
    tone.connect(volume).connect(audio.destination);
    tone.start(fromSec);
    tone.stop(toSec);
    return tone;
  };

  const heard = (notes, from = 0, to = Infinity) => notes
    .filter(([onset, duration]) => onset < to && onset + duration > from)
    .map(([onset, duration, ...rest]) => [
      Math.max(onset, from) - from, Math.min(onset + duration, to) - Math.max(onset, from), ...rest,
    ]);

  const play = (notes, stepSec, {from = 0, to = Infinity, onStep = null, onEnd = () => {}} = {}) => {
    stop();
    audio ||= new AudioContext();
    audio.resume();
    const start = audio.currentTime + DELAY_SEC, begun = performance.now() + 1000 * DELAY_SEC;
    const chosen = heard(notes, from, to).sort((a, b) => a[0] - b[0]);
    const length = Math.max(0, ...chosen.map(([onset, duration]) => onset + duration));
    const mine = now = {sounds: new Set(), onEnd};
    let next = 0;
    const fill = () => {
      while (next < chosen.length && start + chosen[next][0] * stepSec < audio.currentTime + AHEAD_SEC) {
        const [onset, duration, pitch, kind] = chosen[next++];
        const tone = sound(pitch, start + onset * stepSec, start + (onset + duration) * stepSec, kind);
        mine.sounds.add(tone);
        tone.onended = () => mine.sounds.delete(tone);
      }
      if (next < chosen.length) mine.filler = setTimeout(fill, FILL_MS);
    };
    fill();
    mine.timer = setTimeout(stop, 1000 * (length * stepSec + DELAY_SEC + TAIL_SEC));
    const move = () => {
      if (now !== mine) return;
      onStep(from + Math.min(length, Math.max(0, performance.now() - begun) / 1000 / stepSec));
      mine.frame = requestAnimationFrame(move);
    };
    if (onStep) move();
  };

  return {play, stop, heard};
})();
