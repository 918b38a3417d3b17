"""Examples before a question that are the question itself.

The package leaves a document's own row out where `fewshot_split` names the `test_split`. A task without `fewshot_split`
draws its examples by a rule that may end at the questions, and then nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .single_task import SingleTask

_question: ContextVar[Any] = ContextVar("question", default=None)
_sightings: ContextVar[list[bool] | None] = ContextVar("sightings", default=None)


def watch(task: Any, leaves_out: bool) -> None:
    """Note whether the sampler of a task shows the document that is asked about; leave it out if `leaves_out`."""
    sampler = getattr(task, "sampler", None)
    if sampler is None or not callable(draw := getattr(sampler, "sample", None)):
        return

    def sample(n: int, eval_doc: Any = None, **more: Any) -> Any:
        asked, shown = _question.get(), _sightings.get()
        drawn = draw(n, eval_doc=asked if leaves_out and eval_doc is None else eval_doc, **more)
        if shown is not None and asked is not None:
            shown.append(any(document == asked for document in drawn))
        return drawn

    sampler.sample = sample


@contextmanager
def asking(document: Any) -> Iterator[list[bool]]:
    """The document that is asked about; gives whether each draw of examples within showed it."""
    shown: list[bool] = []
    tokens = _question.set(document), _sightings.set(shown)
    try:
        yield shown
    finally:
        _question.reset(tokens[0])
        _sightings.reset(tokens[1])


def may_show(leaf: SingleTask) -> bool:
    """Whether examples of a task come from its questions, and the package leaves none out. No document is read."""
    config, own = leaf.config, getattr(leaf.task, "fewshot_cfg", None)
    given = leaf.settings.num_fewshot
    shots = config.num_fewshot if given is None or config.num_fewshot == 0 else given
    split = getattr(own, "split", None)
    if not shots or leaf.settings.leave_own_out or (split is None and getattr(own, "samples", None) is not None):
        return False
    asked = config.test_split or config.validation_split
    pool = split or config.training_split or config.validation_split or config.test_split
    return asked is not None and pool == asked and (split is None or split != config.test_split)


def warning(leaf: SingleTask) -> str | None:
    """How many prompts hold their own question with its answer, if the documents are at hand; None if none can."""
    if not may_show(leaf):
        return None
    hint = "`leave_own_out: true` of the task leaves it out"
    if not leaf.at_hand:
        what = "takes examples from its questions (it has no fewshot_split)"
        return f"{leaf.name} {what}: a prompt may hold its own question with the answer; {hint}"
    requests = list(leaf.requests())
    count = sum(request.shows_itself for request in requests)
    if not count:
        return None
    what = "hold their own question with its answer among the examples (the task has no fewshot_split)"
    return f"{leaf.name}: {count} of {len(requests)} prompts {what}; {hint}"
