"""The harness against vLLM's bare engine on the very same token-id requests, with a tiny random model on the CPU."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

Row = dict[str, object]
Asked = tuple[str, list[int], dict[str, Any], int, dict[str, Any] | None]
"""A request: its id, token ids, sampling, seed and constraint."""
Measured = Callable[[list[str]], tuple[float, float, float, str]]

NEW = 400  # characters of a user's turn
AGENTS, ROUNDS = 4, 9  # an episode: a network of four agents who talk nine times and then answer
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "OMP_NUM_THREADS": "1",
}
ARGUMENTS: dict[str, Any] = {
    "max_model_len": 8192,
    "max_num_batched_tokens": 8192,
    "enable_chunked_prefill": False,
    "block_size": 32,
    "enforce_eager": True,
    "max_num_seqs": 256,
}


def vllm(measured: Measured, script: str, smoke: bool) -> list[Row]:
    """Requests a second, the harness's and the bare engine's, taken in turns in one process: which of them goes first
    alternates, after a pass that is not measured."""
    out = measured([script, "--work", f"vllm:{1 if smoke else 5}:{8 if smoke else 256}"])[3]
    rows: list[Row] = json.loads(out.splitlines()[-1])
    return rows


def work_vllm(passes: int, most: int) -> list[Row]:
    """In a process of its own: one start of the engine, then both ways in turns."""
    os.environ.update({name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()})
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_compared(Path(folder), passes, [n for n in (8, 64, 256) if n <= most]))


async def _compared(folder: Path, passes: int, sizes: list[int]) -> list[Row]:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from harness.extensions.vllm.vllm import VLLM
    from tests.helpers.tiny_model import make

    engine = VLLM(pretrained=str(make(folder / "tiny")), **ARGUMENTS)
    remaining = _kept(engine)
    await engine.start()
    rows: list[Row] = []
    try:
        await _harness(remaining, 1, folder / "warm")
        for size in sizes:
            figures: dict[str, list[dict[str, float]]] = {"harness": [], "bare": [], "free": []}
            await _harness(remaining, size // AGENTS, folder / f"{size}")
            asked = sorted(remaining.asked, key=lambda request: request[0])
            for i in range(passes):
                ways = [*figures] if i % 2 == 0 else [*reversed(figures)]
                for way in ways:
                    await engine._engine.reset_prefix_cache()
                    if way == "harness":
                        figures[way].append(await _harness(remaining, size // AGENTS, folder / f"{size}-{i}"))
                        if sorted(remaining.asked, key=lambda request: request[0]) != asked:
                            raise SystemExit("the requests of two passes differ")
                    else:
                        figures[way].append(await _bare(engine._engine, asked, barriers=way == "bare"))
            rows.append(_row(size, figures))
    finally:
        await engine.close()
    return rows


def client(measured: Measured, script: str, smoke: bool) -> list[Row]:
    """What the engine takes for a request beside vLLM's own work."""
    out = measured([script, "--work", f"vllm_client:{8 if smoke else 200}"])[3]
    return [{"turns": 10, "new characters a turn": NEW, "CPU µs a request, least of the conversations": float(out)}]


def work_client(conversations: int) -> float:
    """In a process of its own: µs a request, with an engine in vLLM's place that answers at once."""
    os.environ.update({name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()})
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_answered_at_once(Path(folder), conversations))


