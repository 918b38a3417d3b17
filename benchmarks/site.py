"""How long a site takes to build, and how large its first page is: models × benchmarks, a run each.

python benchmarks/site.py                 # 100 runs of 12 benchmarks, then 1,200: 100 of each
python benchmarks/site.py --smoke         # 4 runs of 2 benchmarks

Each benchmark is played once, by policies; its other runs are copies with other names and, by a model's skill, other
numbers. So every page is there: standings, charts, models, runs, and two episodes of each run.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness

_SPECS = (
    *("agentsnet_quick", "dpbench_quick", "silo_quick", "mas_quick", "arithmetic", "arithmetic_votes"),
    *(
        "networks/coloring",
        "networks/matching",
        "sharded/ranks",
        "sharded/inventory",
        "worlds/trading",
        "worlds/commons",
    ),
)
_LIMIT = 5
"""Cases of a condition."""


def played(spec: str, folder: Path) -> None:
    """A run of a spec's baseline."""
    harness.evaluate(spec, output_path=folder, limit=_LIMIT)


def copied(first: Path, folder: Path, model: str, skill: float) -> None:
    """A run of another model: its headline is higher, the greater its skill."""
    shutil.copytree(first, folder)
    record, luck = json.loads((first / "run.json").read_text()), random.Random(folder.as_posix()[-40:])
    start = f"2026-01-01T00:00:00.{luck.randrange(10**6):06}+00:00"
    (folder / "run.json").write_text(json.dumps({**record, "model": model, "run": folder.name, "start": start}))
    with (folder / "scores.jsonl").open("w") as file:
        for line in (first / "scores.jsonl").read_text().splitlines():
            score = json.loads(line)
            score["labels"]["model"] = model
            for name, number in score["numbers"].items():
                if number in (0.0, 1.0):
                    score["numbers"][name] = float(luck.random() < 0.2 + 0.6 * skill)
            file.write(json.dumps(score) + "\n")


def results(folder: Path, firsts: Path, specs: tuple[str, ...], runs: int) -> None:
    """So many runs of the benchmarks, each by the models in turn."""
    for i in range(runs):
        spec, number = specs[i % len(specs)], i // len(specs)
        skill = number * len(specs) / max(1, runs)
        copied(firsts / spec, folder / spec / f"{number:03}", f"model-{number:03}", skill)


def main() -> None:
    """Print a line a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a small one")
    smoke = parser.parse_args().smoke
    specs = _SPECS[:2] if smoke else _SPECS
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for spec in specs:
            played(spec, work / "firsts" / spec)
        for runs in (4,) if smoke else (100, 1_200):
            results(work / f"runs-{runs}", work / "firsts", specs, runs)
            target = work / f"site-{runs}"
            began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            command = ["leaderboard", str(work / f"runs-{runs}"), "--format", "site", "-o", str(target)]
            subprocess.run([sys.executable, "-m", "harness", *command], check=True, stderr=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            files = [file.stat().st_size for file in target.rglob("*") if file.is_file()]
            first = (target / "index.html").stat().st_size + (target / "static" / "site.css").stat().st_size
            print(
                f"{runs} runs of {len(specs)} benchmarks: {time.perf_counter() - began:.1f} s, {cpu:.1f} s CPU; "
                f"first page {first / 1000:.0f} kB with its style, {len(files)} files, {sum(files) / 1e6:.1f} MB"
            )


if __name__ == "__main__":
    main()
