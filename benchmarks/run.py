"""How fast the harness itself is: `python benchmarks/run.py [--smoke] [NAME …]`.

Not tests: nothing here fails on a slow machine. Every figure is measured in a process of its own; times are medians.

    calls     CPU time per model call with the mock engine, in 10-turn and 100-turn episodes
    suite     wall time of the AgentsNet suite with classical policies (27 networks × 5 tasks)
    scaling   coloring with policies on 100, 1,000 and 10,000 nodes: time and memory per move
    startup   wall time and peak memory of --help, list, validate
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, object]


def measured(arguments: list[str]) -> tuple[float, float, float, str]:
    """(wall s, CPU s, peak MiB, stdout) of `python ARGUMENTS`."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{arguments} failed with {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out


def calls(smoke: bool) -> list[Row]:
    """A network of 16 agents that write one message each round, played by the mock engine."""
    rows: list[Row] = []
    for turns, repeats in ((10, 3 if smoke else 20), (100, 1 if smoke else 3)):
        out = [
            json.loads(measured([__file__, "--work", f"calls:{turns}:{repeats}"])[3]) for _ in range(1 if smoke else 3)
        ]
        ms = statistics.median(1000 * o["cpu"] / o["calls"] for o in out)
        rows.append({"turns an episode": turns, "calls": out[0]["calls"], "CPU ms a call": round(ms, 3)})
    return rows


def work_calls(turns: int, repeats: int) -> Row:
    """In a process of its own: CPU seconds and number of calls, imports and set-up left out."""
    import harness
    from harness.api import Request
    from harness.engines.mock import Mock

    count = 0
    talk: dict[str, str] = {}

    def answer(request: Request) -> str:
        nonlocal count
        count += 1
        question = request.thread.messages[-1]["content"]
        if "'### Final Answer ###'" in question:
            return "### Final Answer ### 0"
        seat = request.id.rsplit("/", 3)[1]
        if seat not in talk:  # whoever is named first in the list of neighbours
            first = request.thread.messages[0]["content"].split("immediate neighbors (")[1].split(",")[0].rstrip(")")
            talk[seat] = json.dumps({first: "I propose that we all choose 0, because it is the smaller value."})
        return "Let me think about it. " * 10 + talk[seat]

    spec = {
        "name": "calls",
        "extends": "agentsnet",
        "task": {"use": "agentsnet/consensus", "graphs": "small_world", "size": 16},
        "protocol": {"rounds": turns - 1},
        "matrix": {"only": ["agentsnet/standard"], "problem": None, "graphs": None, "size": None},
        "prompts": "${only}",
        "tables": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        harness.evaluate(spec, Mock(function=answer), limit=1, repeats=1, output_path=Path(folder) / "warm")
        count, began = 0, time.process_time()
        harness.evaluate(spec, Mock(function=answer), repeats=repeats, output_path=Path(folder) / "run")
        return {"cpu": time.process_time() - began, "calls": count}


def suite(smoke: bool) -> list[Row]:
    """`harness eval --spec specs/agentsnet.yaml`, as README has it."""
    more = ["--set", "matrix.size=[4]"] if smoke else []
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "harness", "eval", "--spec", "specs/agentsnet.yaml", "--quiet", "--output_path", f"{folder}/r"]
        wall, cpu, peak, _ = measured([*command, *more])
    return [
        {
            "command": "eval --spec specs/agentsnet.yaml",
            "wall s": round(wall, 2),
            "CPU s": round(cpu, 2),
            "peak MiB": round(peak),
        }
    ]


def scaling(smoke: bool) -> list[Row]:
    """Ten rounds of coloring on small-world networks."""
    rows: list[Row] = []
    for size in (100, 1000) if smoke else (100, 1000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            wall, cpu, peak, _ = measured(
                ["-m", "harness", "eval", "--spec", "specs/agentsnet.yaml", "--quiet", "--output_path", f"{folder}/r",
                 "--set", f"matrix={{problem: [coloring], graphs: [small_world], size: [{size}]}}",
                 "--set", "protocol.rounds=10", "--set", "task.source=seeded", "--set", "tables=[]", "--limit", "1"]
            )  # fmt: skip
        moves = size * 11
        rows.append(
            {
                "nodes": size,
                "moves": moves,
                "wall s": round(wall, 2),
                "CPU ms a move": round(1000 * cpu / moves, 3),
                "peak MiB": round(peak),
            }
        )
    return rows


def startup(smoke: bool) -> list[Row]:
    """What a person waits for before anything happens."""
    rows: list[Row] = []
    for command in ("--help", "list tasks", "list specs", "validate specs/agentsnet.yaml"):
        runs = [measured(["-m", "harness", *command.split()]) for _ in range(1 if smoke else 7)]
        rows.append(
            {
                "command": command,
                "wall s": round(statistics.median(run[0] for run in runs), 3),
                "peak MiB": round(max(run[2] for run in runs), 1),
            }
        )
    return rows


BENCHMARKS: dict[str, Callable[[bool], list[Row]]] = {
    "calls": calls,
    "suite": suite,
    "scaling": scaling,
    "startup": startup,
}


def main() -> None:
    """Run the benchmarks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME")
    parser.add_argument("--smoke", action="store_true", help="small sizes, one run each: does it work at all?")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        _, turns, repeats = options.work.split(":")
        print(json.dumps(work_calls(int(turns), int(repeats))))
        return
    for name in options.names or BENCHMARKS:
        print(
            f"\n## {name}\n\n{tabulate(BENCHMARKS[name](options.smoke), headers='keys', tablefmt='github')}", flush=True
        )


if __name__ == "__main__":
    main()
