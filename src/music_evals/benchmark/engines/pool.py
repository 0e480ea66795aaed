"""The engine of several processes of this machine."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Sequence
from concurrent import futures
from typing import Any

from music_evals.benchmark.engines.process import WorkerProcess
from music_evals.benchmark.engines.units import Answered, Answers, Failed, Unit, UnitQueue, Work
from music_evals.files import scratch_folder


def local(units: Sequence[Unit], work: Work, *, workers: int = 1) -> Answers:
    """Yield each unit with its answer, worked out in so many processes; a unit that ends its process has `Failed`."""
    queue, pickled = UnitQueue(units), pickle.dumps(work)
    # work that is defined in the user's script is found by running that script again, and in no other way
    script = b"__main__" in pickled
    running: dict[futures.Future[Any], WorkerProcess] = {}
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(scratch_folder())
        idle = [
            WorkerProcess(pickled, scratch / str(number), script=script) for number in range(min(workers, len(units)))
        ]
        for process in idle:
            stack.callback(process.end)
        while True:
            # all that can work is given work before what is done is handed out: writing it down takes time
            for process in list(idle):
                unit = queue.take(process.unit.place, [other.unit.place for other in running.values()])
                if unit is not None:
                    idle.remove(process)
                    running[process.start(unit)] = process
            if not running:
                return
            done = []
            for future in futures.wait(running, return_when=futures.FIRST_COMPLETED).done:
                process = running.pop(future)
                idle.append(process)
                answer = process.answer(future)
                if isinstance(answer, Failed) and process.unit.parts:
                    queue.add(process.unit.parts)
                else:
                    done.append(Answered(process.unit, answer))
            yield from done
