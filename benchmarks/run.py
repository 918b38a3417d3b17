"""How fast the harness itself is: `python benchmarks/run.py [--smoke] [NAME …]`.

Not tests: nothing here fails on a slow machine. Every figure is measured in a process of its own; times are medians.

    calls     CPU time per model call with the mock engine, in 10-turn, 100-turn and 200-turn episodes
    memory    peak memory of a run of 1,000, 10,000 and 100,000 calls, and CPU time to find such a run finished
    score     `harness score` of 1,000 episodes whose moves are played again
    suite     wall time of the AgentsNet suite with classical policies (27 networks × 5 tasks)
    scaling   coloring with policies on 100, 1,000 and 10,000 nodes: time and memory per move
    latency   wall time of 100 agents × 10 turns, and of 1,000 episodes at once, when every reply takes 50 ms
    steps     DPBench (five philosophers, simultaneous): decisions a second with a policy and with the mock engine,
              and 20 concurrent episodes when every reply takes 50 ms
    games     OpenSpiel's games (extra games): microseconds a move of its own loop, of worlds, and of a whole run
    games_latency  1,000 games of two players at once when every reply takes 50 ms
    silo      SILO-Bench with perfect teams: the factorial of 540 episodes, and 1,000 agents on every channel
    mas       MAS-Bench with perfect teams: the grid of 900 episodes, and 100 agents with 100 numbers each
    documents single-turn questions from a JSONL file with the mock engine, from start to tables
    intervals  how often 95 % intervals of a bounded mean cover it
    unequal_intervals  the same of means over conditions, or clusters, of very unequal sizes
    paired_intervals  how often 95 % intervals of a paired difference cover it
    stopping  how often confidence sequences cover a mean at every look, and how many cases runs need that end by them
    deciding  which side `harness compare --until decided` calls better, and after how many pairs
    tournament  standard errors of a difference between two players, with and without the same deals from both sides
    effects   how often intervals of main effects cover them, how often a factor without effect passes its test
    components  how well variance components of crossed effects are estimated
    sample_sizes  the power of a test with as many cases as `harness plan --detect` asks for
    equivalence  the level and power of tests of equivalence
    corrected  how often intervals of means that are corrected for a judge's errors cover them
    effects_speed  main effects of 800 conditions
    ratings   how often intervals of ratings cover the true strengths, in 1,000 tournaments each
    ratings_seats  the same where seats and deals matter
    ratings_bootstrap  the same of a bootstrap over games
    pairings  pairings by expected information beside a round robin of as many games
    ratings_speed  ratings of 20 contestants after 10,000 games
    ability   the size solved by half: error, coverage, and the share of a grid that --adaptive plays
    panels    methods that combine answers, with simulated players, from start to tables
    discussion  CPU time per model call with the mock engine when ten seats discuss for 10 and 40 rounds
    teams     CPU time per model call with the mock engine in teams of 8 and 64 seats, and of 10 and 40 rounds
    sharded   sharded tasks in YAML: drawing and solving 10,000 instances of 1,000 items
    networks  network tasks in YAML of 1,000 agents: drawing a case, wording all briefs, grading
    talk      CPU time per model call with the mock engine when ten agents talk for 10, 100 and 400 rounds
    sandbox   programs graded by execution in a second, one and two at a time
    viewer    a run of 100,000 episodes and 2 million moves in `harness view`: index, pages, memory (extra view)
    export    a run of 10,000 episodes as Parquet, CSV, JSON lines and an Inspect log
    report    one HTML page, and one chart, about a run of 10,000 episodes
    leaderboard  100 runs of 600 episodes side by side, 4,950 pairs of models tested
    startup   wall time and peak memory of --help, list, validate
    cluster   the same run in one process and by workers of a local Ray cluster (only where it is named: needs ray)
    vllm      the harness against vLLM's bare engine on the same requests (needs vllm; only where it is named)
    vllm_client  what the engine takes for a request beside vLLM's own work (likewise)
    vllm_stats  what vLLM's statistics cost this process (likewise)
    lm_eval   the lm_eval command against ours on 2,000 documents (needs vllm and lm_eval; only where it is named)
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import ability
import cluster
import documents
import effects
import exports
import games
import intervals
import lm_eval_parity
import mas
import networks
import pairings
import panels
import programs
import ratings
import reports
import sample_sizes
import sharded
import silo
import stopping
import teams
import tournaments
import viewer
import vllm_engine
from tabulate import tabulate

if TYPE_CHECKING:
    from harness.api import Engine, Request

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, object]


_LAUNCHER = """\
import json, resource, subprocess, sys, time
began = time.perf_counter()
code = subprocess.call(sys.argv[1:], stderr=subprocess.DEVNULL)
wall, usage = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps((wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)), file=sys.stderr)
sys.exit(code)
"""
"""Linux counts the memory of the process that starts a command as the command's peak, until the command has more. So a
small process starts it."""


def measured(arguments: list[str]) -> tuple[float, float, float, str]:
    """(wall s, CPU s, peak MiB, stdout) of `python ARGUMENTS`."""
    command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments} failed with {done.returncode}")
    wall, cpu, peak = json.loads(done.stderr)
    return wall, cpu, peak, done.stdout


def calls(smoke: bool) -> list[Row]:
    """A network of 16 agents that write one message each round, played by the mock engine."""
    rows: list[Row] = []
    for turns, repeats in ((10, 3 if smoke else 20), (100, 1 if smoke else 3), (200, 1 if smoke else 2)):
        out = [
            json.loads(measured([__file__, "--work", f"calls:{turns}:{repeats}"])[3]) for _ in range(1 if smoke else 5)
        ]
        ms = statistics.median(1000 * o["cpu"] / o["calls"] for o in out)
        row = {"turns an episode": turns, "calls": out[0]["calls"], "CPU ms a call": round(ms, 3)}
        rows.append({**row, "calls a CPU second": round(1000 / ms)})
    return rows


def memory(smoke: bool) -> list[Row]:
    """Runs of 16 agents × 10 turns, one after another finished; then the same command on each finished run."""
    rows: list[Row] = []
    for repeats in (2, 8) if smoke else (2, 20, 200):
        _, _, peak, out = measured([__file__, "--work", f"memory:{repeats}"])
        row = json.loads(out)
        rows.append({**row, "peak MiB": round(peak)})
    return rows


def work_memory(repeats: int) -> Row:
    """In a process of its own: a run, and the look at it once it is finished."""
    import harness
    from harness.engines.mock import Mock

    answer, spec = Talker(), one_condition(16, 10)
    with tempfile.TemporaryDirectory() as folder:
        harness.evaluate(spec, Mock(function=answer), repeats=repeats, output_path=Path(folder) / "run")
        began, size = time.process_time(), (Path(folder) / "run" / "journal.jsonl").stat().st_size
        harness.evaluate(spec, Mock(function=answer), repeats=repeats, output_path=Path(folder) / "run", resume=True)
        seconds = time.process_time() - began
    row = {"calls": answer.count, "journal MiB": round(size / 2**20, 1), "journal bytes a call": size // answer.count}
    return {**row, "CPU s to find it finished": round(seconds, 2)}


def work_calls(turns: int, repeats: int) -> Row:
    """In a process of its own: CPU seconds and number of calls, imports and set-up left out."""
    import harness
    from harness.engines.mock import Mock

    answer = Talker()
    spec = one_condition(16, turns)
    with tempfile.TemporaryDirectory() as folder:
        harness.evaluate(spec, Mock(function=answer), limit=1, repeats=1, output_path=Path(folder) / "warm")
        answer.count, began = 0, time.process_time()
        harness.evaluate(spec, Mock(function=answer), repeats=repeats, output_path=Path(folder) / "run")
        return {"cpu": time.process_time() - began, "calls": answer.count}


class Talker:
    """Says the same to one neighbor in every round; counts what it is asked."""

    def __init__(self) -> None:
        self.count = 0
        self._talk: dict[str, str] = {}

    def __call__(self, request: Request) -> str:
        self.count += 1
        question = request.thread.messages[-1]["content"]
        if "'### Final Answer ###'" in question:
            return "### Final Answer ### 0"
        agent = request.id.rsplit("/", 3)[1]
        if agent not in self._talk:  # the one named first in the list of neighbors
            first = request.thread.messages[0]["content"].split("immediate neighbors (")[1].split(",")[0].rstrip(")")
            text = json.dumps({first: "I propose that we all choose 0, because it is the smaller value."})
            self._talk[agent] = "Let me think about it. " * 10 + text
        return self._talk[agent]


def latency(smoke: bool) -> list[Row]:
    """Every reply takes 50 ms: what is above that is the harness's own."""
    rows: list[Row] = []
    many = 100 if smoke else 1000
    for episodes, agents, turns in ((1, 100, 10), (many, 1, 1), (many, 1, 10)):
        work = [__file__, "--work", f"latency:{episodes}:{agents}:{turns}"]
        walls = [json.loads(measured(work)[3])["wall"] for _ in range(1 if smoke else 5)]
        wall = round(statistics.median(walls), 3)
        rows.append({"episodes": episodes, "agents": agents, "turns": turns, "bound s": turns * 0.05, "wall s": wall})
    return rows


