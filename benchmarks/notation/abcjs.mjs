// Plays ABC tunes with abcjs: the reader "abcjs" of readers.py, with the same requests and answers.
//
//     NODE_PATH=FOLDER/node_modules node abcjs.mjs < requests.jsonl
//
// One JSON object a line: {"content": "X:1\n..."} gives {"notes": [[onset, duration, pitch], ...]} in quarters, with
// repeats played out, or {"crashed": why}. The first line is {"version"} or {"missing"}. The caller takes chord symbols,
// decorations, grace notes and tempo fields out of the tune before: abcjs plays the first three, and stretches its times
// by the last.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import path from "node:path";

const folder = process.env.NODE_PATH ?? path.join(process.cwd(), "node_modules");
const answer = (told) => process.stdout.write(JSON.stringify(told) + "\n");
// abcjs reports unknown elements on the console, which is the channel of the answers here.
console.log = () => {};

function load() {
  try {
    const require = createRequire(path.join(folder, "abcjs", "package.json"));
    const abcjs = require(path.join(folder, "abcjs"));
    answer({ version: abcjs.signature.split("v").at(-1) });
    return abcjs;
  } catch (error) {
    answer({ missing: `npm install abcjs@6.7.2, then --node-modules (${error.code ?? error})` });
    process.exit(0);
  }
}

function playedNotes(abcjs, tune) {
  const [parsed] = abcjs.parseOnly(tune);
  // Swing stays off as no %%MIDI swing is left in the text; chord symbols are switched off as well.
  const { tracks } = parsed.setUpAudio({ chordsOff: true });
  const notes = tracks.flat().filter((event) => event.cmd === "note");
  return notes.map((note) => [4 * note.start, 4 * note.duration, note.pitch]);
}

const abcjs = load();
for await (const line of createInterface({ input: process.stdin })) {
  try {
    answer({ notes: playedNotes(abcjs, JSON.parse(line).content) });
  } catch (error) {
    answer({ crashed: String(error) });
  }
}
