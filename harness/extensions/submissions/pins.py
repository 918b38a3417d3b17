"""Which specs a leaderboard takes runs of: `pins.yaml`, a spec's name → the digest that a run of it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError, SpecError, near
from harness.config import resolve, spec, yamls
from harness.config.project import Project
from harness.engines.mock import Mock

PINS: Final = "pins.yaml"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def read_pins(path: Path) -> dict[str, str]:
    """The pins of a file.

    Raises:
        DataError, SpecError: it cannot be read, or holds something else.
    """
    document = yamls.read(path)
    data = document.data
    if not isinstance(data, dict) or not data:
        raise SpecError("expected a mapping of specs' names to their digests", place=document.place())
    for name, digest in data.items():
        if not isinstance(name, str) or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            what = f"expected a digest, 64 characters of 0-9a-f, found {digest!r:.80}"
            raise SpecError(f"{name!s:.80}: {what}", place=document.place(name))
    return data


def unpinned(meta: Mapping[str, Any], pins: Mapping[str, str], path: Path) -> str | None:
    """Why a run, by its run.json, is none of a pinned spec, and the line that would pin it; None if it is one."""
    name, digest = str(meta.get("spec")), str(meta.get("spec_digest"))
    if pins.get(name) == digest:
        return None
    why = f"pins {name} at {pins[name]}." if name in pins else f"does not pin the spec {name!r:.80}. {near(name, pins)}"
    return f"{path} {why} To take its runs, {path.name} says: {name:.80}: {digest:.64}"


def pin(names: list[str], project: Project) -> dict[str, str]:
    """The digests that runs of a project's specs have. Raises as `resolve.plan`."""
    plans = [resolve.plan(spec.load(name, project), project, Mock()) for name in names]
    return {plan.spec.name: plan.digest for plan in plans}


def write_pins(pins: Mapping[str, str], path: Path) -> None:
    """Write a file of pins. Raises `DataError`."""
    head = "# A spec's name: the digest that a run of it has. `harness verify --pins` takes runs of these alone, and\n"
    head += "# names the line for any other; `harness plan` has the digest without a run.\n"
    try:
        path.write_text(head + yamls.dump(dict(pins)), "utf-8")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
