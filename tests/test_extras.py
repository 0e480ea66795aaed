"""Without an extra everything that needs it ends at once in one line that says what to install; the rest works.

Packages are hidden from a child process and from its own children: neither an import nor the metadata finds them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from music_evals import errors
from music_evals.annotations import Score
from music_evals.errors import MissingBackendError, check_extras, importing
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

ROOT = Path(__file__).resolve().parents[1]
APPS = sorted([*ROOT.glob("metrics/*/app.py"), *ROOT.glob("spaces/*/app.py")])

HIDE = """
import os, sys

HIDDEN = set(os.environ["HIDDEN_PACKAGES"].split(","))


class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else self.finder.find_spec(name, path, target)

    def find_distributions(self, context):
        for found in getattr(self.finder, "find_distributions", lambda context: ())(context):
            if (found.metadata["Name"] or "").replace("-", "_") not in HIDDEN:
                yield found

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
"""
EXTRAS = {
    "audio": ["librosa", "onnxruntime"],
    "symbolic": ["music21"],
    "lyrics": ["jieba", "opencc", "pypinyin", "pypinyin_dict"],
    "text": ["sentence_transformers"],
    "models": ["torch", "transformers", "safetensors", "pyloudnorm", "httpx2"],
    "report": ["matplotlib"],
    "spaces": ["gradio"],
}
EXTRAS["editing"] = [*EXTRAS["models"], "diffusers"]
EXTRAS["tuning"] = [*EXTRAS["models"], "peft"]
OF_THE_CORE_TOO = {"httpx2"}  # the client of the Hub needs them
EVERYTHING = [package for packages in EXTRAS.values() for package in packages if package not in OF_THE_CORE_TOO]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run Python in the repository's root without some packages."""
    hide = tmp_path_factory.mktemp("hide")
    (hide / "sitecustomize.py").write_text(HIDE, encoding="utf-8")

    def start(*arguments: str, hidden: Sequence[str] = EVERYTHING) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HIDDEN_PACKAGES": ",".join(hidden), "PYTHONPATH": str(hide)}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    return start


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of one score each, original and edit."""
    tmp_path = tmp_path_factory.mktemp("scores")
    for number, side in enumerate(("original", "edited")):
        (tmp_path / side).mkdir()
        pitches = np.random.default_rng(number).integers(60, 72, 32)
        save_midi(Score(make_notes(np.arange(32) * 480, 480, pitches), 480), tmp_path / side / "tune.mid")
    return tmp_path


def assert_one_line(run: subprocess.CompletedProcess[str], extra: str) -> None:
    """What is told is one line: the package, all packages of the extra with their bounds, and the form for a clone."""
    assert run.returncode != 0
    assert run.stdout == ""
    [line] = run.stderr.splitlines()
    assert_says_what_to_install(line, extra)


def assert_says_what_to_install(line: str, extra: str) -> None:
    package = EXTRAS[extra][0].replace("_", "-")
    assert re.search(rf'''needs the package '[\w-]+'; install it with: pip install "(.+ ")?{package}>=[\d.]+"''', line)
    assert re.search(rf'\(in a clone of music_evals: pip install -e "\.\[([a-z]+,)*{extra}(,[a-z]+)*\]"\)$', line)


VERBS = {
    "preserve --dataset known_edits --config small": "audio",
    "preserve --reference {scores}/original --estimate {scores}/edited --report": "report",
    "inpainting --dataset jsb_chorales --config musib --limit 2 --model models/anticipation_rnn": "models",
    "inpainting --dataset jsb_chorales --config musib --limit 2 --report": "report",
    "lyrics --dataset caimd --config demo --predictions {scores}/none.jsonl": "lyrics",
    "describe --dataset caimd --config demo": "text",
    "discrepancy --dataset caimd --config demo": "text",
    "discrepancy --dataset caimd --config demo --encoder char-ngrams --plot": "report",
    "write-lyrics --dataset caimd --config demo --rhyme char --model models/none": "lyrics",
    "train models/anticipation_rnn/train.yaml": "models",
    "train models/music_tagger/train.yaml": "models",
}


TOGETHER = {
    "preserve --dataset known_edits --config small": "audio,report",
    "inpainting --dataset jsb_chorales --config musib --limit 2 --model models/anticipation_rnn": "models,report",
    "discrepancy --dataset caimd --config demo": "text,report",
    "write-lyrics --dataset caimd --config demo --rhyme char --model models/none": "lyrics,models",
}
"""Command -> all extras that it needs and that are missing."""


RUN_VERBS = """
import contextlib, io, json, sys
from music_evals.cli import main
ended = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(words)
    ended.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(ended))
