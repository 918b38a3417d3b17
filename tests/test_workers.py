"""How many processes a selection of tests starts: one for few tests, since workers cost more than they save."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_xdist_auto_num_workers as workers

ROOT = Path(__file__).parents[1]


def selected(*arguments: str, marked: str = "not slow") -> Any:
    option = SimpleNamespace(markexpr=marked)
    return SimpleNamespace(args=list(arguments), option=option, invocation_params=SimpleNamespace(dir=ROOT))


@pytest.mark.parametrize(
    "arguments",
    [
        ("tests/core/checks",),
        ("tests/core/evaluation", "tests/docs"),
        ("tests/core/config/test_spec.py",),
        ("tests/core/config/test_spec.py::test_null_removes_an_inherited_key", "tests/core/checks"),
    ],
)
def test_few_tests_run_in_one_process(arguments: tuple[str, ...]) -> None:
    assert workers(selected(*arguments)) == 0


@pytest.mark.parametrize("arguments", [("tests",), ("tests/core/config",), ("tests/core/checks", "tests/extensions")])
def test_many_have_a_worker_for_every_core(arguments: tuple[str, ...]) -> None:
    assert workers(selected(*arguments)) is None


def test_tests_that_share_an_engine_have_as_many_as_before() -> None:
    assert workers(selected("tests", marked="vllm")) == 2 and workers(selected("tests", marked="ray")) == 0
