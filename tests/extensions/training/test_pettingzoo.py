"""Specs as environments of PettingZoo, by its own tests."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from harness.api.errors import DataError, SpecError
from harness.extensions.training import NoRewardError, TrainingEnv
from harness.extensions.training.pettingzoo_env import Actions, aec_env, parallel_env

with warnings.catch_warnings():  # its examples are made in a way that it deprecates
    warnings.simplefilter("ignore")
    from pettingzoo import AECEnv
    from pettingzoo.test import api_test, parallel_api_test

SPECS: dict[str, tuple[Actions, dict[str, Any]]] = {
    "dpbench_quick": ("options", {"overrides": ["matrix.condition=[sim3nc,seq3nc]"]}),  # simultaneous, and in turn
    "repeated_dilemmas": ("options", {}),
    "hanabi": ("options", {}),
    "agentsnet_quick": ("text", {"overrides": ["matrix.size=[4]"]}),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # names of agents, spaces that are no boxes
@pytest.mark.parametrize("spec", SPECS)
def test_pettingzoo_accepts_it(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    actions, options = SPECS[spec]
    one = aec_env(spec, actions=actions, limit=1, **options)
    api_test(one, num_cycles=20)
    one.close()
    other = parallel_env(spec, actions=actions, limit=1, **options)
    parallel_api_test(other, num_cycles=20)
    other.close()
    assert "Passed Parallel API test" in capsys.readouterr().out


def test_the_reward_is_that_of_the_episode_and_a_seed_plays_the_same_again() -> None:
    env = parallel_env("repeated_dilemmas", limit=2)
    seen = []
    for _ in range(2):
        looks, infos = env.reset(seed=3)
        texts, paid = [looks[agent]["text"] for agent in env.agents], dict[str, float]()
        while env.agents:
            looks, paid, _, _, infos = env.step(dict.fromkeys(env.agents, 1))
            texts += [look["text"] for look in looks.values()]
        rollout = next(iter(infos.values()))["rollout"]
        assert paid == {agent: rollout.rewards.agents[agent] for agent in paid}
        assert {m.action for m in rollout.episode.moves() if m.agent in paid} <= {"Defect", "Hare", "Dare"}
        seen.append(texts)
    assert seen[0] == seen[1]
    with pytest.raises(DataError, match="there is no task"):
        env.reset(options={"task": "none"})
    env.close()


DUEL: dict[str, Any] = {
    "name": "duel",
    "task": {"use": "openspiel", "game": "repeated_game(stage_game=matrix_rps(),num_repetitions=30)"},
    "protocol": {"use": "steps", "max_timesteps": 60},
    "prompts": "games/standard",
    "agents": {"default": "model", "rival": {"policy": "random", "agents": ["Player-1"]}},
    "metrics": ["score"],
}
"""Against an opponent that draws."""


@pytest.mark.parametrize("make", [parallel_env, aec_env])
def test_a_seed_draws_the_chance_of_the_episode_too(make: Any) -> None:
    env = make(DUEL)
    own = TrainingEnv(DUEL)
    task = own.tasks[0].id

    def rival(**asked: Any) -> tuple[Any, ...]:
        env.reset(**asked)
        rollout = None
        while rollout is None:
            if isinstance(env, AECEnv):
                env.step(0)
                infos = env.infos
            else:
                *_, infos = env.step(dict.fromkeys(env.agents, 0))
            rollout = next(iter(infos.values())).get("rollout")
        return tuple(move.action for move in rollout.episode.moves() if move.agent == "Player-1")

    named = {"task": task}
    assert rival(seed=1, options=named) == rival(seed=1, options=named)
    assert len({rival(seed=seed, options=named) for seed in range(4)}) == 4
    assert len({rival(options=named) for _ in range(4)}) == 4  # without a seed another each time
    [first] = own.rollouts(lambda *given: given[3].reply.options[0], own.tasks[:1])
    own.close()
    expected = tuple(move.action for move in first.episode.moves() if move.agent == "Player-1")
    assert rival(options={**named, "epoch": 0}) == expected
    env.close()


@pytest.mark.parametrize(
    ("spec", "options", "says"),
    [
        ("agentsnet_quick", {}, "no list of legal actions"),
        ("hanabi", {"max_actions": 3}, "legal actions, more than 3"),
    ],
)
def test_turns_without_a_few_legal_actions_are_refused(spec: str, options: dict[str, Any], says: str) -> None:
    env = parallel_env(spec, limit=1, **options)
    with pytest.raises(DataError, match=says):
        env.reset(seed=1)
    env.close()


class Unpaid:
    """Has no number of any episode."""

    async def pay(self, played: Any) -> Any:
        raise NoRewardError("the game came to no end")


def test_an_episode_that_pays_nothing_is_truncated_and_says_why() -> None:
    env = parallel_env("repeated_dilemmas", limit=1)
    env._episodes.env.reward_rule = Unpaid()
    env.reset(seed=1)
    while env.agents:
        _, paid, ended, truncated, infos = env.step(dict.fromkeys(env.agents, 0))
    assert {*paid.values()} == {0.0} and not any(ended.values()) and all(truncated.values())
    assert {info["error"] for info in infos.values()} == {"the game came to no end"}
    env.close()


def test_rewards_that_count_tokens_are_refused() -> None:
    spec = {"extends": "repeated_dilemmas", "rewards": {"length": {"use": "tokens", "kind": "output"}}}
    with pytest.raises(SpecError, match=r"rewards: length: replies are texts .*\n.*Leave this part out"):
        parallel_env(spec, limit=1)


def test_actions_that_there_are_not_are_refused() -> None:
    with pytest.raises(ValueError, match="no actions 'option': they are one of options, text"):
        parallel_env("repeated_dilemmas", limit=1, actions="option")  # type: ignore[arg-type]


def test_an_action_that_is_not_legal_is_refused() -> None:
    env = parallel_env("repeated_dilemmas", limit=1)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="2 legal actions, numbered from 0: there is no 7"):
        env.step(dict.fromkeys(env.agents, 7))
    env.close()
