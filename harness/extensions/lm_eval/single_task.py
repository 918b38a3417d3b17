"""One task of lm-eval: its documents, what it asks about each, how it grades replies; by the package's object."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.api import Action
from harness.api.errors import DataError, Place, PluginError, near
from harness.replies.parse_guard import guarded

from . import _package, own_examples, reply_grader
from ._returned_names import returned_names
from ._task_errors import explain_error
from .aggregation import registered
from .data import LocalData
from .reply_grader import NUMPY_SEED, PYTHON_SEED
from .requests import DocumentRequest, Settings, as_chat
from .values import pairs_of, sampling_of

LOCAL = ("json", "csv", "parquet", "text")
"""Data sets that are files: `dataset_path` names their form."""
MAX_CACHED_CHARS = 30_000_000
"""Characters of prompts that a task keeps, so that a run's second look at its cases takes no time."""
INVALID = "[invalid]"
"""The package's answer of a regex filter for a reply without a match."""


class SingleTask:
    """A task that has documents (a leaf of groups).

    Attributes:
        name: the task's.
        task: the package's object. Before `open` it knows what its YAML says and has no documents.
        settings: its settings on lm-eval's command line.
    """

    def __init__(self, name: str, task: Any, data: LocalData, settings: Settings, origin: reply_grader.Origin) -> None:
        self.name, self.task, self._data, self.settings = name, task, data, settings
        self._reads = reply_grader.ReplyGrader(name, origin, self.runs_programs)
        self._chance: tuple[Any, Any] | None = None
        self._documents: Any = None
        self._last: tuple[int, Any] | None = None
        self._requests: list[DocumentRequest] | None = []
        self._source: Iterator[DocumentRequest] | None = None
        self._room = MAX_CACHED_CHARS

    # ------------------------------------------------------------------------------ what the YAML says

    @property
    def config(self) -> Any:
        """The package's `TaskConfig`."""
        return self.task.config

    @property
    def output_type(self) -> str:
        """One of the package's four."""
        return str(self.task.OUTPUT_TYPE or self.config.output_type)

    @property
    def yaml(self) -> Path | None:
        """The task's file."""
        source = (self.config.metadata or {}).get("config_source")
        return Path(source) if source not in (None, "inline") else None

    @property
    def place(self) -> Place | None:
        """Its file, for errors."""
        return Place(str(self.yaml), 1, 1) if self.yaml is not None else None

    @functools.cached_property
    def filters(self) -> tuple[str, ...]:
        """The names of its filters, in order."""
        listed = self.config.filter_list
        if isinstance(listed, list) and listed:
            return tuple(str(entry["name"]) for entry in listed)
        return tuple(str(ensemble.name) for ensemble in getattr(self.task, "_filters", ())) or ("none",)

    @functools.cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of its metrics, in order; a function that gives pass@k for several k has one for each.

        Those of `metric_list`, and those that its own code returns besides, of which the package shows a mean. Where
        the code returns none of `metric_list`, its own names come first.
        """
        counts = getattr(self.task, "_metric_fn_kwargs", {}).get("pass_at_k", {}).get("k", ())
        several = {"pass_at_k": [f"pass@{k}" for k in ([counts] if isinstance(counts, int) else counts)]}
        names = (several.get(str(name)) or [str(name)] for name in self.task.aggregation())
        listed = tuple(dict.fromkeys(itertools.chain.from_iterable(names)))
        parts = (
            (self.undeclared, listed)
            if self._returns and self._returns.keys().isdisjoint(listed)
            else (listed, self.undeclared)
        )
        return tuple(itertools.chain(*parts))

    @functools.cached_property
    def undeclared(self) -> tuple[str, ...]:
        """The names that its code returns and `metric_list` lacks."""
        return tuple(name for name in self._returns if name not in self.task.aggregation())

    @functools.cached_property
    def _returns(self) -> dict[str, None]:
        """The names that its own code returns, in order."""
        from lm_eval.api.task import ConfigurableTask

        own = self.config.process_results
        if not callable(own):
            own = getattr(type(self.task), "process_results", None)
            own = None if own is ConfigurableTask.process_results else own
        return dict.fromkeys(returned_names(own) if own is not None else ())

    def aggregation(self, metric: str) -> Any:
        """The function that makes one number of all documents' values; the package's `mean` if none is declared.

        Raises `PluginError` for a name that the package does not know: there it is None.
        """
        from lm_eval.api.metrics import mean

        function = self.task.aggregation().get(metric, mean)
        if function is None:
            entries = self.config.metric_list or ()
            with self.explaining(f"metric {metric!r} is read"):
                registered(next(str(e.get("aggregation")) for e in entries if e.get("metric") == metric))
        return function

    def is_mean(self, metric: str) -> bool:
        """Whether a metric's number is the plain mean of its documents' numbers."""
        from lm_eval.api.metrics import mean

        return self.aggregation(metric) is mean

    def higher_is_better(self, metric: str) -> bool:
        """Whether more of it is better, as the task says."""
        return bool(self.task.higher_is_better().get(metric, True))

    @functools.cached_property
    def fallbacks(self) -> frozenset[str]:
        """What its filters write where they find no answer."""
        listed = self.config.filter_list if isinstance(self.config.filter_list, list) else []
        steps = [step for entry in listed for step in entry.get("filter", ())]
        return frozenset({INVALID, *(str(step["fallback"]) for step in steps if step.get("fallback") is not None)})

    @property
    def runs_programs(self) -> bool:
        """Whether its grading runs programs that models wrote."""
        return bool(getattr(self.task, "UNSAFE_CODE", False))

    # -------------------------------------------------------------------------------------- documents

    def open(self) -> None:
        """Load the documents, once. Raises `DataError`, `PluginError` with the place of what failed."""
        if self._documents is not None:
            return
        with (
            self.explaining("its documents are prepared"),
            _package.quietly(),
            self._own_chance(first=True),
        ):
            _cache_templates()
            try:
                if hasattr(self.task, "open_data"):
                    self.task.open_data(self._data)
            except KeyError as error:
                raise self._no_split(error) or error from None
            self._override(self.settings)
            own_examples.watch(self.task, self.settings.leave_own_out)
            documents = self.task.task_docs if hasattr(self.task, "task_docs") else self.task.eval_docs
        self._documents = documents
        for name in ("filters", "metrics", "undeclared", "_returns"):
            self.__dict__.pop(name, None)

    def _no_split(self, error: KeyError) -> DataError | None:
        """The error for a split that the data set lacks; None if something else is missing."""
        there = getattr(self.task, "dataset", None)
        missing, keys = error.args[0], ("test_split", "validation_split", "training_split", "fewshot_split")
        key = next((key for key in keys if getattr(self.config, key, None) == missing), None)
        if key is None or not isinstance(there, Mapping) or missing in there:
            return None
        return DataError(f"{key}: the data set has no split {missing!r}", hint=near(missing, map(str, there)))

    @property
    def at_hand(self) -> bool:
        """Whether its data are the user's own files, so that looking at them downloads nothing."""
        path = str(self.config.dataset_path or "")
        files = (self.config.dataset_kwargs or {}).get("data_files")
        return self._data.replaces_hub or (path in LOCAL and files is not None) or Path(path).is_dir()

    def _override(self, settings: Settings) -> None:
        """Apply settings in the order of `simple_evaluate`."""
        task = self.task
        if settings.gen_kwargs and task.get_config("output_type") == "generate_until":
            task.set_config(key="generation_kwargs", value=dict(settings.gen_kwargs), update=True)
        own = task.get_config("num_fewshot")
        if settings.num_fewshot is not None and own != 0:
            task.set_config(key="num_fewshot", value=settings.num_fewshot)
        elif own is None:
            task.set_config(key="num_fewshot", value=0)

    @property
    def size(self) -> int:
        """How many documents there are."""
        return len(self._documents)

    def document(self, number: int) -> Any:
        """One document. Raises `IndexError`."""
        self.open()
        return self._documents[number]

    def numbers(self) -> Iterator[tuple[int, Any]]:
        """The documents to ask about with their numbers, in order. Raises `DataError` for one that is not there."""
        settings = self.settings
        chosen = settings.samples.get(self.name) if settings.samples is not None else None
        if chosen:
            beyond = [number for number in chosen if not 0 <= number < self.size]
            if beyond:
                message = f"samples: {self.name} has documents 0 to {self.size - 1}, found {beyond[0]}"
                raise DataError(message)
            for number in sorted(set(chosen)):
                yield number, self.document(number)
            return
        limit = settings.limit
        count = self.size if limit is None else math.ceil(self.size * limit) if limit < 1 else int(limit)
        for number, document in enumerate(self._documents):
            if number >= count:
                return
            yield number, document

    def requests(self) -> Iterator[DocumentRequest]:
        """The request for each document, in order: the same every time.

        Computes them once for all callers, as long as they have no more than `MAX_CACHED_CHARS` characters.
        """
        position = 0
        while self._requests is not None:
            if position == len(self._requests) and not self._request_next():
                return
            if self._requests is not None:
                yield self._requests[position]
                position += 1
        yield from itertools.islice(self._work_out(), position, None)

    def _request_next(self) -> bool:
        """Compute the request for one more document. False: there is none."""
        if self._source is None:
            self._source = self._work_out()
        try:
            request = next(self._source, None)
        except BaseException:
            self._requests, self._source, self._room = [], None, MAX_CACHED_CHARS
            raise
        if request is None or self._requests is None:
            return False
        self._requests.append(request)
        self._room -= len(request.context) + sum(
            len(text) + len(context or "") for text, context in request.continuations
        )
        if self._room < 0:
            self._requests = self._source = None
        return True

    def _work_out(self) -> Iterator[DocumentRequest]:
        self.open()
        self.task.set_fewshot_seed(self.settings.fewshot_seed)
        sampler = getattr(self.task, "sampler", None)
        drawn = (self.task.fewshot_rnd, getattr(sampler, "rnd", None))
        chance = self._chance
        for number, document in self.numbers():
            # Others may work out the same meanwhile: each draws from its own generators.
            self.task.fewshot_rnd = drawn[0]
            if sampler is not None:
                sampler.rnd = drawn[1]
            doing = self.explaining(f"document {number} is asked about")
            with doing, self._own_chance(state=chance) as after, own_examples.asking(document) as shown:
                request = self._ask(number, document)
            chance = after[0]
            yield replace(request, shows_itself=any(shown)) if any(shown) else request

    def _ask(self, number: int, document: Any) -> DocumentRequest:
        task, settings, chat = self.task, self.settings, self.settings.apply_chat_template
        context = task.fewshot_context(
            document,
            num_fewshot=task.config.num_fewshot or 0,
            system_instruction=settings.system_instruction,
            apply_chat_template=chat,
            fewshot_as_multiturn=settings.fewshot_as_multiturn,
            chat_template=as_chat if chat else None,
            gen_prefix=task.doc_to_prefix(document),
        )
        requests = task.construct_requests(
            doc=document,
            ctx=context,
            metadata=(task.config["task"], number, task.config.repeats),
            apply_chat_template=chat,
            chat_template=as_chat if chat else None,
        )
        instances = requests if isinstance(requests, list) else [requests]
        kinds = {instance.request_type for instance in instances}
        if len(kinds) != 1 or (len(instances) != 1 and kinds != {"loglikelihood"}):
            which = " and ".join(sorted(kinds))
            raise PluginError(f"task {self.name!r} makes {len(instances)} requests a document ({which}): not supported")
        [kind] = kinds
        target = self._target(document)
        first = instances[0].args
        if kind == "generate_until":
            return DocumentRequest(number, kind, first[0], (), sampling_of(first[1]), target)
        if kind == "loglikelihood_rolling":
            return DocumentRequest(number, kind, "", ((str(first[0]), None),), {}, target)
        pairs = tuple((i.args[1], None if i.args[0] == first[0] else i.args[0]) for i in instances)
        return DocumentRequest(number, kind, first[0], pairs, {}, target)

    def example(self) -> DocumentRequest:
        """A request for an invented document."""
        source = f"(a document of {self.config.dataset_path or self.name})"
        if self.output_type == "generate_until":
            return DocumentRequest(None, self.output_type, source, (), sampling_of(self.config.generation_kwargs or {}))
        kind = "loglikelihood" if self.output_type == "multiple_choice" else self.output_type
        texts = (" one", " two") if self.output_type == "multiple_choice" else (" one",)
        return DocumentRequest(None, kind, "" if "rolling" in kind else source, tuple((text, None) for text in texts))

    def _target(self, document: Any) -> Any:
        try:
            target = self.task.doc_to_target(document)
        except Exception:  # a task that grades by `process_results` needs none
            return None
        return target if isinstance(target, (str, int, float)) else str(target)

    # ---------------------------------------------------------------------------------------- grading

    def recent_document(self, number: int) -> Any:
        """A document, for callers that only read it. It caches the last one, as callers ask for it several times."""
        last = self._last  # other threads may grade meanwhile
        if last is None or last[0] != number:
            last = self._last = number, self.document(number)
        return last[1]

    def filtered(self, number: int, texts: Sequence[str], name: str) -> Any:
        """What a filter makes of the replies to a document. Raises whatever it raises."""
        return self._reads.filtered(number, texts, name)

    def ensemble(self, name: str) -> Any:
        """The package's filter of a name."""
        return next(ensemble for ensemble in self.task._filters if ensemble.name == name)

    def values(self, number: int, samples: Sequence[Action], only: str | None = None) -> dict[str, Any]:
        """(metric, filter) as "METRIC,FILTER" → the document's value, for every filter, or for one.

        Args:
            number: the document's.
            samples: the replies: texts, or lists of [logprob, is_greedy]. What is neither counts as an empty text, or
                leaves all values out.
            only: the filter.

        Raises:
            PluginError: a function of the task fails whatever the reply is.
        """
        names = (only,) if only is not None else self.filters
        if self.output_type != "generate_until":
            read = [pairs for sample in samples if (pairs := pairs_of(sample)) is not None]
            usable = [pairs for pairs in read if len(pairs) == len(read[0])]
            return reply_grader.with_means(self, reply_grader.values(self, number, usable, names)) if usable else {}
        texts = [sample if isinstance(sample, str) else "" for sample in samples] or [""]
        return reply_grader.with_means(self, self._of_texts(number, texts, names))

    def _of_texts(self, number: int, texts: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        try:
            return self._reads.values(number, texts, names)
        except PluginError as error:
            if not any(texts):
                raise
            try:
                neutral = self._reads.values(number, [""] * len(texts), names)
            except PluginError:
                raise error from error.__cause__  # the function fails whatever the reply is
            bug = error  # of what the model wrote: it counts as an empty reply

        def fail() -> dict[str, Any]:
            raise bug

        return guarded("grade", self, fail, lambda _: neutral)

    # ----------------------------------------------------------------------------------------- guards

    @contextlib.contextmanager
    def explaining(self, doing: str) -> Iterator[None]:
        """Turn what the package, the data or a `!function` raises into an error with the task's name and place."""
        try:
            yield
        except Exception as error:
            raise explain_error(error, self.name, self.yaml, f"while {doing}") from error

    @contextlib.contextmanager
    def _own_chance(self, state: tuple[Any, Any] | None = None, first: bool = False) -> Iterator[list[Any]]:
        """Python's and NumPy's global chance as `lm_eval` would have it here; afterwards as they were.

        Yields a list that receives their states at the end.
        """
        import numpy

        before = (random.getstate(), numpy.random.get_state())
        after: list[Any] = []
        if state is None:
            random.seed(PYTHON_SEED)
            numpy.random.seed(NUMPY_SEED)
        else:
            random.setstate(state[0])
            numpy.random.set_state(state[1])
        try:
            yield after
        finally:
            after.append((random.getstate(), numpy.random.get_state()))
            if first:
                self._chance = after[0]
            random.setstate(before[0])
            numpy.random.set_state(before[1])


@functools.cache
def _cache_templates() -> None:
    """Let the package's Jinja environment compile each template once instead of once a document."""
    from lm_eval import utils

    utils.env.from_string = functools.lru_cache(maxsize=4096)(utils.env.from_string)