def work_latency(episodes: int, agents: int, turns: int) -> Row:
    """In a process of its own: wall seconds of all episodes at once, imports and set-up left out."""
    import harness

    spec = one_condition(agents, turns) if agents > 1 else alone(episodes, turns)
    with tempfile.TemporaryDirectory() as folder:
        harness.evaluate(spec, slow(), limit=1, output_path=Path(folder) / "warm")
        began = time.perf_counter()
        run = harness.evaluate(
            spec, slow(), limit=episodes, max_concurrency=max(256, episodes), output_path=Path(folder) / "run"
        )
        assert len(run.scores) == episodes and not run.failed
        return {"wall": time.perf_counter() - began}


def slow() -> Engine:
    """A model in whose place 50 ms pass."""
    import asyncio

    from harness.engines.mock import Mock

    async def answer(request: Request) -> str:
        await asyncio.sleep(0.05)
        return "### Final Answer ### 0" if "Final Answer" in request.thread.messages[-1]["content"] else "{}"

    return Mock(function=answer)


def one_condition(size: int, turns: int) -> dict[str, object]:
    """Consensus on small-world networks of one size, asked `turns` times."""
    return {
        "name": "one",
        "extends": "agentsnet",
        "task": {"graphs": "small_world", "size": size},
        "protocol": {"rounds": turns - 1},
        "matrix": {"problem": ["consensus"], "graphs": None, "size": None},
        "tables": [],
    }


