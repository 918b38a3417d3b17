"""Runs of the toy project, whose folder is the working directory."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.helpers.commands import TOY


@pytest.fixture(autouse=True)
def in_toy() -> Iterator[None]:
    """The working directory is the toy project; runs go to `tmp_path`."""
    with contextlib.chdir(TOY):
        yield
