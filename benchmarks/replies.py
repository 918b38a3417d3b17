"""How long each form takes to read a plain reply of 500 characters: `python benchmarks/replies.py`.

Prints microseconds of processor time, the best of several rounds. No two replies are the same, as in a run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.replies.parse_guard import read
from tests.core.replies.every_form import FORMS

LENGTH, MANY, ROUNDS = 500, 400, 7
PROSE = (
    "Let me think about what the others will do next. If all of them take the left one first, nobody can go on, "
    "so one of us has to wait. Since I have seen that my neighbor waited last time, I go on now and say so. "
) * 4


def main() -> None:
    """Print a line for each form, and the median."""
    took = []
    for name, (form, asked) in FORMS.items():
        text = f"{PROSE[: max(0, LENGTH - len(asked))]}\n{asked}"
        best = float("inf")
        for each in range(ROUNDS):
            replies = [text.replace("Let me", f"Let {each} {i} me") for i in range(MANY)]
            began = time.process_time()
            for reply in replies:
                read(form, reply)
            best = min(best, (time.process_time() - began) / MANY)
        took.append(best)
        print(f"{name:30} {best * 1e6:8.1f}")
    print(f"{'median':30} {sorted(took)[len(took) // 2] * 1e6:8.1f}")


if __name__ == "__main__":
    main()
