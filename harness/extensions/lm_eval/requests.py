"""The request for a document of a task, and the settings of lm-eval's command line that shape it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """What the command line of `lm_eval` says about a task, by the same names.

    Attributes:
        num_fewshot: examples before a document; None: the task's own number. A task whose YAML says 0 keeps 0.
        system_instruction: a system message, or a text before everything.
        apply_chat_template: whether the prompt is a conversation.
        fewshot_as_multiturn: whether examples are turns of it.
        fewshot_seed: of the draw of examples.
        gen_kwargs: over the task's `generation_kwargs`.
        limit: documents of each task; below 1 a share of them.
        samples: task → numbers of documents; of other tasks all documents are asked.
        leave_own_out: whether the document that is asked about is no example of itself, unlike in the package.
    """

    num_fewshot: int | None = None
    system_instruction: str | None = None
    apply_chat_template: bool = False
    fewshot_as_multiturn: bool = False
    fewshot_seed: int = 1234
    gen_kwargs: Mapping[str, Any] = field(default_factory=dict)
    limit: float | None = None
    samples: Mapping[str, Sequence[int]] | None = None
    leave_own_out: bool = False


class Chat(str):
    """A conversation where the package wants a rendered text: the messages as JSON."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """The messages, {role, content}."""
        messages: list[dict[str, str]] = json.loads(self)
        return messages


def as_chat(messages: Any, **_: Any) -> Chat:
    """What stands in for an engine's chat template."""
    return Chat(json.dumps(messages, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class DocumentRequest:
    """The request for one document.

    Attributes:
        number: the document's, from 0; None for an invented one.
        kind: "generate_until", "loglikelihood" or "loglikelihood_rolling".
        context: the text, or the conversation, that the reply continues; "" for a rolling log-likelihood.
        continuations: (text, its own context if that differs) for each log-likelihood.
        sampling: the generation's keyword arguments.
        target: the right answer as the task writes it, for readers; None if the task has none that JSON keeps.
        shows_itself: whether the document is among its own examples.
    """

    number: int | None
    kind: str
    context: str
    continuations: tuple[tuple[str, str | None], ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    target: Any = None
    shows_itself: bool = False
