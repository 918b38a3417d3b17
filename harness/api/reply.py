"""Forms of replies: what an agent is asked to write, and the action that its text is read as."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from .plugin import as_text

if TYPE_CHECKING:
    from .engine import Ability, Request
    from .episode import Completion

Action = Any  # what an agent does in a turn: any JSON value


Facts = Mapping[str, Any]  # named JSON values


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of parsing a reply: an action, or the reason why there is none.

    Attributes:
        action: the action.
        error: what is wrong with the text; None if it is readable.
        fallback_action: with an error, the action that counts if the agent is not asked again, such as the message
            beside an unreadable action.
    """

    action: Action = None
    error: str | None = None
    fallback_action: Action = None


@dataclass(frozen=True, slots=True)
class ReplyField:
    """A field of a reply, as its form declares it. Format lines, JSON schemas, tools and example replies derive from
    it.

    Attributes:
        name: the key of a JSON object, the name of an element, the argument of a tool, such as "action".
        lead: the label that announces it on its line, such as "ACTION:"; "" if nothing does.
        schema: the JSON Schema of its value.
        required: whether a reply without it is unreadable.
        words: what it is, for a model that gives it as an argument of a tool.
    """

    name: str
    lead: str = ""
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = True
    words: str = ""


class Reply(ABC):
    """The form of a reply: it parses text into an action, in linear time and without raising on any text.

    A form declares its fields (`fields`) and what each says for an action (`says`), so that code can write replies
    without a model. A form that only another package defines, such as the filters of lm-eval, declares no fields.
    """

    __slots__ = ()
    takes_text: ClassVar[bool] = False  # of a form with tools: whether the text of a model that calls none is read

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The fields, in the order in which a reply has them."""
        return ()

    def says(self, action: Action) -> Facts:
        """The fields of a reply with this action: field → a text or another JSON value, None for an empty field."""
        return {self.fields[0].name: action} if self.fields else {}

    def written(self, action: Action) -> str:
        """A reply with this action, as the prompt asks for it: each field on its line. "" without fields."""
        said = self.says(action)
        lines = ((one.lead, said.get(one.name)) for one in self.fields)
        return "\n".join(f"{lead} {as_text(value)}".lstrip() for lead, value in lines if value is not None)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply that is one object with the fields."""
        properties = {one.name: dict(one.schema) for one in self.fields}
        required = [one.name for one in self.fields if one.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    @property
    def examples(self) -> tuple[Action, ...]:
        """Some legal actions: its options, or a few of many."""
        return (self.options or ())[:50]

    @property
    def options(self) -> tuple[Action, ...] | None:
        """All legal actions if they are finitely many (without messages beside them), else None."""
        return None

    @property
    def noop(self) -> Action:
        """The action of an agent that does nothing; it must be legal. None if the turn requires an answer."""
        return None

    def allows(self, action: Action) -> bool:
        """Whether `action` is legal. A form without `options` allows everything by default."""
        return self.options is None or action in self.options

    @abstractmethod
    def parse(self, text: str) -> Parsed:
        """Parse `text`. `Parsed.error` says what is wrong in words that help the model to correct it."""

    def well_formed(self, text: str) -> bool:
        """Whether a readable text is also well-formed, as the prompt asks for."""
        return True

    def constraint(self) -> Mapping[str, Any] | None:
        """One of {"json": schema}, {"choice": [text]}, {"regex": …}, {"grammar": …} for constrained decoding."""
        return None

    @property
    def tools(self) -> tuple[Facts, ...]:
        """Functions that a model calls instead of writing a text, each {"name", "parameters"}; none by default.

        `parameters` is the JSON schema of the arguments. The template `tool` describes one without a `description`.
        """
        return ()

    @property
    def without_tools(self) -> Reply:
        """The form for policies: without what only offers it as a tool."""
        return self

    @property
    def with_tools(self) -> Reply:
        """The form for agents that act by calls alone: itself, or with tools of its own that it does not offer here."""
        return self

    @property
    def most_calls(self) -> int:
        """How many calls of `tools` a reply may have."""
        return 1

    def calls_of(self, action: Action) -> tuple[Facts, ...]:
        """The calls of `tools` with which a model gives this action: each {"name", "arguments"} (a JSON text)."""
        return ()

    def parse_calls(self, calls: Sequence[Facts]) -> Parsed:
        """Parse calls of `tools`, each {"id", "name", "arguments"} (a JSON text). Returns as `parse`."""
        return Parsed(error="this form takes no calls of tools")

    @property
    def ability(self) -> type[Ability] | None:
        """The ability with which an engine answers, if the model writes no text; None: it writes one.

        A turn with such a form is asked once, by its `request_for`; `parse_completion` reads the answer.
        """
        return None

    @property
    def extras(self) -> tuple[tuple[str, str], ...]:
        """What a request says besides the conversation, for readers: (heading, text)."""
        return ()

    def request_for(self, asked: Request) -> Request:
        """How an engine is asked: `asked`, or with an `ability` a request of its kind in its place."""
        return asked

    def parse_completion(self, completion: Completion) -> Parsed:
        """Parse the answer of an engine with the `ability`. Returns as `parse`."""
        return self.parse(completion.text)

    def message_of(self, completion: Completion) -> str:
        """What the model says in its conversation by this answer."""
        return completion.text
