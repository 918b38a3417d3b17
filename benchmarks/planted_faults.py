"""How well `harness blame` finds planted faults: the share of episodes whose agent and turn it names.

    python benchmarks/planted_faults.py

One agent of a team that solves its task errs at a known turn of its own, by the policy `faulty`. Counted are episodes
in which that makes the team do worse than the same team without the fault. With two faults those count in which each
fault alone does so too, and both are made.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
from harness.config.project import find
from harness.config.spec import load
from harness.extensions.replay.blame import blamed
from harness.extensions.replay.parent import Parent
from harness.results import Run
from harness.runtime.players import starts_over

SIMULATED = {"use": "simulated", "accuracy": 1.0, "conformity": 1.0}
DISCUSSION: dict[str, Any] = {
    "name": "planted_discussion",
    "task": {"use": "arithmetic", "size": 20, "terms": 4},
    "protocol": {"use": "discussion", "agents": 5, "drafts": "one", "decision": "last_word", "max_rounds": 2},
    "prompts": "ensembles/standard",
    "baseline": SIMULATED,
    "metrics": ["score"],
    "headline": {"cell": "score", "ceiling": SIMULATED},
    "tables": [{"title": "Right", "rows": "model", "columns": "metric", "cell": "score"}],
}


@dataclass(frozen=True)
class Family:
    """A team that solves its task.

    Attributes:
        spec: what is played.
        team: the policy of all agents; None: the ceiling of the spec's headline.
        changes: of the spec.
        metric: whose number falls; None: the headline's.
        repeats: for a scale of 1.
        at: turns in which an agent errs.
        faults: kinds of faults.
    """

    spec: str | dict[str, Any]
    team: Any = None
    changes: tuple[str, ...] = ()
    metric: str | None = None
    repeats: int = 1
    at: tuple[int, ...] = (0, 1, 2)
    faults: tuple[str, ...] = ("wrong", "silent")


FAMILIES = {
    "AgentsNet": Family("agentsnet_quick", changes=("matrix.size=[4,8]",), at=(1, 2, 3), faults=("wrong", "late")),
    "SILO-Bench": Family("silo_quick", changes=("matrix.agents=[5]",), faults=("wrong", "silent", "late")),
    "MAS-Bench": Family("mas_quick", changes=("matrix.agents=[3]",), repeats=2),
    "dining table": Family("dpbench_quick", "dpbench/chandy_misra", metric="dpbench/throughput", repeats=5),
    "discussion": Family(DISCUSSION, at=(0, 1), repeats=2, faults=("wrong",)),
    "YAML world": Family("worlds/four_way_stop", changes=("matrix.talk=[0]",), repeats=2),
}


def team_of(family: Family) -> Any:
    """The policy of all agents."""
    if family.team is not None:
        return family.team
    data = family.spec if isinstance(family.spec, dict) else load(family.spec, find()).data
    return data["headline"]["ceiling"]


def planted(family: Family, faults: list[dict[str, Any]], folder: Path, scale: int) -> Run:
    """The family's run, in which one agent for each fault has it."""
    team = team_of(family)
    groups = {
        f"fault {i}": {"count": 1, "policy": {"use": "faulty", "of": team, **fault}} for i, fault in enumerate(faults)
    }
    agents = json.dumps({"default": "model", **groups})
    changes = (f"agents={agents}", f"baseline={json.dumps(team)}", *family.changes)
    repeats = family.repeats * scale
    return harness.evaluate(family.spec, overrides=changes, repeats=repeats, output_path=folder)


def places(run: Run, episodes: Collection[str], faults: list[dict[str, Any]]) -> dict[str, set[tuple[str, int]]]:
    """Episode → the turns in which agents err. One that starts over (a second run in an episode) errs there again."""
    at = {f"fault {i}": fault["at"] for i, fault in enumerate(faults)}
    parent, found = Parent.open(run.folder), dict[str, set[tuple[str, int]]]()
    parent.read(episodes)
    for name in episodes:
        roles, own, erring = parent.jobs[name][1].roles, dict[str, tuple[int, Any]](), set[tuple[str, int]]()
        for one in parent.played(name):
            agent = one.turn.agent
            count, context = own.get(agent, (0, None))
            count = 0 if starts_over(one.turn, context) else count
            if count == at.get(roles.get(agent, "")):
                erring.add((agent, one.index))
            own[agent] = count + 1, one.turn.context
        found[name] = erring
    return found


