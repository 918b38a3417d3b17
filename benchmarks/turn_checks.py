"""What counting turns takes, and saying why replies are not read: `python benchmarks/turn_checks.py`.

Prints microseconds of processor time a turn, the best of several rounds, for replies that are read and that are not;
and milliseconds of the one advice of a run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.api import Completion, Move
from harness.config import resolve, spec
from harness.config.project import find
from harness.engines.mock import Mock
from harness.runtime.reply_advice import advice
from harness.runtime.turn_shares import TurnCounts, TurnShares

TURNS, ROUNDS = 20_000, 7
READ = Move("a", "act", "WAIT", calls=(Completion("ACTION: WAIT " * 40, finish_reason="stop"),))
UNREAD = Move("a", "act", None, "no valid answer", "parse", (Completion("I will " * 90, finish_reason="length"),))


def best(act: Callable[[], object]) -> float:
    """Seconds of processor time, the least of several rounds."""
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        act()
        took.append(time.process_time() - began)
    return min(took)


def counted(move: Move) -> list[TurnCounts]:
    """What is reported of so many turns with this end."""
    reports: list[TurnCounts] = []
    shares = TurnShares(lambda model, counts: reports.append(counts))
    for number in range(TURNS):
        episode = str(number % 256)
        shares.begin("model", episode, "a")
        shares.end(episode, "condition=sim3nc", move)
    return reports


def main() -> None:
    """Print the figures."""
    for name, move in (("read", READ), ("unread", UNREAD)):
        print(f"a turn that is {name:8} {best(partial(counted, move)) / TURNS * 1e6:8.2f} µs")
    plan = resolve.plan(spec.load("dpbench_quick", find(), []), find(), Mock())
    counts = counted(UNREAD)[0]
    print(f"the advice of a run     {best(lambda: [*advice(plan, 'model', counts, True)]) * 1e3:8.2f} ms")


if __name__ == "__main__":
    main()
