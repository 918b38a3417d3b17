"""A run that a rule ended before its plan was played: the rule, applied to the replies again, must end it there."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from harness.api.errors import DataError, UserError
from harness.runtime.stopping import StoppingRule, chosen_rule

from .recorded_run import CallCounts


def rule_of(end: Mapping[str, Any]) -> StoppingRule:
    """The rule that ended a run, by what its run.json says. Raises `DataError` if that cannot be applied again."""
    arguments = end.get("arguments")
    try:
        rule = chosen_rule(arguments) if isinstance(arguments, Mapping) else None
    except UserError as error:
        raise DataError(f"the rule that ended the run cannot be read: {error.message}") from None
    if rule is None:
        hint = "Play the rest, or let a rule of `harness eval` end the run: --until, --adaptive."
        raise DataError(f"{_short(end)} ended the run, which its own episodes do not decide", hint=hint)
    return rule


def not_counted(end: Mapping[str, Any] | None) -> Collection[str]:
    """The episodes that were in flight when a rule ended a run."""
    names = end.get("not_counted") if end is not None else ()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else ()


def other_end(end: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[str]:
    """Where the rule ends the run when it is applied again, if that is not where it ended."""
    if end is None:
        return
    if new is None:
        yield f"the rule that is to have ended the run does not end it when it is applied again: {_short(end)}"
        return
    if other := sorted(
        key for key in {**end, **new} if key != "not_counted" and _text(end.get(key)) != _text(new.get(key))
    ):
        known = f"ends the run after {new['episodes']:,} of {new['of']:,} episodes"
        yield f"{new['by']} {new['at']}, applied again, {known}; the run states another {' and '.join(other)!s:.100}"


def leave_out_others(counts: Sequence[CallCounts], counted: Collection[str]) -> None:
    """Leave out the calls of episodes that were in flight when the rule ended the run again."""

    def counts_for(call: str) -> bool:
        parts = call.split("/")
        return any("/".join(parts[:i]) in counted for i in range(len(parts), 0, -1))

    for one in counts:
        one.missing = [call for call in one.missing if counts_for(call)]


def _short(end: Mapping[str, Any]) -> str:
    return f"{end.get('by')!s:.60} {end.get('at')!s:.60}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
