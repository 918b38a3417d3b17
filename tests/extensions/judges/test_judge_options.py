"""The options that judges add to `harness.evaluate`."""

import pytest

import harness
from harness.evaluation import post_run
from harness.evaluation.eval_options import EvalOptions


def test_an_editor_knows_the_options_of_judges() -> None:
    assert {"judge", "judge_args"} <= post_run.parameters() & EvalOptions.__annotations__.keys()


def test_a_misspelled_one_names_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"no option 'juge'\. Did you mean judge"):
        harness.evaluate("arithmetic", juge="mock")  # type: ignore[call-arg]
