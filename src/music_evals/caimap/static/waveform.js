// The waveform of a recording: bars of what the server worked out, which follow the audio element of the page.
// It neither plays nor seeks: the page does, by its own rules.
((ns) => {
  "use strict";

  const FULL = 255; // of `caimap.web.waveforms`
  const HEIGHT_PX = 72;
  const BAR_PX = 3; // with the gap after it

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

  const element = (name, className, ...children) => {
    const made = document.createElement(name);
    made.className = className;
    made.append(...children);
    return made;
  };

  /** Bars of a colour, as many as the place has room for; each is as high as the highest peak that it stands for. */
  const paint = (canvas, peaks, colour, width) => {
    const scale = devicePixelRatio;
    const bars = Math.max(1, Math.floor(width / BAR_PX));
    Object.assign(canvas, { width: width * scale, height: HEIGHT_PX * scale });
    canvas.style.width = `${width}px`;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.fillStyle = colour;
    for (let bar = 0; bar < bars; bar += 1) {
      const [from, to] = [bar, bar + 1].map((edge) => Math.floor((edge * peaks.length) / bars));
      const height = Math.max(1, HEIGHT_PX * Math.max(...peaks.slice(from, Math.max(to, from + 1))));
      pen.fillRect(bar * BAR_PX, (HEIGHT_PX - height) / 2, BAR_PX - 1, height);
    }
  };

  /** Draw into a place; without the peaks of the recording the place goes, and the player stays as it is. */
  const draw = async (place, audio, duration) => {
    const answer = await fetch(place.dataset.peaks).catch(() => null); // no connection: no waveform
    if (!answer?.ok) {
      place.hidden = true;
      return;
    }
    const peaks = heights((await answer.json()).peaks);
    const [whole, part] = [element("canvas", "bars"), element("canvas", "bars")];
    const played = element("div", "played", part);
    place.replaceChildren(whole, played);

    const paintBoth = () => {
      const style = getComputedStyle(place);
      paint(whole, peaks, style.getPropertyValue("--wave").trim(), place.clientWidth);
      paint(part, peaks, style.getPropertyValue("--accent").trim(), place.clientWidth);
    };
    // where motion is not wanted, the cursor goes from second to second
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const follow = () => {
      const second = still ? Math.floor(audio.currentTime) : audio.currentTime;
      played.style.width = `${100 * Math.min(1, second / duration)}%`;
    };
    const animate = () => {
      follow();
      if (!audio.paused) requestAnimationFrame(animate);
    };
    for (const kind of ["timeupdate", "seeking"]) audio.addEventListener(kind, follow);
    if (!still) audio.addEventListener("play", animate);
    new ResizeObserver(paintBoth).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintBoth);
    follow();
  };

  ns.waveform = { heights, secondAt, clock, withTerm, draw };
})((globalThis.musicEvals ||= {}));
