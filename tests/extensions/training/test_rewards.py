"""What episodes pay: the metric of `harness eval` for the team, and exact credit for each turn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Move, Reply, Request
from harness.api.errors import SpecError, UserError
from harness.config import resolve
from harness.config.plan import Plan, protocol_seed
from harness.config.project import find
from harness.config.spec import parse
from harness.engines.mock import Mock
from harness.extensions.training import PendingTurn, Rollout, TrainingEnv
from harness.runtime.scoring import grade, measure
from harness.runtime.seats import seats
from harness.runtime.steps import Steps

FIRST = {"use": "expression", "act": "options[0] if options else noop"}
"""A reference that does not draw: it takes the first option."""
NETWORK = {
    "extends": "agentsnet_quick",
    "matrix": {"problem": ["coloring"], "graphs": ["small_world"], "size": [4]},
    "baseline": "random",
}
TABLE = {
    "extends": "worlds/dining_table",
    "matrix": {"order": ["simultaneous", "sequential"], "talk": [0]},
    "protocol": {"use": "steps", "order": "${order}", "max_timesteps": 4, "parse_retries": 1},
    "repeats": 1,
}
CARDS = {
    "name": "cards",
    "task": {"use": "openspiel", "game": "leduc_poker", "instances": 3},
    "protocol": "steps",
    "prompts": "games/standard",
    "metrics": ["score", {"use": "games/mean_return", "name": "points"}],
}
DILEMMA = {
    "name": "dilemma",
    "task": {"use": "openspiel", "game": "repeated_game(stage_game=matrix_pd(),num_repetitions=3)", "instances": 2},
    "protocol": "steps",
    "prompts": "games/standard",
    "metrics": ["score", {"use": "games/mean_return", "name": "points"}],
}
FIREWORKS = {**DILEMMA, "name": "fireworks", "task": {"use": "openspiel", "game": "tiny_hanabi", "instances": 3}}
RIVAL = {**CARDS, "agents": {"default": "model", "rival": {"policy": "random", "agents": ["Player-1"]}}}
"""A policy that does not learn: it plays on by itself where others' moves are replaced."""
WORLDS: dict[str, tuple[dict[str, Any], str]] = {
    "network": (NETWORK, "score"),
    "table": (TABLE, "dpbench/meals"),
    "cards": (CARDS, "returns"),
    "rival": (RIVAL, "returns"),
    "fireworks": (FIREWORKS, "score"),
    "dilemma": (DILEMMA, "points"),
}
"""Name → (spec, what is credited)."""


def scribbled(reply: Reply, seed: int) -> str:
    rng = random.Random(seed)
    if rng.random() < 0.2:
        return "I am not sure yet."
    return reply.written(rng.choice(list(reply.options))) if reply.options else reply.written(reply.noop)


