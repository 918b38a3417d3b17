"""What a task asks about a document, as a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.api import Case
from harness.api.errors import DataError
from harness.engines.likelihoods import Continuation, Likelihoods

from .requests import Chat, DocumentRequest
from .single_task import SingleTask

AGENT = "Agent-0"


def interleaved(tasks: Sequence[Iterator[Case]], limit: int | None) -> Iterator[Case]:
    """One case of each task in turn, at most `limit`. Raises `DataError` if there is none at all."""
    count, waiting = 0, list(tasks)
    while waiting:
        for cases in tuple(waiting):
            if limit is not None and count >= limit:
                return
            case = next(cases, None)
            if case is None:
                waiting.remove(cases)
            else:
                count += 1
                yield case
    if not count:
        raise DataError("the task has no documents", hint="Look at its process_docs, and at limit or samples.")


def case_of(leaf: SingleTask, request: DocumentRequest) -> Case:
    """The case of a document: `TASK/NUMBER`, of one agent."""
    public = _opened(request.context)
    if request.kind != "generate_until":
        public["continuations"] = [[text, _context(context)] for text, context in request.continuations]
        public["rolling"] = request.kind == "loglikelihood_rolling"
        if len(request.continuations) > 1:
            public["choices"] = _choices(request)
    name = "example" if request.number is None else request.number
    return Case(
        id=f"{leaf.name}/{name}",
        agents=(AGENT,),
        public=public,
        target={"document": request.number, "answer": request.target},
        labels={"task": leaf.name},
        sampling=request.sampling,
    )


def likelihoods(case: Case) -> Likelihoods:
    """The form of the reply to a case with continuations."""
    pairs: Sequence[Sequence[Any]] = case.public["continuations"]
    continuations = tuple(
        Continuation(text, tuple(context) if isinstance(context, list) else context) for text, context in pairs
    )
    return Likelihoods(continuations, case.public["rolling"])


def _opened(context: str) -> dict[str, Any]:
    """A text as the question; of a conversation what precedes its last user message, and how the reply begins."""
    if not isinstance(context, Chat):
        return {"question": context}
    messages = context.messages
    prefill = messages.pop()["content"] if messages[-1]["role"] == "assistant" else ""
    question = messages.pop()["content"] if messages and messages[-1]["role"] == "user" else ""
    return {"question": question, "history": messages, "prefill": prefill}


def _context(context: str | None) -> str | list[Mapping[str, str]] | None:
    return list(context.messages) if isinstance(context, Chat) else context


def _choices(request: DocumentRequest) -> list[str]:
    """The options: the continuations, or where all have the same text, the ends of their contexts."""
    texts = [text.strip() for text, context in request.continuations if context != ""]
    if len(set(texts)) > 1:
        return texts
    contexts = [request.context if context is None else context for _, context in request.continuations]
    return [context.strip().rpartition("\n")[2] for context in contexts]
