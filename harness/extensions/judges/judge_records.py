"""What run.json says about judges: who rated, how, and what it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness.api import Facts

_RECORD: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("folder", "judge", "prompt"), str),
    **dict.fromkeys(("answers", "unanswered", "left_out", "replies", "missing", "calls"), int),
    **dict.fromkeys(("input_tokens", "output_tokens"), int),
    "scale": list,
}


def unchanged(recorded: Mapping[str, Facts], right: str | None) -> dict[str, Facts]:
    """The records of judges that saw no right answers, or those of this digest."""
    return {name: record for name, record in recorded.items() if record.get("right") in (None, right)}


def usable(recorded: Mapping[str, Facts]) -> dict[str, Facts]:
    """The records of judges in run.json that are whole: a file may have been edited."""
    return {
        name: record
        for name, record in recorded.items()
        if all(isinstance(record.get(key), kind) for key, kind in _RECORD.items())
        and len(record["scale"]) == 2
        and all(isinstance(end, int | float) for end in record["scale"])
    }


def note_on(name: str, recorded: Mapping[str, Facts]) -> str | None:
    """Who rated a metric, for tables; None if no judge did."""
    record = usable(recorded).get(name)
    return f"rated by {_who(record)} {_how(record)}." if record and record.get("answers") else None


def _who(record: Mapping[str, Any]) -> str:
    return f"{record['judge']}, a policy and no judge," if record.get("policy") else str(record["judge"])


def _how(record: Mapping[str, Any]) -> str:
    low, high = record["scale"]
    return f"from {low:g} to {high:g} ({record['prompt']})"


def in_words(recorded: Mapping[str, Facts], model: str = "") -> Iterable[str]:
    """Lines on what judges did and used, apart from what the judged models used.

    `model`: the model that was judged.
    """
    seen: set[str] = set()
    for name, record in usable(recorded).items():
        if (folder := str(record.get("folder"))) in seen:
            continue
        seen.add(folder)
        yield f"{name}: {_who(record)} rated {record['answers']:,} answers {_how(record)}; {_cost(record)}"
        if record["answers"] and model in record.get("panel", ()) and not record.get("policy"):
            yield "  It judged its own answers: models tend to prefer what they wrote themselves."
        if missing := record["missing"]:
            yield f"  {missing:,} of {record['replies']:,} replies gave no rating: they are missing, never zero."
        if failed := record.get("failed"):
            yield f"  {failed:,} answers could not be put to it: {folder}/errors.jsonl says why."
        if unanswered := record["unanswered"]:
            yield f"  {unanswered:,} answers were not given, so there was nothing to rate."
        if cut := record["left_out"]:
            yield f"  {cut:,} answers were shown without their middle (max_chars)."


def _cost(record: Mapping[str, Any]) -> str:
    if not record["calls"]:
        return "no model was asked"
    tokens = f", with {record['input_tokens']:,} input and {record['output_tokens']:,} output tokens,"
    known = record["input_tokens"] or record["output_tokens"]  # not every engine reports them
    return f"its {record['calls']:,} calls{tokens if known else ''} are in no number of the models."