def alone(questions: int, turns: int) -> dict[str, object]:
    """Questions for one agent, each asked `turns` times in a row."""
    return {
        "name": "alone",
        "task": {"use": "arithmetic", "size": questions},
        "protocol": {"use": "single", "repeats": turns},
        "prompts": "qa/standard",
        "metrics": ["score"],
    }


def steps(smoke: bool) -> list[Row]:
    """Stepped episodes; `bound s` is the longest episode with nothing but its engine's latency."""
    rows: list[Row] = []
    for who, episodes in (("policy", 20 if smoke else 400), ("mock", 20 if smoke else 200), ("mock50", 20)):
        runs = [
            json.loads(measured([__file__, "--work", f"steps:{who}:{episodes}"])[3]) for _ in range(1 if smoke else 3)
        ]
        wall, cpu = (statistics.median(run[key] for run in runs) for key in ("wall", "cpu"))
        decisions, longest = runs[0]["decisions"], runs[0]["longest"]
        rows.append(
            {
                "who": {"policy": "random policy", "mock": "mock, 0 ms", "mock50": "mock, 50 ms"}[who],
                "episodes": episodes,
                "decisions": decisions,
                "decisions/s": round(decisions / wall),
                "CPU ms a decision": round(1000 * cpu / decisions, 3),
                "bound s": round(longest * 0.05, 2) if who == "mock50" else None,
                "wall s": round(wall, 3),
            }
        )
    return rows


def table() -> dict[str, object]:
    """Five philosophers who decide at the same time."""
    return {
        "name": "table",
        "task": {"use": "dpbench/dining_table", "philosophers": 5},
        "protocol": {"use": "steps", "max_timesteps": 30},
        "prompts": "dpbench/standard",
        "baseline": "random",
        "metrics": ["rounds", "calls"],
    }


def work_steps(who: str, episodes: int) -> Row:
    """In a process of its own: seconds and decisions of episodes of the dining table, imports and set-up left out."""
    import asyncio
    import random

    import harness
    from harness.engines.mock import Mock

    async def answer(request: Request) -> str:
        if who == "mock50":
            await asyncio.sleep(0.05)
        word = random.Random(request.seed).choice(("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT"))
        return f"THINKING: {'The forks look as they look. ' * 8}\nACTION: {word}"

    spec = table()
    model = None if who == "policy" else Mock(function=answer)
    with tempfile.TemporaryDirectory() as folder:
        harness.evaluate(spec, model, repeats=1, output_path=Path(folder) / "warm")
        wall, cpu = time.perf_counter(), time.process_time()
        run = harness.evaluate(spec, model, repeats=episodes, output_path=Path(folder) / "run")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    played = [cast(int, score.numbers["rounds"] or 0) for score in run.scores]
    return {"wall": wall, "cpu": cpu, "decisions": 5 * sum(played), "longest": max(played)}


