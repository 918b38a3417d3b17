"""The sandbox's part of `python benchmarks/run.py`: programs graded by execution in a second."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]

PROMPT = "from typing import List\n\n\ndef largest(numbers: List[int]) -> int:\n    ''' The largest of numbers. '''\n"
TEST = "def check(candidate):\n" + "".join(f"    assert candidate(list(range({n}))) == {n - 1}\n" for n in (1, 9, 99))


def sandbox(measured: Measured, file: str, smoke: bool) -> list[Row]:
    """Programs of a few lines, every second one wrong, each in two processes of its own."""
    rows: list[Row] = []
    for workers in (1, 2):
        out = json.loads(measured([file, "--work", f"sandbox:{workers}:{10 if smoke else 200}"])[3])
        rows.append({"at a time": workers, "programs": out["programs"], "programs/s": round(out["rate"], 1)})
    return rows


def work_sandbox(workers: int, programs: int) -> Row:
    """In a process of its own: programs a second, imports and the first one left out."""
    from harness.extensions.sandbox import check

    def graded(number: int) -> bool:
        code = f"{PROMPT}    return {('max', 'min')[number % 2]}(numbers)\n"
        return check(PROMPT, code, TEST, "largest").passed

    graded(0)
    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        passed = sum(pool.map(graded, range(programs)))
    if passed != (programs + 1) // 2:
        raise SystemExit(f"{passed} of {programs} programs passed; every second one is right")
    return {"programs": programs, "rate": programs / (time.perf_counter() - began)}