"""


DEFAULTS = "preserve --reference {scores}/original --estimate {scores}/edited --resamples 20"
JUDGED = (
    "inpainting --dataset jsb_chorales --config musib --limit 2 --seeds 1 --baselines silence --resamples 20",
    "discrepancy --dataset caimd --config demo --encoder char-ngrams --permutations 10",
)
LISTED = ("list tasks", "list models", "completion bash", "examples {scores}/examples")


@pytest.fixture(scope="module")
def ended(run: Run, scores: Path) -> dict[str, tuple[int, str, str]]:
    """All commands in one process, which spares 18 starts: the code of each, and what it printed on both streams."""
    (scores / "none.jsonl").touch()
    commands = {command: words_of(command, scores) for command in (*VERBS, DEFAULTS, *JUDGED, *LISTED)}
    together = run("-c", RUN_VERBS, json.dumps([*commands.values()]))
    assert together.returncode == 0, together.stderr
    found = [(code, out, err) for code, out, err in json.loads(together.stdout)]
    return dict(zip(commands, found, strict=True))


def words_of(command: str, scores: Path) -> list[str]:
    """Return a command with the folder that it writes, where it writes one."""
    words = command.format(scores=scores).split()
    if command in LISTED:
        return words
    return [*words, "--out", str(scores / ("out" if command in VERBS else f"out_of_{words[0]}"))]


@pytest.mark.slow
def test_verbs_end_in_one_line(run: Run, scores: Path, ended: dict[str, tuple[int, str, str]]) -> None:
    """One of them as users start it, and all in one process."""
    for command, extra in VERBS.items():
        code, stdout, stderr = ended[command]
        assert_one_line(subprocess.CompletedProcess(command, code, stdout, stderr), extra)
        assert code == 2, command
        if command in TOGETHER:
            assert stderr.endswith(f'pip install -e ".[{TOGETHER[command]}]")\n'), stderr
    first = next(iter(VERBS))
    alone = run("-m", "music_evals.cli", *words_of(first, scores))
    assert (alone.returncode, alone.stdout, alone.stderr) == ended[first]
    assert not (scores / "out").exists()


@pytest.mark.slow
def test_a_writer_needs_its_own_extra_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "writer").mkdir()
    (tmp_path / "writer" / "config.json").write_text("{}")
    words = ["write-lyrics", "--dataset", "caimd", "--config", "demo", "--rhyme", "char", "--limit", "2"]
    more = ["--model", str(tmp_path / "writer"), "--out", str(tmp_path / "out")]
    hidden = [package for package in EXTRAS["models"] if package not in OF_THE_CORE_TOO]
    assert_one_line(run("-m", "music_evals.cli", *words, *more, hidden=hidden), "models")


@pytest.mark.slow
def test_recordings_need_their_extractors_before_any_work(run: Run, tmp_path: Path) -> None:
    import soundfile

    for side in ("original", "edited"):
        (tmp_path / side).mkdir()
        for number in range(2):
            noise = np.random.default_rng(number).standard_normal(22050).astype(np.float32) / 10
            soundfile.write(tmp_path / side / f"{number}.wav", noise, 22050)
    sides = ["--reference", str(tmp_path / "original"), "--estimate", str(tmp_path / "edited")]
    ended = run("-m", "music_evals.cli", "preserve", *sides, "--out", str(tmp_path / "out"), hidden=EXTRAS["audio"][:2])
    assert_one_line(ended, "audio")
    assert not (tmp_path / "out").exists()


def test_what_a_default_cannot_draw_is_left_out_with_a_remark(
    scores: Path, ended: dict[str, tuple[int, str, str]]
) -> None:
    """Scores are compared without any extra."""
    code, _, stderr = ended[DEFAULTS]
    assert code == 0, stderr
    [remark] = [line for line in stderr.splitlines() if line.startswith("note: report.html was left out")]
    assert "matplotlib>=" in remark
    assert {path.name for path in (scores / "out_of_preserve").iterdir()} == {"records", "results.json", "table.md"}


def test_contexts_and_tags_are_judged_without_any_extra(ended: dict[str, tuple[int, str, str]]) -> None:
    for command in JUDGED:
        code, _, stderr = ended[command]
        assert code == 0, stderr
        assert "was left out: a picture needs the package 'matplotlib'" in stderr


def test_what_there_is_is_listed_without_any_extra(ended: dict[str, tuple[int, str, str]]) -> None:
    for command in LISTED:
        code, stdout, stderr = ended[command]
        assert code == 0, stderr
        assert stdout


RUN_APPS = """
import json, runpy, sys
told = {}
for app in sys.argv[1:]:
    try:
        runpy.run_path(app, run_name="__main__")
    except SystemExit as ended:
        told[app] = ended.code
