"""These tests play tasks, some of them written by the test: `tests/core/trust` is about leave."""

from collections.abc import Iterator

import pytest

from harness.plugins import approvals


@pytest.fixture(autouse=True)
def all_may_run() -> Iterator[None]:
    with approvals.allowing():
        yield
