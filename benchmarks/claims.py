"""How well `harness verify --ask` finds replies that the claimed model has not given, at a temperature above 0.

    python benchmarks/claims.py collect tiny claims-tiny.json --temperature 1
    python benchmarks/claims.py collect vllm claims-vllm.json --pretrained SmolLM2-135M-Instruct
    python benchmarks/claims.py simulate claims-tiny.json claims-vllm.json

`collect` asks the small real model (docs/how-to/tiny.md) questions, makes replies of other origins to the same
questions, and has the engine score the tokens of all of them. `simulate` draws the calls of many runs from these, tests
each run as `verify` does, and asks no model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from scipy.special import logsumexp
from tabulate import tabulate

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.api import Completion, Engine, Request, Thread  # noqa: E402
from harness.engines.gate import Gate  # noqa: E402
from harness.engines.reply_likelihoods import ReplyLikelihoodRequest  # noqa: E402
from harness.extensions.submissions.authenticity import (  # noqa: E402
    GRID,
    POWERS,
    Fresh,
    Result,
    ScoredReply,
    compare,
    of_run,
    step_of,
)

OPEN = [json.loads(line) for line in (ROOT / "registry/tasks/_open_questions.jsonl").read_text("utf-8").splitlines()]
MAX_TOKENS = 40
RHYMES = "You are an old sailor who answers everything with a story of the sea."


# ------------------------------------------------------------------------------------ questions and replies


def question(number: int) -> tuple[str, str]:
    """(question, what a person wrote as its answer): every other one is a sum, the others are open."""
    if number % 2:
        one = OPEN[number // 2 % len(OPEN)]
        return one["question"], one["points"]
    rng = random.Random(number)
    a, b, c = (rng.randint(10, 99) for _ in range(3))
    said = f"First {a} and {b} are {a + b}. Taking {c} off leaves {a + b - c}, so the answer is {a + b - c}."
    return f"What is {a} + {b} - {c}? Show your work.", said


def right_answer(number: int) -> str:
    """A short one, as a script would write it."""
    return question(number)[1].split(". ")[-1] if number % 2 == 0 else question(number)[1].split(". ")[0] + "."


def edited(text: str, rng: random.Random, others: Sequence[str]) -> str:
    """A reply with one word of another one in it."""
    words, more = text.split(" "), " ".join(others).split()
    place = rng.randrange(len(words))
    words[place] = rng.choice([word for word in more if word != words[place]])
    return " ".join(words)


class Asked:
    """An engine that is asked, and scores."""

    def __init__(self, engine: Engine) -> None:
        self.gate = Gate(engine, 8)
        self.done = 0

    def thread(self, number: int, system: str = "") -> Thread:
        thread = Thread()
        if system:
            thread.add("system", system)
        thread.add("user", question(number)[0])
        return thread

    async def reply(self, number: int, sampling: dict[str, Any], seed: int, system: str = "") -> Completion:
        request = Request(f"c/{number}/{seed}", self.thread(number, system), sampling, seed)
        return await self.gate.complete(request)

    async def rows(self, number: int, text: str) -> list[list[float]]:
        request = ReplyLikelihoodRequest(f"s/{number}", self.thread(number), text=text)
        found = (await self.gate.complete(request)).likelihoods
        self.done += 1
        if self.done % 50 == 0:
            print(f"{self.done} replies scored", file=sys.stderr, flush=True)
        return [[round(float(value), 4) for value in row] for row in found or ()]


async def collected(engine: Engine, sampling: dict[str, Any], honest: int, other: int) -> dict[str, Any]:
    """Replies of all origins with their tokens' likelihoods."""
    asked, rng = Asked(engine), random.Random(1)
    await asked.gate.start()
    try:
        given = [one.text for one in await asyncio.gather(*(asked.reply(i, sampling, i) for i in range(honest)))]
        warm = {**sampling, "temperature": sampling["temperature"] + 0.5, "top_p": 1.0}
        hotter = await asyncio.gather(*(asked.reply(i, warm, 10_000 + i) for i in range(other)))
        cold = {**sampling, "temperature": 0.0}
        colder = await asyncio.gather(*(asked.reply(i, cold, 10_000 + i) for i in range(other)))
        sailor = await asyncio.gather(*(asked.reply(i, sampling, 20_000 + i, RHYMES) for i in range(other)))
        texts: dict[str, list[tuple[int, str]]] = {
            "honest": list(enumerate(given)),
            "written by a person": [(i, question(i)[1]) for i in range(other)],
            "the right answer, in a few words": [(i, right_answer(i)) for i in range(other)],
            "of another question": [(i, given[(i + 7) % honest]) for i in range(other)],
            "of another prompt": [(i, one.text) for i, one in enumerate(sailor)],
            "at a temperature higher by 0.5": [(i, one.text) for i, one in enumerate(hotter)],
            "at temperature 0": [(i, one.text) for i, one in enumerate(colder)],
            "one word replaced": [(i, edited(given[i], rng, given)) for i in range(other)],
        }
        kinds = {}
        for kind, pairs in texts.items():
            rows = await asyncio.gather(*(asked.rows(i, text) for i, text in pairs))
            kinds[kind] = [
                {"question": i, "text": text, "rows": row} for (i, text), row in zip(pairs, rows, strict=True)
            ]
            print(kind, file=sys.stderr, flush=True)
    finally:
        await asked.gate.close()
    return {"engine": engine.describe(), "sampling": sampling, "kinds": kinds}


# ------------------------------------------------------------------------------------ many runs of them


