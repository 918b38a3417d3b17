"""A finished run of the toy project whose model writes what breaks files; commands run in that project."""

import contextlib
import random
from collections.abc import Iterator

import pytest

import harness
from harness.api import Request
from harness.engines.mock import Mock
from tests.helpers.commands import TOY
from tests.helpers.toy import run

HOSTILE = ("=HYPERLINK('x')", "\x1b[2J\u202ea\ud800", "<script>alert(1)</script>", "b", '{"x": NaN}\r\n', "a" * 40_000)


def answer(request: Request) -> str:
    return random.Random(request.seed).choice(HOSTILE)


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    # Five of its six texts are unreadable: the run has no headline.
    overrides = ("headline.metric=agreed",)
    return run(tmp_path_factory.mktemp("export") / "r", Mock(function=answer), overrides=overrides)


@pytest.fixture(scope="session")
def replies() -> set[str]:
    """What the model writes, as rows have it."""
    return {text.replace("\ud800", "\ufffd") for text in HOSTILE}


@pytest.fixture(autouse=True)
def in_toy() -> Iterator[None]:
    """The working directory is the toy project; runs go to `tmp_path`."""
    with contextlib.chdir(TOY):
        yield