def worse(run: Run, than: Run, metric: str) -> set[str]:
    """The episodes that go worse than in the other run."""
    sign = -1 if metric == run.headline.metric and run.headline.better == "lower" else 1
    numbers = [{score.id: score.number(metric) for score in one.scores} for one in (run, than)]
    both = ((name, numbers[0][name], numbers[1][name]) for name in numbers[0])
    return {name for name, one, other in both if one is not None and other is not None and sign * one < sign * other}


def one_fault(name: str, family: Family, folder: Path, scale: int) -> Iterator[list[Any]]:
    """Rows of the table, a fault each."""
    team = team_of(family)
    for fault in family.faults:
        looked = failed = agents = turns = 0
        seconds = 0.0
        for at in family.at:
            faults = [{"at": at, "fault": fault}]
            run = planted(family, faults, folder / f"{name}-{fault}-{at}", scale)
            without = planted(family, [{"at": at, "fault": "none"}], folder / f"{name}-{fault}-{at}-none", scale)
            metric = family.metric or run.headline.metric
            began = time.perf_counter()
            lost = worse(run, without, metric)
            found = blamed(run, team, metric=metric, episodes=sorted(lost)) if lost else None
            seconds += time.perf_counter() - began
            planted_at = places(run, lost, faults) if lost else {}
            looked += len(run.scores)
            failed += len(lost)
            for verdict in found.verdicts if found is not None else ():
                assert found is not None
                truth = planted_at[verdict.episode]
                who = {agent for agent, _ in truth}
                agents += {*verdict.agents} == who
                # What is late is missing in one turn, and takes the place of another move in the next.
                allowed = truth | {(agent, index + 1) for agent, index in truth if fault == "late"}
                named = {move.place for move in verdict.named}
                turns += bool(named) and named <= allowed
        yield [name, fault, looked, failed, share(agents, failed), share(turns, failed), f"{seconds:.1f}"]


def two_faults(name: str, family: Family, folder: Path, scale: int) -> list[Any]:
    """The row of the table for two faults at once, at all pairs of turns."""
    team, none = team_of(family), {"fault": "none"}
    looked = made = named = agents = 0
    seconds = 0.0
    for pair in itertools.combinations_with_replacement(family.at, 2):
        both: list[dict[str, Any]] = [{"at": at, "fault": family.faults[0]} for at in pair]
        versions = [both, [both[0], {**both[1], **none}], [{**both[0], **none}, both[1]], [{**o, **none} for o in both]]
        runs = [planted(family, version, folder / f"{name}-{pair}-{i}", scale) for i, version in enumerate(versions)]
        metric = family.metric or runs[0].headline.metric
        lost = set.intersection(*(worse(run, runs[3], metric) for run in runs[:3]))
        looked += len(runs[0].scores)
        if not lost:
            continue
        began = time.perf_counter()
        found = blamed(runs[0], team, metric=metric, episodes=sorted(lost))
        seconds += time.perf_counter() - began
        planted_at = places(runs[0], lost, both)
        for verdict in found.verdicts:
            truth = planted_at[verdict.episode]
            if len({effect.deviation.place[0] for effect in verdict.effects if effect.deviation.place in truth}) < 2:
                continue  # the first ended the episode before the second was made
            made += 1
            agents += {who for who, _ in truth} <= {*verdict.agents}
            places_named = {move.place for move in verdict.named}
            named += places_named <= truth and len({agent for agent, _ in places_named}) == 2
    return [name, "two", looked, made, share(agents, made), share(named, made), f"{seconds:.1f}"]


def share(part: int, whole: int) -> str:
    """A share in percent, with its counts."""
    return f"{100 * part / whole:.1f} % ({part}/{whole})" if whole else "–"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=1, help="play every case so many times as often")
    parser.add_argument("--only", choices=FAMILIES, help="this family alone")
    options = parser.parse_args()
    names = [options.only] if options.only else list(FAMILIES)
    row = "{:<13} {:<7} {:>8} {:>7} {:>20} {:>20} {:>8}"
    print(row.format("family", "fault", "episodes", "failed", "agent", "turn", "seconds"), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for cells in one_fault(name, FAMILIES[name], Path(folder), options.scale):
                print(row.format(*cells), flush=True)
            print(row.format(*two_faults(name, FAMILIES[name], Path(folder), options.scale)), flush=True)


if __name__ == "__main__":
    main()