def score(smoke: bool) -> list[Row]:
    """CPU time to play runs of policies, and to play their moves again and grade them."""
    episodes = 20 if smoke else 1000
    return [json.loads(measured([__file__, "--work", f"score:{i}:{episodes}"])[3]) for i in range(2)]


def work_score(number: int, episodes: int) -> Row:
    """In a process of its own: CPU seconds of a run of policies and of `harness score`, imports left out."""
    import harness
    from harness.evaluation.rescore import rescored

    name = ("dining table", "network of 16 agents")[number]
    spec = table() if number == 0 else one_condition(16, 10)
    with tempfile.TemporaryDirectory() as folder:
        harness.evaluate(spec, limit=1, repeats=1, output_path=Path(folder) / "warm")
        began = time.process_time()
        run = harness.evaluate(spec, limit=1, repeats=episodes, output_path=Path(folder) / "run")
        played = time.process_time()
        again = rescored(run.folder)
        done = time.process_time()
        assert again.scores == run.scores
        moves = (run.folder / "journal.jsonl").read_bytes().count(b'"k":"move"')
    row = {"task": name, "episodes": episodes, "moves": moves}
    return {**row, "CPU s to play": round(played - began, 2), "CPU s to score": round(done - played, 2)}


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
    """Ten rounds of coloring on small-world networks; a network of 10 nodes is taken off as the cost of starting."""
    rows: list[Row] = []
    _, cpu_at_rest, peak_at_rest = coloring(10)
    for size in (100, 1000) if smoke else (100, 1000, 10_000):
        wall, cpu, peak = coloring(size)
        moves = size * 11
        rows.append(
            {
                "nodes": size,
                "moves": moves,
                "wall s": round(wall, 2),
                "CPU ms a move": round(1000 * (cpu - cpu_at_rest) / moves, 3),
                "peak MiB": round(peak),
                "KiB a node": round(1024 * (peak - peak_at_rest) / size, 1),
            }
        )
    return rows


def coloring(size: int) -> tuple[float, float, float]:
    """(wall s, CPU s, peak MiB) of one episode."""
    with tempfile.TemporaryDirectory() as folder:
        return measured(
            ["-m", "harness", "eval", "--spec", "specs/agentsnet.yaml", "--quiet", "--output_path", f"{folder}/r",
             "--set", f"matrix={{problem: [coloring], graphs: [small_world], size: [{size}]}}",
             "--set", "protocol.rounds=10", "--set", "task.source=seeded", "--set", "tables=[]", "--limit", "1"]
        )[:3]  # fmt: skip


def startup(smoke: bool) -> list[Row]:
    """What a person waits for before anything happens."""
    rows: list[Row] = []
    quick = "eval --spec agentsnet_quick --quiet --overwrite --output_path"
    for command in ("--help", "list tasks", "list specs", "validate specs/agentsnet.yaml", quick):
        with tempfile.TemporaryDirectory() as folder:
            arguments = [*command.split(), *([folder] if command is quick else [])]
            runs = [measured(["-m", "harness", *arguments]) for _ in range(1 if smoke else 7)]
        rows.append(
            {
                "command": command,
                "wall s": round(statistics.median(run[0] for run in runs), 3),
                "CPU s": round(statistics.median(run[1] for run in runs), 3),
                "peak MiB": round(max(run[2] for run in runs), 1),
            }
        )
    return rows


