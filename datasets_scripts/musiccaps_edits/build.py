"""Rebuild the Parquet files and the manifest; --captions chooses the clips and writes their edits anew."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from music_evals.datasets.manifest import build_script, file_rows, write_dataset
from music_evals.datasets.musiccaps_edits import build
from music_evals.editing.instructions import find_tags, generate
from music_evals.files import write_atomically

HERE = Path(__file__).parent
SOURCE_PROMPTS = {"genre": "A piece of {} music.", "style": "A piece of {} music.", "mood": "A {} piece of music."}


def edits(table: Path) -> str:
    """Return the table of the package: the clips that the rule chooses, each with an instruction by template."""
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    words = {row["ytid"]: find_tags(row["aspect_list"]) for row in rows}
    made = []
    for task, row in build.choose(rows, words):
        prompt = SOURCE_PROMPTS[task].format(words[row["ytid"]][task])
        [asked] = generate(row["ytid"], prompt, tasks=[task])
        made.append(
            {
                "excerpt": row["ytid"],
                "start_s": row["start_s"],
                "end_s": row["end_s"],
                "task": task,
                "instruction": asked.text,
                "source_prompt": prompt,
                "target_prompt": asked.target_caption(),
                "before": asked.before,
                "after": asked.after,
                "intended": ",".join(asked.intended_facets),
            }
        )
    return build.frozen_table(made)


def main() -> None:
    """Make every config, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write (default: this one)")
    parser.add_argument(
        "--captions", type=Path, metavar="FILE", help="musiccaps-public.csv, for the package's edits.csv"
    )
    options = parser.parse_args()
    if options.captions:
        write_atomically(Path(build.__file__).with_name(build.TABLE), edits(options.captions).encode())
    configs = {config: {"test": build.build_config(config)} for config in build.CONFIGS}
    source = "ids, times and words of MusicCaps (CC BY-SA 4.0); edits by templates of our own"
    print(file_rows(write_dataset(options.out, configs, build.features(), source=source)))


if __name__ == "__main__":
    with build_script():
        main()
