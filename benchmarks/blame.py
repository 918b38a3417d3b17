"""How long `harness blame` and replays take: scripted teams of five agents with ten turns each.

    python benchmarks/blame.py [--episodes N]

CPU seconds of this process: to score the run from its journal, to play its episodes once more in memory (a replay that
asks nothing), and to find out who made each fail. Once an agent errs in its last turn, and once in all its turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from harness.evaluation.rescore import rescored
from harness.extensions.blame.blame import blamed
from harness.extensions.replay.base_run import BaseRun
from harness.extensions.replay.simulation import Simulation, Substitution
from harness.runtime.session import session

TEAM = "agentsnet/classical"
SAMPLES = 10
SPEC: dict[str, Any] = {
    "name": "five_by_ten",
    "task": {
        "use": "agentsnet/consensus",
        "graphs": "small_world",
        "size": 5,
        "instances": SAMPLES,
        "source": "seeded",
    },
    "protocol": {"use": "local_rounds", "rounds": 9, "channel": "neighbors"},
    "prompts": "agentsnet/standard",
    "baseline": TEAM,
    "metrics": ["solved"],
    "headline": {"metric": "solved", "ceiling": TEAM},
    "tables": [{"title": "Solved", "rows": "model", "columns": "metric", "metrics": "solved"}],
}
FAULTS: dict[str, dict[str, Any]] = {"last turn": {"at": 9}, "all turns": {"at": 0, "every": True}}


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def played_once(folder: Path) -> float:
    """CPU seconds to play every episode in memory, without any change."""
    parent = BaseRun.open(folder)
    names = [score.id for score in parent.run.scores]
    parent.read(names)

    async def play() -> None:
        for name in names:
            rehearsal = Simulation(parent, name, lambda: None, "solved", {})  # type: ignore[arg-type, return-value]
            await rehearsal.simulate(Substitution(), watched=False)

    with session() as one:
        return seconds(lambda: one.run(play()))


def measured(fault: dict[str, Any], episodes: int, folder: Path) -> dict[str, Any]:
    """A row of the table."""
    group = {"count": 1, "policy": {"use": "faulty", "of": TEAM, **fault}}
    agents = f"agents={json.dumps({'default': 'model', 'faulty': group})}"
    run = harness.evaluate(SPEC, overrides=(agents,), repeats=-(-episodes // SAMPLES), output_path=folder)
    row: dict[str, Any] = {"score": seconds(lambda: rescored(folder)), "replay": played_once(folder)}
    began = time.process_time()
    found = blamed(run)
    courses = sum(one.courses for one in found.verdicts)
    return {**row, "blame": time.process_time() - began, "failed": len(found.verdicts), "plays": courses}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1000)
    options = parser.parse_args()
    row = "{:<10} {:>9} {:>9} {:>9} {:>9} {:>9}"
    print(row.format("errs in", "score s", "replay s", "blame s", "failed", "plays"), flush=True)
    for name, fault in FAULTS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = measured(fault, options.episodes, Path(folder) / "run")
        numbers = [f"{found[key]:.1f}" for key in ("score", "replay", "blame")]
        print(row.format(name, *numbers, found["failed"], found["plays"]), flush=True)


if __name__ == "__main__":
    main()