def by_trainer(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    return scribbled(seat.reply, seat.seed)


def first(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    reply = seat.reply
    return reply.written(reply.options[0] if reply.options else reply.noop)


def rewarded(spec: Mapping[str, Any], rewards: Mapping[str, Any], generate: Any = by_trainer) -> list[Rollout]:
    with TrainingEnv({**spec, "rewards": dict(rewards)}, limit=1) as env:
        return env.rollouts(generate)


@pytest.mark.parametrize(
    "world", [world for world in WORLDS if world not in ("cards", "rival")]
)  # one number for all agents
@pytest.mark.parametrize("reference", ["random", pytest.param(FIRST, id="first")])
def test_shaping_sums_to_the_gain_over_the_reference(tmp_path: Path, world: str, reference: Any) -> None:
    spec, of = WORLDS[world]
    rollouts = rewarded(spec, {"turn": {"use": "shaping", "by": reference, "of": of}})
    alone = harness.evaluate({**spec, "baseline": reference}, limit=1, output_path=tmp_path / "run")
    kept = {score.id: score for score in alone.scores}
    for rollout in rollouts:
        assert rollout.rewards is not None, rollout.unpaid
        per_batch: dict[int, dict[str, float]] = {}
        counts: dict[str, int] = {}
        for number, batch in enumerate(rollout.episode.batches):
            for move in batch:
                key = move.agent, counts.get(move.agent, 0)
                counts[move.agent] = key[1] + 1
                per_batch.setdefault(number, {})[move.agent] = rollout.rewards.turns[key]
        total = sum(next(iter(own.values())) for own in per_batch.values())
        assert all(len(set(own.values())) == 1 for own in per_batch.values())
        assert total == pytest.approx(rollout.score.number(of) - kept[rollout.task.id].number(of))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("use", ["credit", "shaping"])
def test_the_move_of_the_reference_has_no_credit(world: str, use: str) -> None:
    spec, of = WORLDS[world]
    for rollout in rewarded(spec, {"turn": {"use": use, "by": FIRST, "of": of}}, first):
        assert rollout.rewards is not None, rollout.unpaid
        assert rollout.rewards.turns and set(rollout.rewards.turns.values()) == {0.0}


@pytest.mark.parametrize("use", ["credit", "shaping"])
def test_turns_are_paid_as_conversations_have_them(use: str) -> None:
    """A failed request is in no conversation, and pays nothing."""

    def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str | None:
        return None if seat.seed % 3 == 0 else by_trainer(messages, tools, sampling, seat)

    turn = {"use": use, "by": FIRST, "of": "dpbench/meals"}
    failed = 0
    for rollout in rewarded(TABLE, {"turn": turn}, generate):
        failed += sum(move.error is not None and not move.calls for batch in rollout.episode.batches for move in batch)
        for agent in rollout.rewards.agents:
            own = [one for one in rollout.conversations if one.agent == agent]
            paid = sum(step.reward for one in own for step in one.replies)
            assert rollout.rewards.total(agent) == pytest.approx(rollout.rewards.agents[agent] + paid)
    assert failed


def course(
    env: TrainingEnv, rollout: Rollout, plan: Plan, of: str, upto: int, without: str | None = None
) -> Mapping[str, float]:
    """The numbers where the policies of a plan play on from batch `upto`, without any sharing of courses.

    `without`: an agent whose move in the batch before it is the policy's too.
    """
    task = rollout.task
    condition, case = task.condition, task.case
    seated = seats(plan, next(one for one in plan.conditions if one.id == condition.id), case, task.repeat)
    players = {agent: seat.policy_player() for agent, seat in seated.items()}
    rng = random.Random(protocol_seed(env.plan, condition, case, task.repeat))
    batches: list[list[Move]] = []
    with Steps(condition.protocol, condition.task, case, rng) as game:
        while (batch := game.batch) is not None:
            own = {turn.agent: players[turn.agent].decide(turn) for turn in batch}
            moves = [*own.values()]
            if game.number < upto:
                is_last = game.number == upto - 1
                actual = rollout.episode.batches[game.number]
                moves = [own[m.agent] if is_last and m.agent == without else m for m in actual]
            batches.append(moves)
            game.send(moves)
        outcome = game.result()
    graded = grade(replace(rollout.episode, batches=batches, outcome=outcome, grade={}), condition, case)
    if of == "returns":
        returns: Mapping[str, float] = graded.grade["returns"]
        return returns
    number = measure(graded, {of: env.plan.metrics[of]})[0][of]
    assert isinstance(number, float)
    return dict.fromkeys(case.agents, number)


@pytest.mark.parametrize("world", WORLDS)
def test_credit_is_the_difference_that_a_move_makes(world: str) -> None:
    spec, of = WORLDS[world]
    with TrainingEnv({**spec, "rewards": {"turn": {"use": "credit", "by": "random", "of": of}}}, limit=1) as env:
        rollout = env.rollouts(by_trainer)[-1]
        assert rollout.rewards is not None, rollout.unpaid
        counts: dict[str, int] = {}
        plan = resolve.plan(parse({**env.plan.spec.data, "baseline": "random"}, find()), find())
        for number, batch in enumerate(rollout.episode.batches):
            for move in batch:
                key = move.agent, counts.get(move.agent, 0)
                counts[move.agent] = key[1] + 1
                if move.agent not in rollout.rewards.agents:
                    assert key not in rollout.rewards.turns
                    continue
                own = course(env, rollout, plan, of, number + 1)[move.agent]
                without = course(env, rollout, plan, of, number + 1, move.agent)[move.agent]
                assert rollout.rewards.turns[key] == pytest.approx(own - without)


@pytest.mark.parametrize(("spec", "metric"), [(NETWORK, "solved"), (TABLE, "dpbench/meals"), (DILEMMA, "points")])
def test_the_team_is_paid_what_eval_measures(spec: dict[str, Any], metric: str, tmp_path: Path) -> None:
    def by_engine(request: Request) -> str:
        assert request.reply is not None
        return scribbled(request.reply, request.seed)

    with_rewards = {**spec, "rewards": {"team": metric}}
    run = harness.evaluate(with_rewards, Mock(function=by_engine), limit=1, output_path=tmp_path / "run")
    measured = {score.id: score.number(metric) for score in run.scores}
    rollouts = rewarded(spec, {"team": metric})
    assert {one.task.id: one.rewards.team for one in rollouts if one.rewards} == measured
    for one in rollouts:
        assert {conversation.reward for conversation in one.conversations} == {measured[one.task.id]}


def test_rewards_are_no_part_of_the_experiment(tmp_path: Path) -> None:
    plain = harness.evaluate(NETWORK, limit=1, output_path=tmp_path / "run")
    again = harness.evaluate({**NETWORK, "rewards": {"team": "score"}}, limit=1, output_path=tmp_path / "run")
    assert again.folder == plain.folder and again.scores == plain.scores
    assert again.meta["spec_digest"] == plain.meta["spec_digest"]


def test_agents_are_paid_for_their_own_moves_alone() -> None:
    rewards = {
        "team": {"use": "score", "weight": 0.5},
        "agent": {"use": "expression", "of": "len(actions)", "weight": 2},
        "format": {"use": "parse_failures", "weight": -0.25},
    }
    for rollout in rewarded(NETWORK, rewards):
        assert rollout.rewards is not None
        for agent, reward in rollout.rewards.agents.items():
            moves = [move for move in rollout.episode.moves() if move.agent == agent]
            failures = sum(move.error_kind == "parse" for move in moves)
            score = rollout.score.number("score")
            assert reward == pytest.approx(0.5 * score + 2 * len(moves) - 0.25 * failures)


def test_zero_sum_games_pay_each_agent_its_return() -> None:
    with TrainingEnv(CARDS) as env:
        rollouts = env.rollouts(by_trainer)
    assert any(set(one.rewards.agents.values()) != {0.0} for one in rollouts if one.rewards)
    for one in rollouts:
        assert one.rewards is not None and dict(one.rewards.agents) == one.episode.grade["returns"]
        assert sum(one.rewards.agents.values()) == pytest.approx(0)


WRONG: dict[str, tuple[str, str]] = {
    "no metric": ("{team: solvd}", r":2:17: there is no metric 'solvd'"),
    "no number of an episode": ("{team: {use: corpus, function: bleu}}", r"rewards|metric"),
    "weight": ("{team: {use: solved, weight: much}}", r":2:\d+: .*number"),
    "infinite": ("{team: {use: solved, weight: .inf}}", r":2:39: 'weight' must be a number, found the infinite"),
    "expression": ('{agent: {use: expression, of: "anwser == 1"}}', r":2:\d+: anwser: unknown name"),
    "fails": (
        '{team: {use: expression, of: "1 / solved"}}',
        r":2:\d+: 1 / solved: float division by zero .* do nothing",
    ),
    "no text": ("{agent: {use: expression}}", r"an expression needs of:"),
    "no returns": ("{agent: returns}", r":2:18: returns: .* pays agents no returns"),
    "no such part": ("{teams: solved}", r"teams"),
    "no policy": ("{turn: {use: credit, by: randon}}", r":2:\d+: there is no policy 'randon'"),
    "cannot play": ("{turn: {use: credit, by: dpbench/polite}}", r":2:\d+: this policy cannot play"),
    "no floor": ("{turn: credit}", r":2:\d+: credit needs a reference policy"),
    "credit has no discount": ("{turn: {use: credit, by: random, discount: 0.9}}", r"credit takes no discount"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rewards_are_refused_with_their_place(case: str, tmp_path: Path) -> None:
    written, says = WRONG[case]
    matrix = "{problem: [consensus], graphs: [small_world], size: [4]}"
    text = f"extends: agentsnet_quick\nrewards: {written}\nmatrix: {matrix}\n"
    if case == "no floor":
        text += "headline:\n"
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=says) as error:
        TrainingEnv(file)
    assert "wrong.yaml:2" in str(error.value)


def test_a_length_penalty_counts_the_tokens_of_the_trainer() -> None:
    def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> Completion:
        text = by_trainer(messages, tools, sampling, seat)
        return Completion(text, prompt_token_ids=[1, 2], token_ids=[*map(ord, text)])

    for rollout in rewarded(NETWORK, {"length": {"use": "tokens", "kind": "output", "weight": -0.01}}, generate):
        assert rollout.rewards is not None, rollout.unpaid
        for agent, reward in rollout.rewards.agents.items():
            calls = [call for move in rollout.episode.moves() if move.agent == agent for call in move.calls]
            assert reward == pytest.approx(-0.01 * sum(len(call.text) for call in calls))


COUNTED = {"use": "tokens", "name": "spent"}
NAMESAKE = {"use": "grade", "of": "solved", "name": "tokens"}


@pytest.mark.parametrize(
    ("metrics", "rewards", "refused"),
    [
        ([], {"length": "tokens"}, True),
        ([COUNTED], {"team": "spent"}, True),
        ([COUNTED], {"team": {"use": "expression", "of": "solved and solved - spent"}}, True),
        ([COUNTED], {"agent": {"use": "expression", "of": "0.0 if spent is None else spent"}}, True),
        ([COUNTED], {"team": "solved"}, False),
        ([NAMESAKE], {"team": "tokens"}, False),
        ([NAMESAKE], {"team": {"use": "expression", "of": "2 * tokens"}}, False),
        ([NAMESAKE], {"length": {"use": "tokens", "kind": "output"}}, True),
    ],
)
def test_metrics_that_count_tokens_are_known_by_class(
    metrics: list[Any], rewards: dict[str, Any], refused: bool
) -> None:
    spec = {**NETWORK, "metrics": ["solved", *metrics], "headline": {"metric": "solved"}, "rewards": rewards}
    with TrainingEnv(spec, limit=1) as env:
        if not refused:
            env.check_texts()
            return
        with pytest.raises(SpecError, match=f"rewards: {next(iter(rewards))}: replies are texts"):
            env.check_texts()


def test_an_episode_without_a_number_says_why() -> None:
    [rollout, *_] = rewarded(NETWORK, {"length": {"use": "tokens", "weight": -0.01}})
    assert rollout.rewards is None and "'tokens' has no number" in str(rollout.unpaid)
    assert all(conversation.reward is None for conversation in rollout.conversations)
    consensus = {**NETWORK, "matrix": {"problem": ["consensus"], "graphs": ["small_world"], "size": [4]}}
    often = {"team": {"use": "expression", "of": "1 / (1 - solved)"}}
    [rollout, *_] = rewarded(consensus, often, lambda *_: "0")
    assert rollout.rewards is None and "division by zero" in str(rollout.unpaid)
