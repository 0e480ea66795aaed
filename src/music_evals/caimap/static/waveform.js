// The waveform of a recording: wavesurfer.js draws what the server worked out, and follows the audio element of the page.
// It neither plays nor seeks: the page does, by its own rules.
((ns) => {
  "use strict";

  const FULL = 255; // of `caimap.waveforms`
  const HEIGHT_PX = 72;

  /** Peaks of the server as heights from 0 to 1. */
  const heights = (peaks) => peaks.map((peak) => peak / FULL);

  /** Second of the song at a place of the page: `x` on a waveform that begins at `left`. */
  const secondAt = (x, left, width, duration) =>
    (width > 0 ? Math.min(1, Math.max(0, (x - left) / width)) * duration : 0);

  /** Seconds as on a clock: 65.9 is 1:05. */
  const clock = (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
  };

  /** A field of tags whose last one, half written, gives way to a term. */
  const withTerm = (text, term) => {
    const kept = text.split(/[、,，]/).slice(0, -1).map((tag) => tag.trim());
    return `${[...kept, term].join("、")}、`;
  };

  const coloursOf = (place) => {
    const style = getComputedStyle(place);
    const named = (name) => style.getPropertyValue(name).trim();
    return { waveColor: named("--wave"), progressColor: named("--accent"), cursorColor: named("--ink") };
  };

  /** Draw into a place; without the peaks of the recording the place goes, and the player stays as it is. */
  const draw = async (place, audio, duration) => {
    const answer = await fetch(place.dataset.peaks).catch(() => null); // no connection: no waveform
    if (!answer?.ok) {
      place.hidden = true;
      return;
    }
    const { peaks } = await answer.json();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const wave = WaveSurfer.create({
      container: place,
      peaks: [heights(peaks)],
      duration,
      height: HEIGHT_PX,
      barWidth: 2,
      barGap: 1,
      barRadius: 1,
      barMinHeight: 1,
      cursorWidth: 2,
      interact: false,
      cspNonce: document.querySelector("link[nonce]").nonce, // of its style
      ...coloursOf(place),
      ...(still ? {} : { media: audio }),
    });
    // where motion is not wanted, the cursor goes from second to second
    if (still) audio.addEventListener("timeupdate", () => wave.setTime(Math.floor(audio.currentTime)));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => wave.setOptions(coloursOf(place)));
  };

  ns.waveform = { heights, secondAt, clock, withTerm, draw };
})((globalThis.musicEvals ||= {}));
