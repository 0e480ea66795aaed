"""A process that talks to the local Hub: HF_ENDPOINT is read when the client is imported, so that it needs its own.

One process serves many tests, for its imports take longer than most of them; it runs the command line or Python that it
is given and answers with what came of it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .hub_server import LocalHub

WORKER = r"""
import contextlib, io, json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    task = json.loads(line)
    os.chdir(task["cwd"])
    os.environ.pop("HF_TOKEN", None)
    os.environ.update(task["env"])
    out, err, answer = io.StringIO(), io.StringIO(), {"code": 0, "result": None}
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            if "argv" in task:
                from music_evals import cli
                answer["code"] = cli.main(task["argv"])
            else:
                names = {}
                exec(task["python"], names)
                answer["result"] = names.get("result")
        except SystemExit as stop:
            answer["code"] = stop.code
        except BaseException:
            answer["code"] = -1
            traceback.print_exc()
    answer |= {"stdout": out.getvalue(), "stderr": err.getvalue()}
    print(json.dumps(answer), file=answers, flush=True)
"""


def client_environment(hub: LocalHub, home: Path) -> dict[str, str]:
    """Return the environment of a process that asks the local Hub and nobody else."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.endswith("_OFFLINE") and not key.lower().endswith("_proxy") and key != "HF_TOKEN"
    }
    return kept | {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "NO_PROXY": "*",
    }


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came of a task: exit code, what was printed, the value of `result`."""

    code: int
    stdout: str
    stderr: str
    result: Any


class HubClient:
    """The process, and the folder that tasks run in unless they name another."""

    def __init__(self, hub: LocalHub, home: Path, root: Path) -> None:
        self.hub, self.root = hub, root
        self.environment = client_environment(hub, home)
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def _ask(self, task: dict[str, Any], token: str | None, cwd: Path | None) -> Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        environment = {} if token is None else {"HF_TOKEN": token}
        print(
            json.dumps({**task, "cwd": str(cwd or self.root), "env": environment}), file=self.process.stdin, flush=True
        )
        return Answer(**json.loads(self.process.stdout.readline()))

    def cli(self, *arguments: str, token: str | None = None, cwd: Path | None = None) -> Answer:
        """Run ``music-evals``."""
        return self._ask({"argv": list(arguments)}, token, cwd)

    def python(self, code: str, *, token: str | None = None, cwd: Path | None = None) -> Any:
        """Run Python and return what it calls `result`."""
        answer = self._ask({"python": code}, token, cwd)
        assert answer.code == 0, answer.stderr
        return answer.result

    def start(self, arguments: Sequence[str], *, token: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start ``music-evals`` in a process of its own, which may be killed."""
        code = "import sys; from music_evals.cli import main; sys.exit(main())"
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=cwd or self.root,
            env={**self.environment, "HF_TOKEN": token},
        )
