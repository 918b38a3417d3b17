"""Grading by the code of tasks: their filters, metrics and functions, which may do anything with a reply.

So they read replies in the process of a clock (`harness/extensions/sandbox/clock.py`), where the task is loaded once
more.
"""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.api.errors import PluginError
from harness.extensions.sandbox.clock import ClockedFunction, UnreadableTextError
from harness.replies.parse_guard import guarded

from .values import plain

if TYPE_CHECKING:
    from .single_task import SingleTask

PYTHON_SEED, NUMPY_SEED = 0, 1234
"""What `lm_eval` seeds Python's and NumPy's global chance with, which some tasks draw from."""


@dataclass(frozen=True)
class Origin:
    """Where a task came from: the arguments of `loading.load`.

    Attributes:
        number: of the call; another one may find other files.
        arguments: its arguments.
    """

    number: int
    arguments: tuple[Any, ...]


_noted: set[tuple[str, str]] = set()
_log = logging.getLogger(__name__)


class ReplyGrader:
    """What a task's code makes of the replies to a document, under a clock.

    A reply with which it does not end counts as an empty one, from then on at once.

    Args:
        name: the task's.
        origin: where it came from.
        programs: whether grading runs programs, which the sandbox bounds and the clock does not count.
    """

    def __init__(self, name: str, origin: Origin, programs: bool) -> None:
        more: dict[str, Any] = {"wall": None} if programs else {}
        empty = (0, [""], None, False, "process")
        self._name = name
        self._read = ClockedFunction(f"{__name__}:reader", origin, name, warm=None if programs else empty, **more)
        self._endless: set[tuple[int, str]] = set()

    def filtered(self, number: int, texts: Sequence[str], name: str) -> Any:
        """What a filter makes of the replies to a document. Raises whatever it raises."""
        return self._of(number, texts, (name,), True)

    def values(self, number: int, texts: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        """As `values`, of replies in text."""
        graded: dict[str, Any] = self._of(number, texts, names, False)
        return graded

    def _of(self, number: int, texts: Sequence[str], names: Sequence[str], only_filter: bool) -> Any:
        from harness.extensions.sandbox import provider

        def read(texts: Sequence[str]) -> Any:
            return self._read(number, list(texts), tuple(names), only_filter, provider())

        texts = self._readable(number, texts)
        try:
            return read(texts)
        except UnreadableTextError as error:
            bug = error
        if not any(texts):
            message = f"task {self._name!r}: its code does not finish with an empty reply to document {number}"
            raise PluginError(message) from bug
        several = {text for text in texts if text} if len(texts) > 1 else ()
        endless = {text for text in several if not self._ends(read, text)} or {text for text in texts if text}
        self._endless |= {(number, text) for text in endless}

        def fail() -> Any:
            raise bug

        guarded("grade", self, fail, lambda _: None)  # writes it down
        return self._of(number, texts, names, only_filter)

    def _readable(self, number: int, texts: Sequence[str]) -> list[str]:
        return ["" if (number, text) in self._endless else text for text in texts]

    @staticmethod
    def _ends(read: Callable[[Sequence[str]], Any], text: str) -> bool:
        try:
            read([text])
        except UnreadableTextError:
            return False
        except Exception:  # as the task has it
            return True
        return True


# ------------------------------------------------------------------------------ in the process of the clock


def reader(origin: Origin, name: str) -> Callable[..., Any]:
    """Load a task with its documents; the function of (document, texts, filters, whether to filter only, sandbox)."""
    leaf = _leaves(origin)[name]
    leaf.open()
    return functools.partial(_read, leaf)


_LOADED: dict[int, Mapping[str, SingleTask]] = {}


def _leaves(origin: Origin) -> Mapping[str, SingleTask]:
    """The tasks of one call of `load`, which is repeated here once."""
    from .loading import load

    if origin.number not in _LOADED:
        _LOADED[origin.number] = load(*origin.arguments).leaves
    return _LOADED[origin.number]


def _read(
    leaf: SingleTask, number: int, texts: Sequence[str], names: Sequence[str] | None, only_filter: bool, sandbox: str
) -> Any:
    import numpy

    from harness.extensions.sandbox import using

    random.seed(PYTHON_SEED)  # a reply's value is the same whatever was read before
    numpy.random.seed(NUMPY_SEED)
    names = leaf.filters if names is None else names
    with using(sandbox):
        return filtered(leaf, number, texts, names[0]) if only_filter else values(leaf, number, texts, names)


# ------------------------------------------------------------------------------------- the package's grading


def filtered(leaf: SingleTask, number: int, texts: Sequence[str], name: str) -> Any:
    """What a filter makes of the replies to a document. Raises whatever it raises."""
    from lm_eval.api.instance import Instance

    instance = Instance("generate_until", leaf.recent_document(number), ("", {}), 0, (leaf.name, number, len(texts)))
    instance.resps.extend(texts)
    leaf.ensemble(name).apply([instance])
    return instance.filtered_resps[name]


def values(leaf: SingleTask, number: int, samples: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """(metric, filter) as "METRIC,FILTER" → the document's value.

    Args:
        leaf: the task, which is open.
        number: the document's.
        samples: the replies: texts, or lists of (log-likelihood, is_greedy), all of the same length.
        names: the filters.

    Raises:
        PluginError: a function of the task fails.
    """
    from lm_eval.api.instance import Instance

    found: dict[str, Any] = {}
    with leaf.explaining(f"document {number} is graded"):
        document = leaf.recent_document(number)
        metadata = (leaf.name, number, len(samples))
        if leaf.output_type == "generate_until":
            instances = [Instance(leaf.output_type, document, ("", {}), 0, metadata, list(samples))]
        elif leaf.output_type == "loglikelihood_rolling":
            sums = [pairs[0][0] for pairs in samples]
            instances = [Instance(leaf.output_type, document, ("",), 0, metadata, sums)]
        else:
            instances = [
                Instance("loglikelihood", document, ("", ""), i, metadata, [pairs[i] for pairs in samples])
                for i in range(len(samples[0]))
            ]
        for name in names:
            leaf.ensemble(name).apply(instances)
            replies = [instance.filtered_resps[name] for instance in instances]
            for metric, value in leaf.task.process_results(leaf.document(number), replies).items():
                found[f"{metric},{name}"] = plain(value)
    return found


def with_means(leaf: SingleTask, found: dict[str, Any]) -> dict[str, Any]:
    """The values; of those that `metric_list` lacks the numbers alone, of which the package shows a mean."""
    declared = {*leaf.metrics} - {*leaf.undeclared}
    for key, value in tuple(found.items()):
        name = key.rpartition(",")[0]
        if name in declared:
            continue
        if not isinstance(value, int | float):
            found[key] = None
        elif name not in leaf.undeclared and (leaf.name, name) not in _noted:
            _noted.add((leaf.name, name))
            show = f"{{use: grade, of: '{key}', optional: true}}"
            _log.warning(
                "%s: its code gives %r, a name that it computes; show it by metrics: %s", leaf.name, name, show
            )
    return found