class Pool:
    """Replies of one origin as arrays, so that many runs can be drawn from them in little time."""

    def __init__(self, replies: Sequence[ScoredReply]) -> None:
        self.replies = replies
        places = [one for reply in replies for one in reply.places]
        self.starts = numpy.cumsum([0, *(len(reply.places) for reply in replies)])[:-1]
        self.tails = numpy.maximum([one.tail for one in places], GRID[0])
        self.steps = numpy.array([step_of(one.tail) for one in places])
        self.expected = numpy.array([one.expected for one in places])
        fits = [Fresh([reply]).sums for reply in replies]
        self.found = numpy.array([found for found, _ in fits])
        self.has = numpy.array([expected for _, expected in fits])

    def ratios(self, which: numpy.ndarray) -> numpy.ndarray:
        """`Fresh.ratios` of some of the replies."""
        found: numpy.ndarray = (1 + self.found[which].sum(0)) / (1 + self.has[which].sum(0))
        return found

    def evidence(self, ratios: numpy.ndarray) -> numpy.ndarray:
        """`Fresh.evidence` of each reply."""
        shares = numpy.log(numpy.minimum(self.tails * ratios[self.steps], 1))
        powers = numpy.array(POWERS)
        terms = numpy.log(powers) + (powers - 1) * shares[:, None] - self.expected
        sums = numpy.add.reduceat(terms, self.starts, axis=0)
        found: numpy.ndarray = logsumexp(sums, axis=1) - numpy.log(len(powers))
        return found


def simulated(data: dict[str, Any], runs: int, calls: int, fabricated: int, length: int | None) -> list[dict[str, Any]]:
    """How often a run is rejected that has so many fabricated replies of each kind, and how often an honest one.

    For each run the honest replies are parted at random into recorded and fresh ones, and drawn from both.

    Args:
        length: tokens to which every reply is cut, as a smaller max_tokens would; None: all.
    """
    temperature, rng = data["sampling"]["temperature"], numpy.random.default_rng(2)
    pools = {
        kind: Pool([ScoredReply.of(one["rows"][:length], temperature) for one in rows if one["rows"]])
        for kind, rows in data["kinds"].items()
    }
    honest = pools["honest"]
    rejected, unfit = dict.fromkeys(pools, 0), 0
    for run in range(runs):
        order = rng.permutation(len(honest.replies))
        recorded, fresh = (rng.choice(part, calls) for part in (order[::2], order[1::2]))
        halves = fresh[::2], fresh[1::2]
        control = numpy.empty(calls)
        for i in (0, 1):
            control[i::2] = honest.evidence(honest.ratios(halves[1 - i]))[halves[i]]
        excess = max(float(logsumexp(control) - numpy.log(calls)), 0.0)
        ratios = honest.ratios(fresh)
        real = honest.evidence(ratios)[recorded] - excess
        for kind, pool in pools.items():
            found = real.copy()
            if kind != "honest":
                found[:fabricated] = rng.choice(pool.evidence(ratios), fabricated, replace=False) - excess
            result = Result(of_run([*found]), of_run([*(control - excess)]), [*found])
            rejected[kind] += result.rejects
        unfit += not result.fits
        if run == 0:  # the arrays say what the test itself says
            same = compare([honest.replies[i] for i in recorded], [honest.replies[i] for i in fresh])
            assert numpy.allclose(same.replies, real), "the arrays differ from harness.extensions.submissions"
    name = {"tokens": length or "all", "not fit": unfit / runs}
    return [{"replies": kind, **name, "rejected": count / runs} for kind, count in rejected.items()]


def engine_of(options: argparse.Namespace) -> Engine:
    """The engine of the road."""
    if options.road == "tiny":
        from harness.extensions.tiny.tiny import Tiny

        return Tiny(slots=8)
    from harness.extensions.vllm.vllm import VLLM

    return VLLM(pretrained=options.pretrained, dtype="float32", max_model_len=2048)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    collect = commands.add_parser("collect")
    collect.add_argument("road", choices=["tiny", "vllm"])
    collect.add_argument("output", type=Path)
    collect.add_argument("--pretrained", default="SmolLM2-135M-Instruct")
    collect.add_argument("--temperature", type=float, default=1.0)
    collect.add_argument("--top_p", type=float, default=1.0)
    collect.add_argument("--honest", type=int, default=400)
    collect.add_argument("--other", type=int, default=80)
    simulate = commands.add_parser("simulate")
    simulate.add_argument("files", type=Path, nargs="+")
    simulate.add_argument("--runs", type=int, default=500)
    simulate.add_argument("--calls", type=int, default=300)
    simulate.add_argument("--fabricated", type=int, default=3)
    simulate.add_argument("--length", type=int, nargs="*", default=[0], help="tokens of a reply at most; 0: all")
    options = parser.parse_args()
    if options.command == "collect":
        sampling: dict[str, Any] = {"temperature": options.temperature, "max_tokens": MAX_TOKENS}
        sampling |= {"top_p": options.top_p} if options.top_p < 1 else {}
        data = asyncio.run(collected(engine_of(options), sampling, options.honest, options.other))
        options.output.write_text(json.dumps(data))
        return
    for path in options.files:
        data = json.loads(path.read_text())
        print(f"{path.name}: {data['sampling']}, {options.fabricated} of {options.calls} replies fabricated")
        for length in options.length:
            rows = simulated(data, options.runs, options.calls, options.fabricated, length or None)
            print(tabulate(rows, headers="keys", floatfmt=".3f"))


if __name__ == "__main__":
    main()