async def _answered_at_once(folder: Path, conversations: int) -> float:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import random
    from types import SimpleNamespace

    from transformers import AutoTokenizer

    from harness.api import Request, Thread
    from harness.engines.chat_tokens import ChatTokens
    from harness.extensions.vllm.vllm import VLLM
    from tests.helpers.tiny_model import CORPUS, make_tokenizer

    make_tokenizer(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rng = random.Random(0)
    words = " ".join(CORPUS).split()

    ids = tokenizer.encode(" ".join(words), add_special_tokens=False)[:32]

    class AtOnce:
        """32 tokens, none of them special."""

        vllm_config = SimpleNamespace(parallel_config=SimpleNamespace(data_parallel_size=1))

        async def generate(self, *_: Any, **__: Any) -> Any:
            reply = SimpleNamespace(token_ids=ids, finish_reason="length", stop_reason=None, text="")
            yield SimpleNamespace(outputs=[reply], num_cached_tokens=0)

    engine: Any = VLLM(pretrained=str(folder))
    engine._chat, engine._engine, engine._limit = ChatTokens(tokenizer), AtOnce(), 8192
    sampling = {"temperature": 1.0, "max_tokens": 32, "logit_bias": {"0": -100, "1": -100, "2": -100}}
    least = float("inf")
    for conversation in range(conversations):
        thread, spent = Thread(), 0.0
        for turn in range(10):
            thread.add("user", " ".join(rng.choices(words, k=NEW))[:NEW])
            request = Request(f"e/{conversation}/{turn}/0", thread, sampling, turn)
            began = time.thread_time()
            answer = await engine.complete(request)
            spent += time.thread_time() - began
            thread.add("assistant", answer.text)
        least = min(least, spent / 10)
    return round(1e6 * least, 1)


def statistics_modes(measured: Measured, script: str, smoke: bool) -> list[Row]:
    """What the engine's statistics cost this process, on synthetic conversations."""
    rows: list[Row] = []
    modes = {"none": "none", "listen": "the scheduler's only (ours)", "all": "vLLM's own with a stat logger"}
    mapping: dict[str, list[dict[str, float]]] = {mode: [] for mode in modes}
    for _ in range(1 if smoke else 3):
        for mode in modes:
            out = measured([script, "--work", f"vllm_stats:{mode}:{8 if smoke else 64}"])[3]
            mapping[mode].append(json.loads(out.splitlines()[-1]))
    for mode, title in modes.items():
        cpu = min(1000 * f["cpu"] / f["requests"] for f in mapping[mode])
        rate = max(f["requests"] / f["wall"] for f in mapping[mode])
        rows.append({"statistics": title, "client CPU ms a request": round(cpu, 3), "req/s": round(rate, 1)})
    return rows


def work_stats(mode: str, conversations: int) -> dict[str, float]:
    """In a process of its own: ten turns of so many conversations on an engine of this mode."""
    os.environ.update({name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()})
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_client_cost(Path(folder), mode, conversations))


async def _client_cost(folder: Path, mode: str, conversations: int) -> dict[str, float]:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import random

    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    from harness.engines.priority import PriorityGate
    from harness.extensions.vllm.load import Listener, Load, listen_only
    from tests.helpers.tiny_model import make

    load = Load(256)
    listener = Listener(load, PriorityGate(load.admits), 0)
    arguments = AsyncEngineArgs(model=str(make(folder / "tiny")), disable_log_stats=True, **ARGUMENTS)
    engine = AsyncLLM.from_engine_args(arguments, stat_loggers=None if mode == "none" else [lambda *_: listener])
    if mode == "listen":
        listen_only(engine)
    rng = random.Random(0)
    requests: list[Asked] = []
    sampling: dict[str, Any] = {"max_tokens": 32, "logit_bias": {"0": -100, "1": -100, "2": -100}}
    for agent in range(conversations):
        ids = [rng.randrange(3, 250) for _ in range(200)]
        for turn in range(10):
            ids = [*ids, *(rng.randrange(3, 250) for _ in range(150))]
            requests.append((f"{agent}/a/{turn}/0", ids, sampling, agent * 100 + turn, None))
    try:
        await _bare(engine, requests[:10])
        return await _bare(engine, requests)
    finally:
        engine.shutdown()


def _row(size: int, figures: dict[str, list[dict[str, float]]]) -> Row:
    """Medians of all ways, and of the ratios of those of one pass."""
    rate = {way: statistics.median(f["requests"] / f["wall"] for f in passes) for way, passes in figures.items()}
    cpu = {way: statistics.median(1000 * f["cpu"] / f["requests"] for f in passes) for way, passes in figures.items()}
    pairs = list(zip(figures["harness"], figures["bare"], strict=True))
    return {
        "conversations": size,
        "requests": int(figures["bare"][0]["requests"]),
        "bare req/s": round(rate["bare"], 1),
        "harness req/s": round(rate["harness"], 1),
        "harness / bare": round(statistics.median(b["wall"] / h["wall"] for h, b in pairs), 3),
        "bare without barriers req/s": round(rate["free"], 1),
        "bare CPU ms": round(cpu["bare"], 2),
        "harness CPU ms": round(cpu["harness"], 2),
        "CPU harness / bare": round(statistics.median(h["cpu"] / b["cpu"] for h, b in pairs), 2),
        "prefix cache": round(statistics.median(f["cached"] for f in figures["harness"]), 3),
    }