BENCHMARKS: dict[str, Callable[[bool], list[Row]]] = {
    "calls": calls,
    "memory": memory,
    "latency": latency,
    "score": score,
    "suite": suite,
    "scaling": scaling,
    "steps": steps,
    "games": lambda smoke: games.adapter(measured, __file__, smoke),
    "games_latency": lambda smoke: games.latency(measured, __file__, smoke),
    "silo": lambda smoke: silo.teams(measured, smoke),
    "mas": lambda smoke: mas.teams(measured, smoke),
    "documents": lambda smoke: documents.questions(measured, smoke),
    "intervals": lambda smoke: intervals.coverage(20 if smoke else 2000),
    "stopping": lambda smoke: stopping.coverage(5 if smoke else 500, 100 if smoke else stopping.LONGEST),
    "deciding": lambda smoke: stopping.deciding(5 if smoke else 60, 100 if smoke else 500),
    "tournament": lambda smoke: tournaments.luck(40 if smoke else 4000),
    "components": lambda smoke: sample_sizes.components_covered(2 if smoke else 500),
    "sample_sizes": lambda smoke: sample_sizes.power(4 if smoke else 1000),
    "equivalence": lambda smoke: sample_sizes.level(10 if smoke else 2000),
    "corrected": lambda smoke: sample_sizes.corrected_covered(5 if smoke else 1000),
    "unequal_intervals": lambda smoke: intervals.unequal_coverage(20 if smoke else 2000),
    "paired_intervals": lambda smoke: intervals.paired_coverage(20 if smoke else 2000),
    "effects": lambda smoke: effects.coverage(20 if smoke else 2000),
    "ratings": lambda smoke: ratings.coverage(5 if smoke else 1_000),
    "ratings_seats": lambda smoke: ratings.seats(2 if smoke else 1_000),
    "ratings_bootstrap": lambda smoke: ratings.bootstrap(2 if smoke else 150, 20 if smoke else 200),
    "pairings": lambda smoke: pairings.pairings(2 if smoke else 200),
    "ratings_speed": lambda smoke: ratings.speed(500 if smoke else 10_000),
    "ability": lambda smoke: ability.coverage(40 if smoke else 1_000),
    "effects_speed": lambda smoke: effects.speed(2_000 if smoke else 100_000),
    "panels": lambda smoke: panels.methods(measured, smoke),
    "discussion": lambda smoke: panels.discussions(measured, __file__, smoke),
    "teams": lambda smoke: teams.seats(measured, __file__, smoke),
    "networks": networks.gradings,
    "sharded": sharded.instances,
    "talk": lambda smoke: silo.talk(measured, __file__, smoke),
    "sandbox": lambda smoke: programs.sandbox(measured, __file__, smoke),
    "viewer": viewer.look,
    "export": lambda smoke: exports.forms(measured, smoke),
    "report": lambda smoke: reports.pages(measured, smoke),
    "leaderboard": lambda smoke: reports.boards(measured, smoke),
    "startup": startup,
    "cluster": lambda smoke: cluster.workers(measured, __file__, smoke),
    "vllm": lambda smoke: vllm_engine.vllm(measured, __file__, smoke),
    "vllm_client": lambda smoke: vllm_engine.client(measured, __file__, smoke),
    "vllm_stats": lambda smoke: vllm_engine.statistics_modes(measured, __file__, smoke),
    "lm_eval": lm_eval_parity.run,
}
BY_NAME_ONLY = ("cluster", "vllm", "vllm_client", "vllm_stats", "lm_eval")
"""What needs packages beyond the core ones."""


def main() -> None:
    """Run the benchmarks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME")
    parser.add_argument("--smoke", action="store_true", help="small sizes, one run each: does it work at all?")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        name, *numbers = options.work.split("|" if options.work.startswith("games") else ":")
        if name == "games":
            print(json.dumps(games.work_games(numbers[0], int(numbers[1]))))
        elif name == "games_latency":
            print(json.dumps(games.work_latency(numbers[0], int(numbers[1]))))
        elif name == "steps":
            print(json.dumps(work_steps(numbers[0], int(numbers[1]))))
        elif name == "sandbox":
            print(json.dumps(programs.work_sandbox(*map(int, numbers))))
        elif name == "cluster":
            print(json.dumps(cluster.work_cluster(*map(int, numbers))))
        elif name == "vllm":
            print(json.dumps(vllm_engine.work_vllm(*map(int, numbers))))
        elif name == "vllm_client":
            print(vllm_engine.work_client(int(numbers[0])))
        elif name == "vllm_stats":
            print(json.dumps(vllm_engine.work_stats(numbers[0], int(numbers[1]))))
        elif name == "talk":
            print(json.dumps(silo.work_talk(*map(int, numbers))))
        elif name == "discussion":
            print(json.dumps(panels.work_discussion(numbers[0], *map(int, numbers[1:]))))
        elif name == "teams":
            print(json.dumps(teams.work_team(numbers[0], *map(int, numbers[1:]))))
        else:
            simple: dict[str, Callable[..., object]] = {
                "latency": work_latency, "memory": work_memory, "calls": work_calls, "score": work_score
            }  # fmt: skip
            print(json.dumps(simple[name](*map(int, numbers))))
        return
    for name in options.names or [name for name in BENCHMARKS if name not in BY_NAME_ONLY]:
        print(
            f"\n## {name}\n\n{tabulate(BENCHMARKS[name](options.smoke), headers='keys', tablefmt='github')}", flush=True
        )


if __name__ == "__main__":
    main()
