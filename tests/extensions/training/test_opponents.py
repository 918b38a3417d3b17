"""Who plays the groups that do not learn: a pool of policies, engines and checkpoints, one drawn for each group."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SpecError, UserError
from harness.engines.mock import Mock
from harness.extensions.training import PendingTurn, TrainingEnv

FOLDS = {"use": "expression", "label": "folds", "act": "'Fold' if 'Fold' in options else options[0]"}
GAME: dict[str, Any] = {
    "name": "cards",
    "task": {"use": "openspiel", "game": "leduc_poker", "instances": 12},
    "protocol": "steps",
    "prompts": "games/standard",
    "agents": {"default": "model", "rival": {"model": "model", "agents": ["Player-1"]}},
    "metrics": ["score"],
    "learn": ["default"],
}


def plays(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    return seat.reply.written(random.Random(seat.seed).choice(list(seat.reply.options or [seat.reply.noop])))


def with_pool(*pool: Any, by: str = "uniform") -> dict[str, Any]:
    return {**GAME, "opponents": {"pool": [*pool], "by": by}}


def test_a_group_meets_one_opponent_and_says_whom() -> None:
    def met() -> list[str]:
        with TrainingEnv(with_pool("random", {"policy": FOLDS})) as env:
            first = env.rollouts(plays, group_size=3)
            again = env.batched(lambda turns: [plays((), (), {}, turn) for turn in turns], group_size=3)
        return [one.opponents["rival"] for one in [*first, *again]]

    names = met()
    groups = [set(names[i : i + 3]) for i in range(0, len(names), 3)]
    assert all(len(group) == 1 for group in groups) and {*names} == {"random", "folds"}
    assert names[:36] != names[36:]  # another draw each time
    assert names == met()  # by the seed


def test_the_opponent_that_was_drawn_plays() -> None:
    engine = Mock(text="Fold")
    with TrainingEnv(with_pool("random")) as env:
        env.add_opponent("step-100", engine)
        rollouts = env.rollouts(plays)
        with pytest.raises(ValueError, match="there is an opponent 'step-100' already"):
            env.add_opponent("step-100", engine)
    for rollout in rollouts:
        assert {one.agent for one in rollout.conversations} <= {"Player-0"}
        by_engine = rollout.opponents["rival"] == "step-100"
        rival = [move for move in rollout.episode.moves() if move.agent == "Player-1"]
        assert all(bool(move.calls) == by_engine for move in rival)
    assert {one.opponents["rival"] for one in rollouts} == {"random", "step-100"}


def test_the_newest_is_met_most_and_likes_of_strength_too() -> None:
    with TrainingEnv(with_pool("random", by="recent")) as env:
        env.add_opponent("new", FOLDS)
        counts = Counter(one.opponents["rival"] for _ in range(5) for one in env.rollouts(plays))
    assert counts["new"] > 2 * counts["random"] > 0
    with TrainingEnv(with_pool("random", {"policy": FOLDS}, by="rating")) as env:
        assert env.league is not None
        for _ in range(5):
            env.rollouts(plays)
        ratings = env.league.ratings
        assert env.league.own + sum(ratings.values()) == pytest.approx(3000)
        assert ratings["folds"] < ratings["random"]
        env.league.ratings |= {"folds": 0.0, "random": env.league.own}
        counts = Counter(one.opponents["rival"] for one in env.rollouts(plays))
    assert counts["random"] > counts["folds"]


def test_arguments_win_over_the_spec(tmp_path: Path) -> None:
    with TrainingEnv(with_pool("random"), opponents={"pool": [{"policy": FOLDS}]}) as env:
        assert {one.opponents["rival"] for one in env.rollouts(plays)} == {"folds"}
    with TrainingEnv(with_pool("random"), opponents={"rival": "random"}) as env:
        assert {*map(str, (one.opponents for one in env.rollouts(plays)))} == {"{}"}
    with TrainingEnv(with_pool("random"), opponents={"rival": None}) as env:  # of which nothing is said
        assert {one.opponents["rival"] for one in env.rollouts(plays)} == {"random"}
    with TrainingEnv({**GAME, "baseline": "random"}, opponents={"rival": None}) as env:
        assert {one.agent for one in env.rollouts(plays, env.tasks[:1])[0].conversations} == {"Player-0"}
    with TrainingEnv({**GAME, "agents": {"default": "model"}}) as env:  # the spec's own group learns
        assert env.learn == {"default"}


def test_who_learns_is_no_part_of_the_experiment(tmp_path: Path) -> None:
    plain = {key: value for key, value in GAME.items() if key != "learn"} | {"baseline": "random"}
    first = harness.evaluate(plain, limit=2, output_path=tmp_path / "run")
    again = harness.evaluate({**with_pool("random"), "baseline": "random"}, limit=2, output_path=tmp_path / "run")
    assert again.folder == first.folder and again.meta["spec_digest"] == first.meta["spec_digest"]


WRONG = {
    "learn: [defualt]": r":\d+:\d+: learn: there is no group 'defualt'",
    "opponents: {by: recent}": r":\d+:\d+: .*'pool'",
    "opponents: {rival: random}": r":\d+:\d+: .* no key 'rival'. .* opponents: \{pool: \[random\]\}",
    "opponents: {pool: [randon]}": r":\d+:\d+: there is no policy 'randon'",
    "opponents: {pool: [{model: frozen}]}": r":\d+:\d+: there is no model 'frozen' under models:",
    "opponents: {pool: [{label: x}]}": r"names neither a policy nor a model",
    "opponents: {pool: [random, random]}": r"two opponents are called 'random'",
    "opponents: {pool: [dpbench/polite]}": r":\d+:\d+: this policy cannot play",
    "opponents: {pool: [random], by: strength}": r"'by'|strength",
    "opponents: {pool: [random]}\nlearn: [default, rival]": r":\d+:\d+: opponents: there is nobody for them to play",
}


@pytest.mark.parametrize("keys", WRONG, ids=range(len(WRONG)))
def test_wrong_opponents_are_refused_with_their_place(keys: str, tmp_path: Path) -> None:
    file = tmp_path / "game.yaml"
    text = "name: cards\ntask: {use: openspiel, game: leduc_poker}\nprotocol: steps\nprompts: games/standard\n"
    text += "agents: {default: model, rival: {model: model, agents: [Player-1]}}\nmetrics: [score]\n"
    file.write_text(text + keys + ("" if "learn" in keys else "\nlearn: [default]"))
    with pytest.raises(UserError, match=WRONG[keys]) as error:
        TrainingEnv(file)
    assert "game.yaml" in str(error.value)


def test_ratings_need_games_that_somebody_wins() -> None:
    spec = {
        "extends": "agentsnet_quick",
        "agents": {"default": "model", "others": {"model": "model", "count": 1}},
        "learn": ["default"],
    }
    with pytest.raises(SpecError, match="by: rating needs games that pay agents returns"):
        TrainingEnv(spec, opponents={"pool": ["random"], "by": "rating"}, limit=1)
    with TrainingEnv(spec, limit=1) as env, pytest.raises(SpecError, match="there is no pool of opponents"):
        env.add_opponent("x", "random")


def test_the_baseline_of_each_condition_plays_who_does_not_learn() -> None:
    matrix = {"who": [{"name": "any", "rival": "random"}, {"name": "folds", "rival": FOLDS}]}
    with TrainingEnv({**GAME, "matrix": matrix, "baseline": "${who.rival}"}) as env:
        played = env.rollouts(plays)
    said = {"any": set[str](), "folds": set[str]()}
    for one in played:
        moves = (move for move in one.episode.moves() if move.agent == "Player-1")
        said[one.score.labels["who"]] |= {str(move.action) for move in moves}
    assert "Fold" in said["folds"] and "Raise" not in said["folds"] and "Raise" in said["any"]
