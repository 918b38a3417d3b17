"""How well `harness blame` finds planted faults: the share of episodes whose agent and turn it names.

    python benchmarks/planted_faults.py

One agent of a team that solves its task errs at a known turn of its own, by the policy `faulty`. Counted are episodes
in which that makes the team do worse than the same team without the fault. With two faults those count in which each
fault alone does so too, and both are made. The last table has failures that nobody caused: instances that cannot be
solved, and teams all of whose agents err alike.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import harness
from harness.config.project import find
from harness.config.spec import load
from harness.evaluation.run import Run
from harness.extensions.blame.blame import blamed
from harness.extensions.replay.base_run import BaseRun
from harness.runtime.policy_players import starts_over
from harness.tables.headline import Better

SIMULATED = {"use": "simulated", "accuracy": 1.0, "conformity": 1.0}
DISCUSSION: dict[str, Any] = {
    "name": "planted_discussion",
    "task": {"use": "arithmetic", "size": 20, "terms": 4},
    "protocol": {"use": "discussion", "agents": 5, "drafts": "one", "decision": "last_word", "max_rounds": 2},
    "prompts": "panels/standard",
    "baseline": SIMULATED,
    "metrics": ["score"],
    "headline": {"metric": "score", "ceiling": SIMULATED},
    "tables": [{"title": "Right", "rows": "model", "columns": "metric", "metrics": "score"}],
}


@dataclass(frozen=True)
class Family:
    """A team that solves its task.

    Attributes:
        spec: what is played.
        team: the policy of all agents; None: the ceiling of the spec's headline.
        changes: of the spec.
        metric: whose number falls; None: the headline's.
        repeats: of each case.
        at: turns in which an agent errs.
        faults: kinds of faults.
        seeds: how many runs there are of everything, each with another seed.
        two: fields that are others where two agents err.
    """

    spec: str | dict[str, Any]
    team: Any = None
    changes: tuple[str, ...] = ()
    metric: str | None = None
    repeats: int = 1
    at: tuple[int, ...] = (0, 1, 2)
    faults: tuple[str, ...] = ("wrong", "silent")
    seeds: int = 1
    two: Mapping[str, Any] = field(default_factory=dict)


FAMILIES = {
    "AgentsNet": Family(
        "agentsnet_quick",
        changes=("matrix.size=[4,8]", "task.source=seeded"),
        at=(1, 2, 3),
        faults=("wrong", "late"),
        seeds=9,
        two={"seeds": 18},
    ),
    "SILO-Bench": Family("silo_quick", changes=("matrix.agents=[5]",), seeds=10, two={"seeds": 4}),
    "MAS-Bench": Family("mas_quick", changes=("matrix.agents=[3]",), repeats=2, seeds=2),
    "dining table": Family(
        "dpbench_quick",
        "dpbench/chandy_misra",
        metric="dpbench/throughput",
        repeats=5,
        seeds=8,
        two={"at": (0, 2, 4), "seeds": 10, "changes": ("protocol.max_timesteps=16",)},
    ),
    "discussion": Family(DISCUSSION, at=(0, 1), repeats=2, faults=("wrong",), seeds=14, two={"seeds": 30}),
    "YAML world": Family(
        "worlds/four_way_stop",
        changes=("matrix.talk=[0]",),
        repeats=2,
        seeds=10,
        two={"metric": "pace", "faults": ("silent",), "seeds": 12},
    ),
}


def team_of(family: Family) -> Any:
    """The policy of all agents."""
    if family.team is not None:
        return family.team
    data = family.spec if isinstance(family.spec, dict) else load(family.spec, find()).data
    return data["headline"]["ceiling"]


def planted(family: Family, faults: list[dict[str, Any]], folder: Path, seed: int) -> Run:
    """The family's run with this seed, in which one agent for each fault has it."""
    team = team_of(family)
    groups = {
        f"fault {i}": {"count": 1, "policy": {"use": "faulty", "of": team, **fault}} for i, fault in enumerate(faults)
    }
    agents = json.dumps({"default": "model", **groups})
    changes = (f"agents={agents}", f"baseline={json.dumps(team)}", *family.changes)
    return harness.evaluate(family.spec, overrides=changes, repeats=family.repeats, seed=seed, output_path=folder)


def places(run: Run, episodes: Collection[str], faults: list[dict[str, Any]]) -> dict[str, set[tuple[str, int]]]:
    """Episode → the turns in which agents err. One that starts over (a second run in an episode) errs there again."""
    at = {f"fault {i}": fault["at"] for i, fault in enumerate(faults)}
    parent, found = BaseRun.open(run.folder), dict[str, set[tuple[str, int]]]()
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


def better(run: Run, metric: str) -> Better:
    """Which way a number is better: of those that are not the headline, the higher one."""
    return run.headline.better if metric == run.headline.metric else "higher"


def worse(run: Run, than: Run, metric: str) -> set[str]:
    """The episodes that go worse than in the other run."""
    sign = 1 if better(run, metric) == "higher" else -1
    numbers = [{score.id: score.number(metric) for score in one.scores} for one in (run, than)]
    both = ((name, numbers[0][name], numbers[1][name]) for name in numbers[0])
    return {name for name, one, other in both if one is not None and other is not None and sign * one < sign * other}


