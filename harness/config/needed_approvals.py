"""What a spec would run or send that does not belong to the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from harness.api.errors import UserError
from harness.config.building import Reference, make, parts_of, split
from harness.config.foreign_data import readings
from harness.config.keys import keys_of
from harness.config.permissions import engine_approvals
from harness.config.project import Project
from harness.config.spec import Spec
from harness.plugins import approvals
from harness.plugins.approvals import listing
from harness.plugins.needed_approval import NeededApproval

_POLICIES: Final = ("policy", "baseline", "floor", "ceiling")
"""Keys under which a spec names a policy."""


def approvals_of(spec: Spec, project: Project) -> list[NeededApproval]:
    """All that a spec would run or send and that does not belong to the user, approved or not. Nothing of it runs.

    Plugins that cannot be made are skipped: `harness validate` says why.
    """
    with listing() as found:
        for kind, reference in _references(spec):
            with contextlib.suppress(UserError, LookupError, TypeError):
                made = make(*parts_of(kind, reference, project, spec.place), spec.place)
                found += approvals.of(made)
        for name, reference in spec.get("models", {}).items():
            with contextlib.suppress(UserError, LookupError, TypeError):
                engine = make(*parts_of("engines", reference, project, spec.place), spec.place)
                found += engine_approvals(spec, name, engine)
    found += readings(spec, project)
    return list(dict.fromkeys(one for one in found if one.file is None or not approvals.is_own(one.file)))


def _references(spec: Spec) -> Iterator[tuple[str, Reference]]:
    """Every plugin that the spec names, by kind, except its models."""
    for variant in spec.variants():
        data, agents = variant.data, variant.data.get("agents") or {}
        seated = [body for key in keys_of(spec, data) for body in key.bodies()]
        bodies = [*agents.values(), *seated, data, spec.get("headline", {})]
        policies = [body.get(key) for body in bodies if isinstance(body, Mapping) for key in _POLICIES]
        named = [("tasks", data.get("task")), ("protocols", data.get("protocol")), *(("policies", p) for p in policies)]
        yield from ((kind, reference) for kind, reference in named if isinstance(reference, str | Mapping))
    for entry in spec.get("metrics", []):
        use, arguments = split(entry)
        yield "metrics", {"use": use, **{key: value for key, value in arguments.items() if key != "name"}}
