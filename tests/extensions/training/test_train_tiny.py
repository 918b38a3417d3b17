"""The example `examples/train_tiny`: its parts learn, and the page has the figures of its record."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from harness.config import resolve
from harness.config.plan import case_digest, survey
from harness.config.spec import parse
from tests.docs.test_docs import ROOT

EXAMPLE = ROOT / "examples" / "train_tiny"
MODULES = ("imitate", "model", "reinforce", "report", "tasks")

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def example() -> Iterator[SimpleNamespace]:
    """The modules of the example, which import each other by name."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield SimpleNamespace(**{name: __import__(name) for name in MODULES})
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


def test_imitation_and_reinforcement_teach_a_ring_to_agree(example: SimpleNamespace) -> None:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = example.imitate.examples("ring")
    words = example.model.Words(text for pair in data for text in pair)
    decoder = example.model.Decoder(len(words.pieces))
    losses = example.imitate.imitate(decoder, words, [data], 60, seed=0)
    assert losses[-1] < losses[0] / 4
    with example.tasks.environment("ring", "team") as env:
        means = example.reinforce.reinforce(decoder, words, {"ring": env}, 8, seed=0)
    assert sum(means[-2:]) / 2 > means[0] + 0.1


def test_replies_drawn_with_a_cache_have_the_log_probabilities_of_training(example: SimpleNamespace) -> None:
    import torch

    torch.manual_seed(0)
    decoder = example.model.Decoder(12)
    prompts = [[4, 5, 6, 2], [7, 2], [4, 5, 6, 2], [8, 9, 10, 11, 4, 2]]
    written = decoder.write(prompts, torch.Generator().manual_seed(1))
    logs, _ = decoder.logprobs(prompts, [ids for ids, _ in written])
    for row, (ids, own) in zip(logs.tolist(), written, strict=True):
        assert row[: len(ids)] == pytest.approx(own, abs=1e-4)


@pytest.mark.parametrize("task", ["ring", "maximum", "dilemma", "table"])
def test_teachers_play_the_training_cases(example: SimpleNamespace, task: str) -> None:
    """Every agent that learns follows each of the teachers in turn, and no one else's replies are learned."""
    spec, agents = example.tasks.teachers(task)
    with example.tasks.environment(task) as env:
        training = {case_digest(one.case) for one in env.tasks}
        learners = set(env.learners(env.tasks[0]))
    plan = survey(resolve.plan(parse(spec, example.tasks.project()), example.tasks.project()))
    assert {case_digest(case) for _, case, _ in plan.episodes} == training
    assert set(agents) == learners
    acts = [[entry[agent.replace("-", "_")] for entry in spec["matrix"]["teachers"]] for agent in agents]
    assert all(sorted(one) == sorted(example.tasks.TEACHERS[task]) for one in acts)


@pytest.mark.parametrize("task", ["ring", "maximum", "dilemma", "table"])
def test_no_training_case_is_held_out(example: SimpleNamespace, task: str) -> None:
    with example.tasks.environment(task, "credit") as env:
        training = {case_digest(one.case) for one in env.tasks}
    env, tasks = example.tasks.held_out(task)
    env.close()
    assert tasks
    assert not training & {case_digest(one.case) for one in tasks}


def test_the_page_has_the_figures_of_the_record(example: SimpleNamespace) -> None:
    results = json.loads((EXAMPLE / "results.json").read_text())
    page = (EXAMPLE / "README.md").read_text("utf-8")
    for part in example.report.table(results).strip().split("\n\n"):
        assert part in page