def one_fault(name: str, family: Family, folder: Path) -> Iterator[list[Any]]:
    """Rows of the table, a fault each."""
    team = team_of(family)
    for fault in family.faults:
        looked = failed = agents = turns = 0
        seconds = 0.0
        for at, seed in itertools.product(family.at, range(family.seeds)):
            faults = [{"at": at, "fault": fault}]
            own = folder / f"{name}-{fault}-{at}-{seed}"
            run = planted(family, faults, own / "fault", seed)
            without = planted(family, [{"at": at, "fault": "none"}], own / "none", seed)
            metric = family.metric or run.headline.metric
            began = time.perf_counter()
            lost = worse(run, without, metric)
            found = (
                blamed(run, team, metric=metric, better=better(run, metric), episodes=sorted(lost)) if lost else None
            )
            seconds += time.perf_counter() - began
            planted_at = places(run, lost, faults) if lost else {}
            looked += len(run.scores)
            failed += len(lost)
            for verdict in found.verdicts if found is not None else ():
                truth = planted_at[verdict.episode]
                who = {agent for agent, _ in truth}
                agents += {*verdict.agents} == who
                # What is late is missing in one turn, and takes the place of another move in the next.
                allowed = truth | {(agent, index + 1) for agent, index in truth if fault == "late"}
                named = {move.place for move in verdict.named}
                turns += bool(named) and named <= allowed
        yield [name, fault, looked, failed, share(agents, failed), share(turns, failed), f"{seconds:.1f}"]


def two_faults(name: str, family: Family, folder: Path) -> list[Any]:
    """The row of the table for two faults at once, at all pairs of turns."""
    family = replace(family, **{**family.two, "changes": (*family.changes, *family.two.get("changes", ()))})
    team, none = team_of(family), {"fault": "none"}
    looked = made = named = agents = 0
    seconds = 0.0
    pairs = itertools.combinations_with_replacement(family.at, 2)
    for pair, seed in itertools.product(pairs, range(family.seeds)):
        both: list[dict[str, Any]] = [{"at": at, "fault": family.faults[0]} for at in pair]
        versions = [both, [both[0], {**both[1], **none}], [{**both[0], **none}, both[1]], [{**o, **none} for o in both]]
        own = folder / f"{name}-{pair}-{seed}"
        runs = [planted(family, version, own / str(i), seed) for i, version in enumerate(versions)]
        metric = family.metric or runs[0].headline.metric
        lost = set.intersection(*(worse(run, runs[3], metric) for run in runs[:3]))
        looked += len(runs[0].scores)
        if not lost:
            continue
        began = time.perf_counter()
        found = blamed(runs[0], team, metric=metric, better=better(runs[0], metric), episodes=sorted(lost))
        seconds += time.perf_counter() - began
        # Once one fault is corrected, the other may come at another turn than in the recorded course.
        planted_at, *alone = (places(run, lost, version) for run, version in zip(runs[:3], versions, strict=False))
        for verdict in found.verdicts:
            truth = planted_at[verdict.episode]
            if len({effect.deviation.place[0] for effect in verdict.effects if effect.deviation.place in truth}) < 2:
                continue  # the first ended the episode before the second was made
            made += 1
            agents += {who for who, _ in truth} <= {*verdict.agents}
            allowed = truth.union(*(one[verdict.episode] for one in alone))
            places_named = {move.place for move in verdict.named}
            named += places_named <= allowed and len({agent for agent, _ in places_named}) == 2
    return [name, "two", looked, made, share(agents, made), share(named, made), f"{seconds:.1f}"]


NOBODY: dict[str, tuple[str, tuple[str, ...], str]] = {
    "cannot be solved": ("networks/coloring", ("task.shared.groups=2", "matrix.size=[8]"), "random"),
    "all erred alike": (
        "worlds/public_goods",
        ("matrix.order=[simultaneous]", "matrix.talk=[0]", "protocol.max_timesteps=5", "repeats=20"),
        "floor",
    ),
}


def unblamed(name: str, folder: Path) -> list[Any]:
    """The row of the table for failures that no agent caused; in place of agents found: how often none is blamed."""
    spec, changes, player = NOBODY[name]
    headline = load(spec, find(), changes).data["headline"]
    policy = headline.get(player, player)
    run = harness.evaluate(spec, overrides=(*changes, f"baseline={json.dumps(policy)}"), output_path=folder / name)
    began = time.perf_counter()
    found = blamed(run)
    rest = len(found.verdicts)
    innocent = sum(one.finding != "blamed" for one in found.verdicts)
    return [name, "none", len(run.scores), rest, share(innocent, rest), "", f"{time.perf_counter() - began:.1f}"]


def share(part: int, whole: int) -> str:
    """A share in percent, with its counts."""
    return f"{100 * part / whole:.1f} % ({part}/{whole})" if whole else "–"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, help="runs of everything, each with another seed (default: by family)")
    parser.add_argument("--only", choices=FAMILIES, help="this family alone")
    options = parser.parse_args()
    names = [options.only] if options.only else list(FAMILIES)
    row = "{:<16} {:<7} {:>8} {:>7} {:>20} {:>20} {:>8}"
    print(row.format("family", "fault", "episodes", "failed", "agent", "turn", "seconds"), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            family = FAMILIES[name]
            if options.seeds is not None:
                family = replace(family, seeds=options.seeds, two={**family.two, "seeds": options.seeds})
            for cells in one_fault(name, family, Path(folder)):
                print(row.format(*cells), flush=True)
            print(row.format(*two_faults(name, family, Path(folder))), flush=True)
        print("\nagent: nobody is blamed", flush=True)
        for name in NOBODY if options.only is None else ():
            print(row.format(*unblamed(name, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
