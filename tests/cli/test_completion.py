"""The verb ``completion``: the script of bash runs in bash, the others are read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from music_evals import cli
from music_evals.metrics.catalogue import PRESERVATION_METRICS


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_songs").mkdir()
    (tmp_path / "jazz.csv").touch()
    (tmp_path / "models" / "$(touch hacked)").mkdir(parents=True)
    assert cli.main(["completion", "bash"]) == 0
    return capsys.readouterr().out


def completed(script: str, *words: str) -> set[str]:
    """Return what bash offers for the last word of a command."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    quoted = " ".join(f"'{word}'" for word in ("music-evals", *words))
    code = f"""{script}
COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; COMP_LINE="${{COMP_WORDS[*]}}"; COMP_POINT=${{#COMP_LINE}}
function=$(complete -p music-evals | sed -E 's/.*-F ([^ ]+).*/\\1/')
$function music-evals "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run([bash, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stderr
    return {word.strip() for word in done.stdout.splitlines()}


@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        (("pre",), {"preserve"}, {"push"}),
        (("leaderboard", ""), {"add", "build"}, {"preserve"}),
        (("list", "m"), {"metrics", "models"}, {"tasks"}),
        (("preserve", "--est"), {"--estimate", "--estimate-column"}, {"--reference"}),
        (("preserve", "--dataset", "k"), {"known_edits"}, {"jsb_chorales"}),
        (("inpainting", "--dataset", "j"), {"jsb_chorales", "jazz.csv"}, {"known_edits"}),
        (("inpainting", "--model", ""), {"anticipation_rnn", "my_songs"}, {"$(touch", "hacked"}),
        (("preserve", "--metrics", "key,beat"), {"key,beat_f_measure"}, {"beat_f_measure"}),
        (("preserve", "--variant", ""), {"corrected", "official", "paper"}, {"jazz.csv"}),
        (("preserve", "--reference", "my"), {"my_songs"}, {"jazz.csv"}),
        (("inpainting", "--baselines", "all,si"), {"all,silence"}, set()),
        (("publish", "metrics/note"), {"metrics/note_f1"}, {"metrics/delta_bpm"}),
        (("completion", ""), {"bash", "zsh", "tcsh"}, set()),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_bash_completes(
    script: str, tmp_path: Path, words: tuple[str, ...], offered: set[str], not_offered: set[str]
) -> None:
    found = completed(script, *words)
    assert offered <= found
    assert not not_offered & found
    assert not (tmp_path / "hacked").exists(), "a name of a folder is no code"


def test_every_metric_is_offered(script: str) -> None:
    assert set(PRESERVATION_METRICS) <= completed(script, "preserve", "--metrics", "")


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in (
        "preserve",
        "known_edits",
        "circle_of_fifths_distance",
        "--estimate" if shell == "zsh" else "estimate",
    ):
        assert word in script
    where = shutil.which(shell)
    if where is not None:
        subprocess.run([where, "-n"], input=script, text=True, check=True)
