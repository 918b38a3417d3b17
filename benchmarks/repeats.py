"""Whether an engine repeats itself at temperature 0: the same command again, one and 16 requests at once, a resume.

    python benchmarks/repeats.py tiny slots=16 window=1024
    python benchmarks/repeats.py tiny deterministic=true
    python benchmarks/repeats.py vllm pretrained=FOLDER dtype=float32 enforce_eager=true max_model_len=1024

Sixteen conversations of two turns. They are played one after another, then all at once; then the engine starts again
and plays them one after another, and answers the second turns behind the recorded first ones, as a resumed run does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import yaml

from harness.api import Engine, Request, Thread, derive_seed
from harness.config.project import builtin

QUESTIONS = (
    "Name three animals that live in the sea.", "Why is the sky blue?", "Write a story about a dog.",
    "What is 7 plus 5?", "Describe the city of Rome.", "How do I make tea?", "What does a doctor do?",
    "Tell me about the moon.", "Explain gravity to a child.", "Write a poem about winter.",
    "What is the best way to learn a language?", "Who was Napoleon?", "List four colors.", "What is a computer?",
    "Give me advice for a job interview.", "How do plants grow?",
)  # fmt: skip
AGAIN = "Say more about it."
SAMPLING = {"temperature": 0.0, "max_tokens": 16}
Talk = tuple[str, str]


async def talk(engine: Engine, number: int, first: str | None = None) -> Talk:
    """Both replies of a conversation; `first`: the recorded one, which is not asked for again."""
    thread = Thread()
    replies = []
    for turn, text in enumerate((QUESTIONS[number], AGAIN)):
        thread.add("user", text)
        if turn or first is None:
            asked = Request(f"e/{number}/{turn}/0", thread, SAMPLING, derive_seed(number, turn))
            replies.append((await engine.complete(asked)).text)
        else:
            replies.append(first)
        thread.add("assistant", replies[-1])
    return replies[0], replies[1]


async def one_by_one(engine: Engine, recorded: list[Talk] | None = None) -> list[Talk]:
    """All conversations, one after another; with `recorded` only their second turns."""
    return [await talk(engine, k, recorded[k][0] if recorded else None) for k in range(len(QUESTIONS))]


async def main(name: str, arguments: dict[str, Any]) -> None:
    """Play and print how many conversations are the same in every reply."""
    make = builtin().load("engines", name)
    engine = make(**arguments)
    began = time.perf_counter()
    await engine.start()
    started = time.perf_counter()
    alone = await one_by_one(engine)
    after = time.perf_counter()
    width = engine.width or len(QUESTIONS)
    places = asyncio.Semaphore(width)

    async def placed(number: int) -> Talk:
        async with places:
            return await talk(engine, number)

    crowd = await asyncio.gather(*map(placed, range(len(QUESTIONS))))
    crowded = time.perf_counter()
    await engine.close()
    engine = make(**arguments)
    await engine.start()
    again, resumed = await one_by_one(engine), await one_by_one(engine, alone)
    await engine.close()

    def same(others: list[Talk]) -> int:
        return sum(one == other for one, other in zip(alone, others, strict=True))

    facts = {
        "conversations": len(QUESTIONS),
        "the same again": same(again),
        f"{min(width, len(QUESTIONS))} at once": same(crowd),
        "after a resume": same(resumed),
        "seconds": {"start": started - began, "one by one": after - started, "at once": crowded - after},
    }
    print(json.dumps(facts, indent=1, default=lambda value: round(value, 1)))


if __name__ == "__main__":
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    asyncio.run(main(sys.argv[1], {key: yaml.safe_load(value) for key, value in words.items()}))
