"""Episodes that a trainer plays are those of `harness eval`, move by move."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Move, Reply, Request
from harness.api.errors import DataError, SpecError
from harness.config.project import find
from harness.engines.mock import Mock
from harness.extensions.training import PendingTurn, Rollout, TrainerError, TrainingEnv
from harness.storage import finished_episodes

FAMILIES = {
    "agentsnet_quick": ("local_rounds", 1),
    "arithmetic": ("single", 2),
    "dpbench_quick": ("action_rounds", 1),
    "hanabi": ("steps", 1),
    "mas_quick": ("command_rounds", 1),
    "silo_panel": ("debate", 1),
    "silo_quick": ("local_rounds", 1),
    "studies/who_changes_minds": ("discussion", 1),
    "teams/importance": ("team", 1),
}
"""Spec → (its protocol, cases of a condition)."""
PANELS = ["darkforest", "graph_of_agents", "mixture_of_agents", "reconcile", "self_refine", "vote"]
"""Protocols that play with their defaults."""


def scribbled(reply: Reply, seed: int) -> str:
    """What a poor model might write: an option, an idle move, something unreadable."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.2:
        return "I am not sure yet."
    if reply.options and kind < 0.8:
        return str(rng.choice(list(reply.options)))
    return reply.written(reply.noop)


def by_trainer(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    return scribbled(seat.reply, seat.seed)


def by_engine(request: Request) -> str:
    assert request.reply is not None
    return scribbled(request.reply, request.seed)


def facts(batches: Any) -> list[Any]:
    """What a run and a trainer must agree on."""

    def of(move: Move) -> tuple[Any, ...]:
        return move.agent, move.turn, move.action, move.error_kind, [call.text for call in move.calls]

    return [[of(move) for move in batch] for batch in batches]


def recorded(run: harness.Run) -> Iterator[tuple[str, list[Any]]]:
    for line, batches in finished_episodes.batches(run.folder / "journal.jsonl"):
        yield line["e"], facts(batches)


def test_all_protocols_are_here() -> None:
    known = {entry.name for entry in find().listing("protocols")}
    assert known == {*PANELS, *(protocol for protocol, _ in FAMILIES.values())}


@pytest.mark.parametrize("name", [*FAMILIES, *PANELS])
def test_an_episode_is_that_of_eval_move_by_move(name: str, tmp_path: Path) -> None:
    spec: Any = name
    if name in PANELS:
        task = {"use": "arithmetic", "size": 3}
        spec = {"name": name, "task": task, "protocol": name, "prompts": "panels/standard", "metrics": ["score"]}
    limit = FAMILIES.get(name, ("", 3))[1]
    run = harness.evaluate(spec, Mock(function=by_engine), limit=limit, output_path=tmp_path / "run")
    with TrainingEnv(spec, limit=limit) as env:
        rollouts = env.rollouts(by_trainer)
        lockstep = env.batched(lambda turns: [by_trainer((), (), {}, turn) for turn in turns], env.tasks[:3], epoch=0)
    assert {one.task.id: facts(one.episode.batches) for one in rollouts} == dict(recorded(run))
    assert [facts(one.episode.batches) for one in lockstep] == [facts(one.episode.batches) for one in rollouts[:3]]
    own = {score.id: score.numbers for score in run.scores}
    for one in rollouts:
        assert own[one.task.id] == {name: own[one.task.id][name] for name in own[one.task.id]} | one.score.numbers


CONSENSUS = "agentsnet_quick"
ONLY = ["matrix.problem=[consensus]", "matrix.size=[4]", "matrix.graphs=[small_world]"]


def consensus(**more: Any) -> TrainingEnv:
    """Four agents that are to agree: four rounds of messages, then an answer."""
    return TrainingEnv(CONSENSUS, overrides=ONLY, **more)


def test_a_group_shares_the_chance_of_the_environment() -> None:
    seeds: dict[int, list[int]] = {}

    def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
        seeds.setdefault(int(f"{seat.episode}#0".split("#")[1]), []).append(seat.seed)
        return "0"

    with consensus() as env:
        rollouts = env.rollouts(generate, env.tasks[:1], 3)
    assert [one.sample for one in rollouts] == [0, 1, 2]
    assert len({tuple(one.task.case.agents) for one in rollouts}) == 1
    assert len({tuple(sorted(own)) for own in seeds.values()}) == 3
    texts = [[c.messages[0]["content"] for c in one.conversations] for one in rollouts]
    assert texts[0] == texts[1] == texts[2]


def test_a_conversation_is_what_was_asked_with_every_reply() -> None:
    asked: list[tuple[str, list[Any]]] = []

    def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
        asked.append((seat.agent, [*messages]))
        return "unreadable" if seat.attempt == 0 and seat.reply.options else scribbled(seat.reply, 3)

    with consensus() as env:
        [rollout] = env.rollouts(generate, env.tasks[:1])
    assert [one.agent for one in rollout.conversations] == list(rollout.task.case.agents)
    for conversation in rollout.conversations:
        prompts = [messages for agent, messages in asked if agent == conversation.agent]
        assert len(prompts) == len(conversation.replies)
        for step, messages in zip(conversation.replies, prompts, strict=True):
            assert conversation.messages[: step.message] == messages
            reply = {"role": "assistant", "content": step.completion.text}
            assert conversation.messages[step.message] == reply
        assert conversation.reward == rollout.score.number("solved")
        assert conversation.samples() == []  # the trainer gave no token ids


def letters(text: str) -> list[int]:
    return [*map(ord, text)]


def with_ids(messages: Any, reply: str, forgets: bool = False) -> Completion:
    """A model whose tokens are letters; `forgets`: its template drops what it said before."""
    kept = [one for one in messages if not (forgets and one["role"] == "assistant")]
    prompt = letters("".join(f"<{one['role']}>{one['content']}</>" for one in kept) + "<assistant>")
    own = letters(reply + "</>")
    return Completion(reply, prompt_token_ids=prompt, token_ids=own, logprobs=[-0.5] * len(own))


@pytest.mark.parametrize("forgets", [False, True])
def test_token_ids_are_those_of_the_last_prompt_and_its_reply(forgets: bool) -> None:
    def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> Completion:
        return with_ids(messages, scribbled(seat.reply, seat.seed), forgets)

    with consensus() as env:
        [rollout] = env.rollouts(generate, env.tasks[:1], decode=lambda ids: "".join(map(chr, ids)))
    for conversation in rollout.conversations:
        samples = conversation.samples()
        assert len(samples) == (len(conversation.replies) if forgets else 1)
        last = conversation.replies[-1].completion
        assert samples[-1].token_ids == [*(last.prompt_token_ids or ()), *(last.token_ids or ())]
        for sample in samples:
            own = "".join(chr(one) for one, is_own in zip(sample.token_ids, sample.mask, strict=True) if is_own)
            texts = [step.completion.text + "</>" for step in conversation.replies]
            assert own == "".join(texts) if not forgets else own in texts
            assert sample.logprobs is not None
            assert {p for p, is_own in zip(sample.logprobs, sample.mask, strict=True) if is_own} == {-0.5}
            assert len(sample.rewards) == len(sample.mask)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Completion("yes", token_ids=[1, 2], logprobs=[-1.0]), "1 log-probabilities for 2 token ids"),
        (Completion("yes", token_ids=[1, -2]), "not all whole numbers"),
        (Completion("yes", token_ids=[1], logprobs=[float("nan")]), "not all finite"),
        (Completion("yes", token_ids=letters("no")), "decode to 'no', not to its text 'yes'"),
        (17, "returned 17, neither a text"),
    ],
)
def test_a_trainer_that_returns_no_reply_is_stopped(reply: Any, says: str) -> None:
    with consensus() as env, pytest.raises(TrainerError, match=says):
        env.rollouts(lambda *_: reply, decode=lambda ids: "".join(map(chr, ids)))