def _kept(engine: Any) -> Any:
    """The engine with `start` and `close` left out, noting what it is asked."""
    from harness.api import Completion, Engine, Request

    class Kept(Engine):
        def __init__(self) -> None:
            self.asked: list[Asked] = []
            self.cached = self.prompted = 0
            inner = engine._generate

            async def noted(request: Any, ids: list[int], make_parameters: Any) -> Any:
                self.asked.append((request.id, ids, dict(request.sampling), request.seed, request.constraint))
                output = await inner(request, ids, make_parameters)
                self.cached += output.num_cached_tokens or 0
                self.prompted += len(ids)
                return output

            engine._generate = noted

        @property
        def model(self) -> str:
            return str(engine.model)

        async def complete(self, request: Request) -> Completion:
            scripted = replace(request, constraint={"choice": [_scripted(request)]})
            answer: Completion = await engine.complete(scripted)
            return answer

    return Kept()


def _scripted(request: Any) -> str:
    """What the model is held to: a message to every neighbor, or the first of the labels. So it plays, at the length of
    a short message, and its neighbors read what it writes."""
    constraint = request.reply.constraint()
    if "choice" in constraint:
        return str(constraint["choice"][0])
    words = f"my colour is {request.seed % 4}"
    return json.dumps(dict.fromkeys(constraint["json"]["properties"], words))


async def _harness(engine: Any, episodes: int, folder: Path) -> dict[str, float]:
    """Seconds that the harness takes for whole episodes, from the plan to the last score."""
    from harness.config import resolve, spec
    from harness.config.plan import survey
    from harness.config.project import find
    from harness.engines.usage import Spent
    from harness.runtime.executors import Local
    from harness.runtime.options import Options
    from harness.runtime.runner import run, work_of

    project = find()
    calls = {
        "name": "talk",
        "extends": "agentsnet",
        "task": {"graphs": "small_world", "size": AGENTS},
        "protocol": {"rounds": ROUNDS, "parse_retries": 0},
        "matrix": {"problem": ["consensus"], "graphs": None, "size": None},
        "generation_kwargs": {"temperature": 1.0, "max_tokens": 256},
        "repeats": episodes,
        "tables": [],
    }
    plan = resolve.plan(spec.parse(calls, project, limit=1), project, engine)
    jobs = survey(plan).episodes
    folder.mkdir()
    engine.asked, engine.cached, engine.prompted = [], 0, 0
    wall, cpu = time.perf_counter(), time.process_time()
    work = work_of(plan, jobs, folder, Options(), lambda score: None, Spent())
    work.begin()
    await run(work, Local().play)
    scores = work.scores
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if any(score.error for score in scores):
        raise SystemExit(f"failed: {[score.error for score in scores if score.error][:3]}")
    if unread := [score.turns for score in scores if {*score.turns["model"]} - {"asked", "answered"}]:
        raise SystemExit(f"the model does not play: {unread[:3]}")
    return {"wall": wall, "cpu": cpu, "requests": len(engine.asked), "cached": engine.cached / engine.prompted}


async def _bare(engine: Any, asked: list[Asked], barriers: bool = True) -> dict[str, float]:
    """Seconds that vLLM takes for the same prompts.

    `barriers`: the agents of an episode wait for one another after every round, as they do in the harness; else each
    conversation goes on by itself, which no benchmark of groups can do.
    """
    from vllm.inputs import tokens_input
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    episodes: dict[str, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for name, ids, sampling, seed, constraint in asked:
        played, agent, turn, _ = name.rsplit("/", 3)
        episodes[played if barriers else f"{played}/{agent}"][int(turn)].append((ids, sampling, seed, constraint))
    numbers = count()

    async def one(ids: list[int], sampling: dict[str, Any], seed: int, constraint: dict[str, Any] | None) -> None:
        more: dict[str, Any] = {}
        if "logit_bias" in sampling:
            more["logit_bias"] = {int(token): bias for token, bias in sampling["logit_bias"].items()}
        if constraint is not None:
            more["structured_outputs"] = StructuredOutputsParams(**constraint)
        words = {**sampling, **more}
        kind = RequestOutputKind.FINAL_ONLY
        parameters = SamplingParams(seed=seed, output_kind=kind, skip_clone=True, detokenize=False, **words)
        async for _ in engine.generate(tokens_input(ids), parameters, f"bare#{next(numbers)}"):
            pass

    async def replay(rounds: dict[int, list[Any]]) -> None:
        for turn in sorted(rounds):
            await asyncio.gather(*(one(*request) for request in rounds[turn]))

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(replay, episodes.values()))
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "requests": len(asked)}