print(json.dumps(told))
"""


@pytest.mark.slow
def test_every_app_ends_in_one_line(run: Run) -> None:
    """Which extras a page needs stands in its requirements.txt."""
    alone = run(str(APPS[0]))
    assert_one_line(alone, "spaces")
    together = run("-c", RUN_APPS, *map(str, APPS))
    assert together.returncode == 0, together.stderr
    told = json.loads(together.stdout)
    assert told[str(APPS[0])] == alone.stderr.rstrip("\n")
    for app in APPS:
        requirements = app.with_name("requirements.txt").read_text(encoding="utf-8")
        [named] = re.findall(r"music_evals\[([\w,]+)\]", requirements)
        for extra in named.split(","):
            assert_says_what_to_install(told[str(app)], extra)


COMPUTE = """
import json, sys, numpy as np, evaluate
cache, *names = sys.argv[1:]
tone = (np.sin(np.arange(44100) / 20).astype(np.float32), 22050)
tokens = np.full(384, 60, np.uint8)
pairs = {
    "lyric_structure": ("(verse)\\n床前明月光\\n疑是地上霜", "(verse)\\nccccR\\nccccR"),
    "tag_semantic_similarity": (["a"], ["b"]),
    "musical_inpainting": (tokens[144:240], tokens),
    **dict.fromkeys(
        ["voicing_recall", "music_context_preservation", "beat_f_measure", "chroma_dtw_similarity", "segment_ari"],
        (tone, tone),
    ),
}
missing, computed = {}, {}
for name in names:
    module = evaluate.load(f"./metrics/{name}", cache_dir=cache)
    if name in pairs:
        estimate, reference = pairs[name]
        try:
            computed[name] = module.compute(predictions=[estimate], references=[reference]).get("note_f1")
        except ImportError as error:
            missing[name] = f"{type(error).__name__}: {error}"
print(json.dumps([missing, computed]))
"""
MODULES = {
    "voicing_recall": "audio",
    "music_context_preservation": "audio",
    "lyric_structure": "lyrics",
    "tag_semantic_similarity": "text",
}


@pytest.mark.slow
def test_every_module_loads_and_computes_or_names_what_it_needs(run: Run, tmp_path: Path) -> None:
    """Tokens, and recordings but for their melody, are scored without any extra."""
    names = sorted(path.parent.name for path in APPS if path.parent.parent.name == "metrics")
    ended = run("-W", "ignore", "-c", COMPUTE, str(tmp_path / "cache"), *names)
    assert ended.returncode == 0, ended.stderr
    missing, computed = json.loads(ended.stdout.splitlines()[-1])
    assert computed.keys() == {"beat_f_measure", "chroma_dtw_similarity", "segment_ari", "musical_inpainting"}
    assert computed["musical_inpainting"] == 1
    assert missing.keys() == MODULES.keys()
    for name, extra in MODULES.items():
        assert missing[name].startswith("MissingBackendError: ")
        assert_says_what_to_install(missing[name], extra)


def test_a_name_of_the_package_says_what_it_needs(run: Run) -> None:
    ended = run(
        "-c",
        "import music_evals, sys\n"
        "try: music_evals.evaluate_lyrics(['(verse)\\nccR'], ['(verse)\\n春眠晓'])\n"
        "except ImportError as error: sys.exit(str(error))",
    )
    assert_one_line(ended, "lyrics")


def test_the_extras_here_are_those_of_the_project() -> None:
    for extra, packages in EXTRAS.items():
        declared = [re.split(r"[^\w.-]", line)[0].replace("-", "_") for line in errors._requirements(extra)]
        assert declared == packages


def test_the_extra_all_is_every_extra_of_users() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    [named] = declared["all"]
    assert set(re.findall(r"\w+", named.partition("[")[2])) == declared.keys() - {"all", "docs", "dev"}


def test_all_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {"one": ["numpy>=2"], "two": ["no-such-package>=1"], "three": ["nor-this[x]>=2,<3", "numpy"]}
    monkeypatch.setattr(errors, "_requirements", declared.__getitem__)
    check_extras(["one"], "this page")
    expected = (
        "this page needs the package 'no-such-package'; install it with: "
        'pip install "no-such-package>=1" "nor-this[x]>=2,<3" "numpy" '
        '(in a clone of music_evals: pip install -e ".[two,three]")'
    )
    with pytest.raises(MissingBackendError, match=f"^{re.escape(expected)}$"):
        check_extras(["one", "two", "three"], "this page")


def test_modules_of_our_own_that_are_missing_are_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), importing("models", "training"):
        import music_evals.no_such_module  # noqa: F401
    with pytest.raises(MissingBackendError, match="'no_such_package'"), importing("models", "training"):
        import no_such_package  # noqa: F401
