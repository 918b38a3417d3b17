"""What a run costs that keeps token ids and log-probabilities: 64 episodes at once, and an engine that returns both.

python benchmarks/token_ids.py                        # a stand-in that answers at once, with and without ids
python benchmarks/token_ids.py --smoke                # fewer and shorter episodes

The figure holds what the stand-in takes to answer: a few list operations, for which its ids are drawn beforehand.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import harness
from harness import storage
from harness.api import Completion, Engine, Request

_AT_ONCE = 64
_REPLY = 40
"""Tokens of a reply."""
_WORD = 4
"""Characters of a token of a prompt."""


class StandIn(Engine):
    """An engine that answers at once. With `ids` its completions have as many as a model's would.

    Attributes:
        calls: how many it answered.
        longest: tokens of the longest prompt.
    """

    def __init__(self, ids: bool) -> None:
        self.return_token_ids = self.return_logprobs = ids
        self.calls = self.longest = 0
        rng = random.Random(0)
        self._ids = [rng.randrange(50_000) for _ in range(100_000)]
        self._logprobs = [-rng.random() for _ in range(100_000)]

    @property
    def model(self) -> str:
        return "stand-in"

    async def complete(self, request: Request) -> Completion:
        messages = request.thread.messages
        is_last = "'### Final Answer ###'" in messages[-1]["content"]
        text = "### Final Answer ###\nYes" if is_last else self._message(request)
        more: dict[str, Any] = {}
        self.calls += 1
        if self.return_token_ids:
            history, seen = request.thread.memo.get("stand-in", ((), 0))
            new, at = sum(len(one["content"]) for one in messages[seen:]) // _WORD, request.seed % 50_000
            prompt, reply = (*history, *self._ids[at : at + new]), tuple(self._ids[at + new : at + new + _REPLY])
            request.thread.memo["stand-in"] = (prompt + reply, len(messages) + 1)
            self.longest = max(self.longest, len(prompt))
            logprobs = tuple(self._logprobs[at : at + _REPLY])
            more = {"prompt_token_ids": prompt, "token_ids": reply, "logprobs": logprobs}
        return Completion(text, input_tokens=1, output_tokens=_REPLY, finish_reason="stop", **more)

    @staticmethod
    def _message(request: Request) -> str:
        """A message to the neighbor that is named first."""
        first = request.thread.messages[0]["content"].split("immediate neighbors (")[1].split(",")[0].rstrip(")")
        return json.dumps({first: "I propose that we all choose 0, because it is the smaller value."})


def spec(agents: int, rounds: int) -> dict[str, Any]:
    """One network, played by 64 episodes at once."""
    return {
        "name": "token_ids",
        "task": {"use": "agentsnet/leader_election", "instances": 1, "source": "seeded", "size": agents},
        "protocol": {"use": "local_rounds", "rounds": rounds, "channel": "neighbors"},
        "prompts": "agentsnet/standard",
        "metrics": ["solved"],
        "repeats": _AT_ONCE,
    }


def once(engine: StandIn, agents: int, rounds: int, folder: Path) -> dict[str, float]:
    """CPU time of a call, and bytes of the journal a call."""
    began = time.process_time()
    harness.evaluate(spec(agents, rounds), engine, output_path=folder)
    cpu = time.process_time() - began
    size = sum(path.stat().st_size for path in storage.journals(folder))
    return {
        "ms": 1000 * cpu / engine.calls,
        "bytes": size / engine.calls,
        "calls": engine.calls,
        "longest": engine.longest,
    }


def stand_in(agents: int, rounds: int, times: int) -> None:
    """Print what a call takes without and with ids, in turns, so that other work meets both."""
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        once(StandIn(True), agents, 1, Path(folder) / "imports")
        for number, ids in itertools.product(range(times), (False, True)):
            found[ids].append(once(StandIn(ids), agents, rounds, Path(folder) / f"{number}-{ids}"))
    for ids, runs in found.items():
        ms = [run["ms"] for run in runs]
        print(
            f"{'with ids   ' if ids else 'without ids'}: {statistics.median(ms):.3f} ms CPU a call "
            f"(least {min(ms):.3f}), {runs[0]['bytes']:,.0f} bytes of journal a call; {runs[0]['calls']:,} calls, "
            f"prompts of up to {found[True][0]['longest']:,} tokens"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    if options.smoke:
        stand_in(4, 2, 1)
    else:
        stand_in(4, 10, options.times)


if __name__ == "__main__":
    main()
