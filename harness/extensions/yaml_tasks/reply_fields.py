"""`reply:` of a task in YAML: what agents write beside their answer or action, as a few fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, TypedDict

from harness.api import Range, Reply
from harness.api.errors import KEY, PluginError
from harness.extensions.games.actions import ActionParameter

from .contract import ActWithFields, format_line, is_of_moves

MOVES = "moves"
"""Stands for the names of the actions that are legal when an agent is asked."""
KINDS = ("text", "number", "integer", "one_of")
MAX_FIELDS = 20
_TAKEN = ("act", "said", "reasoning", "think", "thinking")
"""Keys of actions, and names under which models think aloud, which is set aside."""


class FieldEntry(TypedDict, total=False):
    """A field: exactly one of the first four."""

    text: Annotated[int, Range(ge=1, le=20_000), "one line of at most so many characters"]
    number: Annotated[tuple[float, float], "a number between two bounds, both included"]
    integer: Annotated[tuple[int, int], "a whole number between two bounds, both included"]
    one_of: Annotated[list[str | int | float] | Literal["moves"], "one of these; in worlds `moves`, those legal now"]
    means: Annotated[str, "what it is, for the prompt"]
    required: Annotated[bool, "whether an agent without it is asked again; by default not"]


ReplyEntry = dict[str, FieldEntry | Literal["text"] | None]
"""Field → what it says; the task's own one, `answer:` or `action:` without a value, says where that is."""


class ReplyFields:
    """The declared fields.

    Args:
        entries: `reply:` of the task.
        act: the name of what the task asks for anyway: "answer" or "action".

    Attributes:
        values: the fields, in order.
        place: how many precede the act.
        required: the names of those that must be there.

    Raises:
        PluginError: for a name that is none, and a field with no or several kinds, or without values.
    """

    def __init__(self, entries: ReplyEntry, act: str) -> None:
        if len(entries) > MAX_FIELDS:
            raise PluginError(f"reply has {len(entries)} fields; at most {MAX_FIELDS} are read", at=("reply",))
        self.values = tuple(field_of(name, entry, act) for name, entry in entries.items() if name != act)
        names = [*entries]
        self.place = names.index(act) if act in entries else len(names)
        if entries.get(act) is not None and not (act == "action" and entries[act] == {"one_of": MOVES}):
            hint = f"Leave its value out: reply: {{{', '.join(names[: self.place + 1])}: }}."
            raise PluginError(f"`{act}:` in a reply says where the {act} stands", at=("reply", act), hint=hint)
        self.required = frozenset(
            name for name, entry in entries.items() if isinstance(entry, dict) and entry.get("required")
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(one.name for one in self.values)

    def around(self, act: Reply, moves: tuple[str, ...] = ()) -> Reply:
        """The form of a reply with these fields; the act's own form if there are none.

        `moves` are the values of fields that say one of the moves: the actions that are legal now.
        """
        if not self.values:
            return act
        values = tuple(replace(one, values=moves) if is_of_moves(one) else one for one in self.values)
        return ActWithFields(act, values, self.place, self.required)

    def lines(self) -> tuple[list[str], list[str]]:
        """How the fields before and after the act are written."""
        lines = [format_line(one, one.name in self.required) for one in self.values]
        return lines[: self.place], lines[self.place :]

    def instruction(self, act: str) -> str:
        """How to write an answer and the fields, for prompts. `act` says how to write the answer; "" in any way."""
        if not self.values:
            return act
        if not act:
            before, behind = self.lines()
            return "\n".join(["End your reply with these lines:", *before, "ANSWER: [your answer]", *behind])
        first, last = self.words("your answer")
        return "\n\n".join(filter(None, (first, act, last)))

    def words(self, act: str) -> tuple[str, str]:
        """How to write the fields before and after the act, in words; `act` names it. "" if there are none."""
        both = zip(("Before", "After"), self.lines(), strict=True)
        first, last = (
            "\n".join([f"{where} {act}, write on a line of its own each:", *lines]) if lines else ""
            for where, lines in both
        )
        return first, last


def field_of(name: str, entry: FieldEntry | Literal["text"] | None, act: str) -> ActionParameter:
    """The field of that name. Raises `PluginError`."""
    at = ("reply", name)
    if not name.isidentifier() or not name.isascii() or name.lower() != name:
        hint = "It takes small letters, digits and _, such as first_choice."
        raise PluginError(f"{name!r:.80} cannot name a field", at=(*at, KEY), hint=hint)
    if name in _TAKEN or name in ("answer", "action"):
        meaning = f"this task asks for `{act}:`" if name in ("answer", "action") else "it is taken"
        raise PluginError(f"{name!r} cannot name a field: {meaning}", at=(*at, KEY), hint="Choose another name.")
    if entry == "text":
        entry = {"text": 200}
    kinds = [kind for kind in KINDS if entry is not None and kind in entry]
    if entry is None or len(kinds) != 1:
        what = f"{name} has {' and '.join(kinds)}; it takes one" if kinds else f"{name} needs one of {', '.join(KINDS)}"
        raise PluginError(what, at=at, hint="For example number: [0, 1], one_of: [yes, no], or only: text.")
    means = entry.get("means", "")
    if "text" in entry:
        return ActionParameter(name, "text", chars=entry["text"], means=means)
    if "one_of" in entry and entry["one_of"] == MOVES:
        if act != "action":
            hint = "Only worlds have moves; list the values: one_of: [red, green]."
            raise PluginError(f"{name}: there are no moves here", at=(*at, "one_of"), hint=hint)
        return ActionParameter(name, "one_of", means=means)
    if "one_of" in entry:
        many = list(dict.fromkeys(entry["one_of"]))
        texts = {str(one).strip().casefold() for one in many}
        if not many or "" in texts or len(texts) < len(many) or any(isinstance(one, bool) for one in many):
            hint = "List different texts or numbers; yes and no need quotes: ['yes', 'no']."
            raise PluginError(f"{name}: one_of is {many!r:.80}", at=(*at, "one_of"), hint=hint)
        return ActionParameter(name, "one_of", values=tuple(many), means=means)
    if name == "confidence" and act == "answer" and tuple(entry.get("number", ())) != (0, 1):
        raise PluginError("a confidence is a number from 0 to 1", at=at, hint="Write confidence: {number: [0, 1]}.")
    low, high = entry["number"] if "number" in entry else entry["integer"]
    if not low <= high:
        raise PluginError(
            f"{name}: no number is from {low} to {high}", at=(*at, kinds[0]), hint="The smaller bound comes first."
        )
    return ActionParameter(name, "number" if "number" in entry else "integer", low, high, means=means)
