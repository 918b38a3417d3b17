"""A form of reply around another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Ability, Action, Completion, Facts, Parsed, Reply, ReplyField, Request


@dataclass(frozen=True, slots=True)
class WrappedReply(Reply):
    """A form around another one: what a subclass does not define, the `inner` form decides."""

    inner: Reply

    @property
    def options(self) -> tuple[Action, ...] | None:
        """The inner form's."""
        return self.inner.options

    @property
    def noop(self) -> Action:
        """The inner form's."""
        return self.inner.noop

    def allows(self, action: Action) -> bool:
        """What the inner form allows."""
        return self.inner.allows(action)

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The inner form's."""
        return self.inner.fields

    def says(self, action: Action) -> Facts:
        """What the inner form says."""
        return self.inner.says(action)

    def written(self, action: Action) -> str:
        """What the inner form writes."""
        return self.inner.written(action)

    @property
    def examples(self) -> tuple[Action, ...]:
        """The inner form's."""
        return self.inner.examples

    def parse(self, text: str) -> Parsed:
        """What the inner form reads."""
        return self.inner.parse(text)

    def well_formed(self, text: str) -> bool:
        """What the inner form says."""
        return self.inner.well_formed(text)

    def constraint(self) -> Mapping[str, Any] | None:
        """The inner form's."""
        return self.inner.constraint()

    @property
    def ability(self) -> type[Ability] | None:
        """The inner form's."""
        return self.inner.ability

    @property
    def extras(self) -> tuple[tuple[str, str], ...]:
        """The inner form's."""
        return self.inner.extras

    def request_for(self, asked: Request) -> Request:
        """The inner form's."""
        return self.inner.request_for(asked)

    def parse_completion(self, completion: Completion) -> Parsed:
        """What the inner form reads."""
        return self.inner.parse_completion(completion)

    def message_of(self, completion: Completion) -> str:
        """What the inner form says."""
        return self.inner.message_of(completion)


def has_fields(action: Action) -> bool:
    """Whether an action is {"act": action, "said": {field: value}} (`harness.extensions.yaml_tasks.contract`)."""
    return isinstance(action, Mapping) and set(action) == {"act", "said"}


def act_of(action: Action) -> Action:
    """The act of an action, without the fields beside it; an action without such fields is its own act."""
    return action["act"] if has_fields(action) else action
