"""Which provider builds the fence around programs: in this thread or task, and whether this machine lets it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from ._machine import report

_provider: ContextVar[str] = ContextVar("harness sandbox", default="process")


@contextlib.contextmanager
def using(provider: str) -> Iterator[None]:
    """Use this provider for every program that runs inside the `with`, in this thread or task.

    Raises:
        SetupError: if there is no such provider. Its requirements are checked when a program is about to run.
    """
    report(provider)
    before = _provider.set(provider)
    try:
        yield
    finally:
        _provider.reset(before)


def warning_of(provider: str) -> str:
    """What to warn of before programs run behind this provider's fence; "" if it has no holes.

    Raises:
        SetupError: if there is no such provider, or this machine lacks what it needs.
    """
    fence = report(provider)
    fence.require()
    return fence.warning


def provider() -> str:
    """The provider in use, in this thread or task."""
    return _provider.get()
