"""Does training on these tasks teach something? Imitation, then three kinds of reward, measured on other cases.

    python examples/train_tiny/train.py

It writes results.json, results.md and curves.svg below --output.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from imitate import examples, imitate
from model import Decoder, Words
from reinforce import evaluate, reinforce, writer
from report import curves, interval, table
from tasks import TASKS, TRANSFER, ceiling, environment, held_out, scripted

from harness.api import Completion
from harness.extensions.training import PendingTurn

KINDS = ("team", "agent", "credit")
Numbers = dict[str, dict[str, Any]]
"""Task → metric → mean."""
CASES, TRANSFER_CASES, SAMPLES = 24, 12, 2


class Exam:
    """The held-out cases of all tasks, and the sizes and partners that no training episode has."""

    def __init__(self) -> None:
        self.parts = {task: (task, *held_out(task)) for task in TASKS}
        self.transfer = {name: (task, *held_out(task, 16, more)) for name, (task, more) in TRANSFER.items()}

    def take(
        self,
        player: Any,
        words: Words | None = None,
        *,
        transfer: bool = False,
        seed: int | None = 0,
        summary: Callable[[list[float]], Any] = statistics.fmean,
    ) -> Numbers:
        """`player`: a decoder, or a function of a task's name that returns one of turns. `summary`: of the numbers of
        all cases."""
        found = {}
        for name, (task, env, tasks) in (self.transfer if transfer else self.parts).items():
            own = player if isinstance(player, Decoder) else player(task)
            metrics = evaluate(own, words, env, tasks[: TRANSFER_CASES if transfer else CASES], SAMPLES, seed)
            found[name] = {metric: summary(numbers) for metric, numbers in metrics.items()}
        return found


def one_seed(seed: int, updates: int, steps: int, every: int, folder: str) -> dict[str, Any]:
    """Imitation and the three kinds of reinforcement, from nothing."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    exam = Exam()
    began = time.process_time()
    data = [examples(task) for task in TASKS]
    words = Words(text for task in data for example in task for text in example)
    decoder = Decoder(len(words.pieces))
    losses = imitate(decoder, words, data, steps, seed)
    imitated = {name: one.clone() for name, one in decoder.state_dict().items()}
    cpu = {"imitation": time.process_time() - began}
    start = exam.take(decoder, words)
    found: dict[str, Any] = {
        "seed": seed,
        "parameters": sum(one.numel() for one in decoder.parameters()),
        "words": words.pieces[4:],
        "losses": losses[:: max(1, steps // 20)],
        "imitation": start,
        "greedy": exam.take(decoder, words, seed=None),
        "transfer": {"imitation": exam.take(decoder, words, transfer=True)},
        "curves": {},
        "examples": dict(zip(TASKS, map(len, data), strict=True)),
        "cpu_s": cpu,
    }
    for kind in KINDS:
        decoder.load_state_dict(imitated)
        envs = {task: environment(task, kind) for task in TASKS}
        curve, spent = [{"update": 0, "held_out": start}], 0.0
        began = time.process_time()

        def measure(update: int, curve: list[dict[str, Any]] = curve) -> None:
            nonlocal spent
            if update % every == 0:
                now = time.process_time()
                curve.append({"update": update, "held_out": exam.take(decoder, words)})
                spent += time.process_time() - now

        reinforce(decoder, words, envs, updates, seed, after=measure)
        cpu[kind] = time.process_time() - began - spent
        found["curves"][kind] = curve
        found["transfer"][kind] = exam.take(decoder, words, transfer=True)
        torch.save(decoder.state_dict(), Path(folder) / f"{kind}-{seed}.pt")
        for env in envs.values():
            env.close()
    cpu["all"] = time.process_time()
    (Path(folder) / f"seed-{seed}.json").write_text(json.dumps(found))
    return found


def cross_play(
    exam: Exam, seeds: Sequence[dict[str, Any]], folder: Path
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Every other seat is played by the next seed's decoder: kind of reward → task → metric → a number a pair."""
    together: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    words = [Words([]) for _ in seeds]
    for one, own in zip(words, seeds, strict=True):
        one.pieces += own["words"]
        one.ids = {piece: at for at, piece in enumerate(one.pieces) if at > one.unknown}
    for kind in KINDS:
        decoders = []
        for one, own in zip(words, seeds, strict=True):
            decoders.append(Decoder(len(one.pieces)))
            decoders[-1].load_state_dict(torch.load(folder / f"{kind}-{own['seed']}.pt"))
        for first in range(len(seeds)):
            other = (first + 1) % len(seeds)
            chance = torch.Generator().manual_seed(first)
            players = [writer(decoders[at], words[at], chance) for at in (first, other)]

            def write(turns: list[PendingTurn], players: Any = players) -> list[Completion]:
                replies: dict[int, Completion] = {}
                for parity, player in enumerate(players):
                    own = [at for at, turn in enumerate(turns) if int(turn.agent.rsplit("-", 1)[1]) % 2 == parity]
                    if own:
                        replies |= zip(own, player([turns[at] for at in own]), strict=True)
                return [replies[at] for at in range(len(turns))]

            together[kind].append(
                {
                    task: statistics.fmean(
                        evaluate(write, None, exam.parts[task][1], exam.parts[task][2][:CASES], SAMPLES)["score"]
                    )
                    for task in ("ring", "maximum", "table")
                }
            )
    return {
        kind: {
            task: {"score": [one[task] for one in all_of]} for task in all_of[0]
        }  # one number for each pair of seeds
        for kind, all_of in together.items()
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4, help="how many times everything is done from nothing (4)")
    parser.add_argument("--updates", type=int, default=30, help="batches of reinforcement (30)")
    parser.add_argument("--steps", type=int, default=150, help="steps of imitation (150)")
    parser.add_argument("--every", type=int, default=5, help="updates between two points of a curve (5)")
    parser.add_argument("--processes", type=int, default=2, help="seeds that are trained at once (2)")
    parser.add_argument("--output", type=Path, default=Path("results/train_tiny"), help="the folder of the results")
    asked = parser.parse_args(argv)
    asked.output.mkdir(parents=True, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(asked.processes, spawn) as pool:
        jobs = [
            pool.submit(one_seed, seed, asked.updates, asked.steps, asked.every, str(asked.output))
            for seed in range(asked.seeds)
        ]
        exam = Exam()
        floor = {
            "held_out": exam.take(_always("choice(options)"), summary=interval),
            "transfer": exam.take(_always("choice(options)"), transfer=True, summary=interval),
        }
        best = {
            "held_out": exam.take(_best, summary=interval),
            "transfer": exam.take(_best, transfer=True, summary=interval),
        }
        seeds = [job.result() for job in jobs]
    results = {
        "settings": {name: getattr(asked, name) for name in ("seeds", "updates", "steps", "every")},
        "floor": floor,
        "ceiling": best,
        "seeds": seeds,
        "cross_play": cross_play(exam, seeds, asked.output),
        "cases": {task: min(CASES, len(tasks)) for task, (_, _, tasks) in exam.parts.items()},
        "cpu_s": sum(one["cpu_s"]["all"] for one in seeds) + time.process_time(),
    }
    (asked.output / "results.json").write_text(json.dumps(results, indent=1))
    (asked.output / "results.md").write_text(table(results))
    curves(results, asked.output / "curves.svg")
    print(table(results))


def _always(act: str) -> Callable[..., Any]:
    return lambda task: scripted(lambda turn: act)


def _best(task: str) -> Callable[..., Any]:
    return scripted(lambda turn: ceiling(task, turn))


if __name__ == "__main__":
    main()
