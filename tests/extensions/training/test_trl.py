"""TRL's own trainer on our specs: five steps of GRPO on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import DataError, SpecError
from harness.extensions.training import NoRewardError, Rollout, TrainingEnv

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

TIT_FOR_TAT = {
    "extends": "repeated_dilemmas",
    "task": {"instances": 2},
    "matrix": {
        "stage": [{"name": "prisoners dilemma", "game": "matrix_pd", "nice": "Cooperate", "nasty": "Defect"}],
        "against": [
            {
                "name": "tit for tat",
                "group": {
                    "agents": ["Player-1"],
                    "scored": False,
                    "policy": {"use": "expression", "act": "moves[-1]['Player-0'] if moves else '${stage.nice}'"},
                },
            }
        ],
    },
}
"""One agent learns; the other does what it did."""


class Unpaid:
    """Has no number of any episode."""

    async def pay(self, played: Any) -> Any:
        raise NoRewardError("the game came to no end")


def config(folder: Path, batch: int, steps: int = 5, **more: Any) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=batch,
        num_generations=2,
        max_completion_length=8,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        use_cpu=True,
        bf16=False,
        beta=0.0,
        disable_tqdm=True,
        learning_rate=1e-3,
        **more,
    )


def test_several_agents_learn_by_rollout_func(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trl import GRPOTrainer

    from harness.extensions.training.trl_rollouts import dataset, reward, rollout_func
    from tests.helpers.byte_model import byte_model

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    model, tokenizer = byte_model()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    played: list[Rollout] = []
    with TrainingEnv("teams/star", limit=1) as env:
        rows = dataset(env, env.tasks[:1])
        assert len(rows) == len(env.learners(env.tasks[0])) == 4
        trainer = GRPOTrainer(
            model,
            reward,
            args=config(tmp_path, 8),
            train_dataset=rows,
            processing_class=tokenizer,
            rollout_func=rollout_func(env, on_rollout=played.append),
        )
        trainer.train()
    assert trainer.state.global_step == 5
    assert len(played) >= 10 and all(one.error is None for one in played)
    assert {one.epoch for one in played} == {*range(5)}  # one a step
    for conversation in played[0].conversations:
        [sample] = conversation.samples()
        last = conversation.replies[-1].completion
        assert sample.token_ids == [*last.prompt_token_ids, *last.token_ids]
        text = tokenizer.decode(sample.token_ids, skip_special_tokens=False)
        assert all(str(one["content"]) in text for one in conversation.messages if one["role"] == "user")
    logged = [one for one in trainer.state.log_history if "reward" in one]
    assert len(logged) == 5 and all(0 <= one["reward"] <= 1 for one in logged)
    if any(one["reward_std"] > 0 for one in logged):
        assert any((weight != before[name]).any() for name, weight in model.named_parameters())


def test_the_log_probabilities_are_those_of_the_model() -> None:
    import torch

    from harness.extensions.training.transformers_model import TransformersModel
    from tests.helpers.byte_model import byte_model

    model, tokenizer = byte_model()
    with TrainingEnv("teams/star", limit=1) as env:
        rollouts = env.batched(TransformersModel(model, tokenizer, max_new_tokens=12, temperature=1), env.tasks[:1], 2)
    for rollout in rollouts:
        for conversation in rollout.conversations:
            [sample] = conversation.samples()
            ids = torch.tensor([sample.token_ids])
            with torch.no_grad():
                logits = torch.log_softmax(model(ids).logits[0, :-1].float(), dim=-1)
            expected = logits[range(len(sample.token_ids) - 1), ids[0, 1:]]
            for at, own in enumerate(sample.mask[1:]):
                if own:
                    assert sample.logprobs[at + 1] == pytest.approx(float(expected[at]), abs=1e-3)


def test_a_batch_has_one_epoch_however_many_rows_it_has() -> None:
    from harness.extensions.training.trl_rollouts import environment_factory

    with TrainingEnv(TIT_FOR_TAT) as env:
        factory = environment_factory(env)
        pool: list[Any] = [factory() for _ in range(4)]
        for number, rows in enumerate((4, 2, 4, 1, 4)):  # TRL resets the first of its pool
            for one in pool[:rows]:
                one.reset(task=env.tasks[0].id)
            assert {one._game._run.epoch for one in pool[:rows]} == {number}


def test_one_agent_learns_by_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trl import GRPOTrainer
    from trl.chat_template_utils import qwen3_chat_template

    from harness.extensions.training.trl_rollouts import environment_factory, task_dataset
    from tests.helpers.byte_model import byte_model

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    several = TrainingEnv("repeated_dilemmas", limit=2, overrides=["task.instances=2"])
    with several, pytest.raises(DataError, match="2 agents learn"):
        environment_factory(several)
    with TrainingEnv(TIT_FOR_TAT) as env:
        factory = environment_factory(env)
        game = factory()
        assert game.get_reward() is None
        shown = game.reset(task=env.tasks[0].id)
        while shown != "The episode is over.":
            shown = game.act("Cooperate")
        assert game.get_reward() == 0.5  # 5 of 10 points a round
        several_at_once = [factory() for _ in range(2)]  # TRL makes some once, and resets all of them for each batch
        for _ in range(2):
            for one in several_at_once:
                one.reset(task=env.tasks[0].id)
        assert [one._game._run.epoch for one in several_at_once] == [1, 1]
        counts = {**TIT_FOR_TAT, "rewards": {"length": {"use": "tokens", "weight": -0.01}}}
        with TrainingEnv(counts) as other, pytest.raises(SpecError, match="replies are texts"):
            environment_factory(other)
        with TrainingEnv(TIT_FOR_TAT) as other:
            other.reward_rule = Unpaid()
            failed = environment_factory(other)()
            failed.reset()
            assert failed.get_reward() is None
        model, tokenizer = byte_model()
        tokenizer.chat_template = qwen3_chat_template  # one whose calls of tools TRL knows how to read
        trainer = GRPOTrainer(
            model,
            args=config(tmp_path, 2, steps=2, max_tool_calling_iterations=1),
            train_dataset=task_dataset(env),
            processing_class=tokenizer,
            environment_factory=factory,
        )
        trainer.train()
        assert trainer.state.global_step == 2