def test_a_trainer_that_raises_or_hangs_fails_its_episode_alone() -> None:
    never = threading.Event()

    def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str | None:
        if "#1" in seat.episode:
            raise OSError("out of memory")
        if "#2" in seat.episode:
            never.wait(20)
        return None if "#3" in seat.episode else "0"

    with consensus() as env:
        rollouts = env.rollouts(generate, env.tasks[:1], 4, timeout=1.5)
        never.set()
    assert [one.error is None for one in rollouts] == [True, False, False, False]
    assert "out of memory" in str(rollouts[1].error)
    assert "gave no reply" in str(rollouts[2].error) and "within 1.5 s" in str(rollouts[2].error)
    assert "no model answered" in str(rollouts[3].error)
    assert [one.rewards is None for one in rollouts] == [False, True, True, True]


def test_a_trainer_that_raises_in_every_episode_is_told() -> None:
    def broken(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
        return str(messages[0]["text"])

    async def broken_too(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
        return broken(messages, tools, sampling, seat)

    async def never(*_: Any) -> str:
        await asyncio.Event().wait()
        return "0"

    def differs(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
        raise OSError(seat.episode)

    with consensus() as env:
        for generate, timeout in ((broken, None), (broken, 60), (broken_too, None)):
            with pytest.raises(KeyError, match="text") as error:
                env.rollouts(generate, env.tasks[:2], 2, timeout=timeout)
            assert "broken" in [entry.name for entry in error.traceback]
        rollouts = env.rollouts(differs, env.tasks[:1], 2)
        assert all("OSError" in str(one.error) for one in rollouts)
        assert env.rollouts(broken, []) == []
        [slow] = env.rollouts(never, env.tasks[:1], timeout=0.01)
        assert "gave no reply" in str(slow.error)


@pytest.mark.parametrize(
    ("generate", "says"),
    [
        (
            lambda messages, seat: "0",
            r"called as generate\(messages, tools, sampling, seat\), but takes \(messages, seat",
        ),
        ("a model", "generate is 'a model', neither a function"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(generate: Any, says: str) -> None:
    with consensus() as env:
        with pytest.raises(TrainerError, match=says):
            env.rollouts(generate)
        with pytest.raises(TrainerError, match=says):
            asyncio.run(env.rollout(env.tasks[0], generate))


def test_an_episode_is_answered_step_by_step() -> None:
    with consensus() as env, env.start(env.tasks[0]) as game:
        assert [turn.agent for turn in game.pending] == list(env.tasks[0].case.agents)
        with pytest.raises(RuntimeError, match="not over: it waits for"):
            assert game.rollout
        with pytest.raises(ValueError, match="no turn of 'nobody' is pending"):
            game.answer({"nobody": "0"})
        first, *others = game.pending
        game.answer({first.agent: "unreadable"})
        assert {turn.agent for turn in game.pending} >= {turn.agent for turn in others}
        while game.pending:
            game.answer({turn.agent: scribbled(turn.reply, turn.seed) for turn in game.pending})
        assert game.is_over and game.rollout.error is None
        assert len(game.rollout.conversations) == 4


UNCLOSED = """
from harness.extensions.training import TrainingEnv

env = TrainingEnv("agentsnet_quick", limit=1)
game = env.start(env.tasks[0])
raise ValueError("of the trainer")
"""


def test_a_trainer_that_raises_hears_of_its_own_error_alone() -> None:
    done = subprocess.run([sys.executable, "-c", UNCLOSED], capture_output=True, text=True)
    assert done.stderr.startswith("Traceback") and done.stderr.endswith("ValueError: of the trainer\n")


def test_it_works_within_a_loop_that_runs() -> None:
    async def notebook() -> list[Rollout]:
        with consensus() as env:
            assert len(env.rollouts(by_trainer)) == len(env.tasks)
            return [await env.rollout(task, by_trainer) for task in env.tasks]

    assert all(one.error is None for one in asyncio.run(notebook()))


def test_groups_that_do_not_learn_are_played_by_others() -> None:
    agents = {"default": "model", "others": {"model": "model", "count": 2}}
    spec = {"extends": CONSENSUS, "agents": agents}
    with TrainingEnv(spec, overrides=ONLY, learn=["default"], opponents={"others": "random"}) as env:
        [rollout, *_] = env.rollouts(by_trainer, env.tasks[:1])
    assert len(rollout.conversations) == 2 and {one.group for one in rollout.conversations} == {"default"}
    engine = Mock(text="1")
    with TrainingEnv(spec, overrides=ONLY, learn=["default"], opponents={"others": engine}) as env:
        [rollout, *_] = env.rollouts(by_trainer, env.tasks[:1])
        learners = env.learners(env.tasks[0])
    texts = {call.text for move in rollout.episode.moves() if move.agent not in learners for call in move.calls}
    assert texts == {"1"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"learn": []}, "learn: no group learns\n.*default"),
        ({"learn": "defualt"}, "there is no group 'defualt' under agents:"),
        ({"learn": ["defualt"]}, "there is no group 'defualt' under agents:"),
        ({"opponents": {"default": "random"}}, "opponents: 'default': it learns"),
        ({"opponents": {"rest": "random"}}, "opponents: 'rest': the model under test plays no such group"),
    ],
)
def test_seats_that_are_not_there_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        consensus(**given)


def test_a_group_that_learns_may_stand_alone() -> None:
    with consensus(learn="default") as env:
        assert env.learn == {"default"}


def test_a_task_may_be_named_by_its_id() -> None:
    with consensus() as env:
        name = env.tasks[0].id
        rollouts = [*env.rollouts(by_trainer, [name, (name, 1)], epoch=0), asyncio.run(env.rollout(name, by_trainer))]
        assert all(one.task is env.tasks[0] for one in rollouts)
        with env.start(name) as game:
            assert game.pending
        with pytest.raises(DataError, match="there is no task 'none'"):
            env.rollouts(by_trainer, ["none"])


def test_calls_that_hang_keep_no_other_call_waiting() -> None:
    never = threading.Event()

    def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
        if "#" in seat.episode:
            never.wait(60)
        return "0"

    with consensus() as env:
        rollouts = env.rollouts(generate, [(env.tasks[0], sample) for sample in [*range(1, 9), 0]], timeout=1)
    assert [one.error is None for one in rollouts] == [False] * 8 + [True]
    never.set()


def test_an_engine_of_two_groups_is_started_once() -> None:
    class Counted(Mock):
        started = closed = 0

        async def start(self) -> None:
            type(self).started += 1

        async def close(self) -> None:
            type(self).closed += 1

    agents = {
        "default": "model",
        "some": {"model": "model", "count": 1},
        "others": {"model": "model", "count": 1},
    }
    engine = Counted(text="1")
    opponents = {"some": engine, "others": engine}
    with TrainingEnv(
        {"extends": CONSENSUS, "agents": agents}, overrides=ONLY, learn=["default"], opponents=opponents
    ) as env:
        env.rollouts(by_trainer, env.tasks[:1])
    assert (Counted.started, Counted.closed) == (1, 1)


def test_an_episode_that_was_closed_says_so() -> None:
    with consensus() as env:
        game = env.start(env.tasks[0])
        game.close()
        assert not game.is_over
        with pytest.raises(RuntimeError, match="was closed before its end"):
            assert game.rollout
