"""Names of tests that fit into a line of a report."""

from __future__ import annotations

import re

import pytest

LONGEST = 80
"""Characters of a test's name, with its parameters."""

SUFFIX = 3
"""Characters kept for the number that pytest appends where several parameters begin alike."""

SHORTEST = 8
"""A parameter is not cut shorter than this; then the function wants a shorter name."""


class Names:
    """A plugin that cuts the parameters in tests' names to the room that the function's name leaves."""

    def __init__(self) -> None:
        self._room = LONGEST

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Share the room beside the function's name equally among its parameters."""
        names: list[str] = []
        for mark in metafunc.definition.iter_markers("parametrize"):
            argnames = mark.kwargs.get("argnames", mark.args[0] if mark.args else ())
            names += argnames.split(",") if isinstance(argnames, str) else argnames
        count = max(1, len(names))
        free = LONGEST - len(metafunc.function.__name__) - len("[]") - SUFFIX - (count - 1)
        self._room = max(SHORTEST, free // count)

    def pytest_make_parametrize_id(self, val: object) -> str | None:
        """The beginning of a text or a number, in printable ASCII."""
        if isinstance(val, bytes):
            val = val.decode("ascii", "replace")
        if isinstance(val, bool) or not isinstance(val, str | int | float):
            return None  # pytest's own names: `None`, `True`, a function's name, the argument's name and a number
        text = re.sub(r"[^ -~]|\\", "_", str(val))
        return text if len(text) <= self._room else text[: self._room - 2] + ".."

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse tests whose names are too long all the same."""
        if long := [item for item in items if len(item.name) > LONGEST]:
            lines = "".join(f"\n  {item.nodeid} ({len(item.name)})" for item in long)
            raise pytest.UsageError(
                f"{len(long)} tests have names of more than {LONGEST} characters:{lines}\n"
                "Name the function shorter, or its parameters with pytest.param(…, id=…)."
            )
