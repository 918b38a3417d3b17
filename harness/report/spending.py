"""What a run paid for beside the episodes that its numbers are about: by its own record (run.json)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.tables.spent import Beside

KEY: Final = "spent_beside"
"""The key of run.json: purpose → model → what its replies are billed by, as `spent_by_model`."""


def spending_of(meta: Mapping[str, Any]) -> Beside:
    """What a run paid for beside its episodes; nothing where run.json says something else (people edit it)."""
    found = meta.get(KEY)
    return found if isinstance(found, Mapping) else {}


def with_spending(meta: Mapping[str, Any], spent: Beside, kind: str) -> dict[str, Any]:
    """run.json with this spending in place of that whose purpose begins with `kind`."""
    kept = {purpose: own for purpose, own in spending_of(meta).items() if not purpose.startswith(kind)}
    others = {key: value for key, value in meta.items() if key != KEY}
    beside = {**kept, **spent}
    return {**others, KEY: beside} if beside else others
