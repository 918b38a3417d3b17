"""Metrics of the package `evaluate`: scripts that compare answers with right ones."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.api.errors import PluginError, SetupError
from harness.plugins import approvals
from harness.plugins.approvals import NotApprovedError
from harness.plugins.needed_approval import NeededApproval

from .batch_metric import BatchMetric

_NO_CLASS = -1
"""Stands for an answer that is not a number, for metrics that compare whole numbers."""


@dataclass(frozen=True, slots=True)
class LibraryMetric:
    """A loaded metric.

    Attributes:
        name: its name.
        module: the package's object.
    """

    name: str
    module: Any

    def number(
        self, pairs: Sequence[tuple[str, Sequence[str]]], result: str | None, kwargs: Mapping[str, Any]
    ) -> float:
        """What it gives for answers, each with the right ones; a metric that takes one right answer gets the first.

        Args:
            pairs: answers ("" if there is none) and right answers.
            result: which of its numbers; None: the one of its name, else the first.
            kwargs: further arguments.

        Raises:
            PluginError: if it fails, or gives no such number.
        """
        whole, several = self._takes
        texts = [answer for answer, _ in pairs]
        predictions = [_whole(text) for text in texts] if whole else texts
        references: list[Any] = [list(right) if several else right[0] for _, right in pairs]
        references = [_whole(right) for right in references] if whole and not several else references
        try:
            results = self.module.compute(predictions=predictions, references=references, **kwargs)
        except Exception as error:  # whatever a metric's code does
            raise PluginError(f"the metric {self.name} fails: {type(error).__name__}: {error}") from error
        numbers = {key: value for key, value in (results or {}).items() if _is_number(value)}
        wanted = result or (self.name if self.name in numbers else next(iter(numbers), ""))
        if wanted not in numbers:
            message = f"the metric {self.name} gives no number {result or ''}"
            raise PluginError(f"{message.strip()} but {json.dumps(results, default=str):.200}", at=("result",))
        return float(numbers[wanted])

    @property
    def _takes(self) -> tuple[bool, bool]:
        """Whether answers are whole numbers, and whether there may be several right ones."""
        features = self.module.features
        forms = features if isinstance(features, list) else [features]
        whole = all(str(getattr(form.get("predictions"), "dtype", "")).startswith("int") for form in forms)
        several = any(type(form.get("references")).__name__ in ("Sequence", "List") for form in forms)
        return whole, several


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return _NO_CLASS


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, bool)


def needed(name: str, path: str | None = None) -> list[NeededApproval]:
    """The files that `library_metric` would run, without running them: those of a local script. None of the cache."""
    where = _place(name, path)
    return [] if where is None else [one for one, _ in _files(where, Path(name).stem if where == name else name)]


def _place(name: str, path: str | None) -> str | None:
    """Where the script is on this machine; None: in the package's cache.

    The package takes a folder in the working directory for the metric of that name.
    """
    beside = Path(name, f"{Path(name).name}.py")
    return path or (name if "/" in name or name.endswith(".py") or beside.is_file() else None)


def _files(where: str, called: str) -> list[tuple[NeededApproval, bytes]]:
    """A script of others, and the Python files beside it, which it may import; each with its content."""
    script = Path(_script(where, called))
    script = script / f"{script.name}.py" if script.is_dir() else script
    if approvals.is_own(script):
        return []
    files = [(file, file.read_bytes()) for file in dict.fromkeys((script, *sorted(script.parent.glob("*.py"))))]
    return [(NeededApproval.of_file(file, content, f"the metric {called}"), content) for file, content in files]


@contextlib.contextmanager
def _approved(where: str | None, called: str) -> Iterator[str]:
    """What the package takes for a script's place: of one that is not the user's own a copy of what is approved."""
    files = _files(where, called) if where is not None else []
    if not files:
        yield _script(where, called)
        return
    approvals.require(one for one, _ in files)
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        copies = [Path(folder, Path(one.what).name) for one, _ in files]
        for copy, (_, content) in zip(copies, files, strict=True):
            copy.write_bytes(content)
        yield str(copies[0])


def library_metric(name: str, path: str | None = None, config_name: str | None = None) -> BatchMetric:
    """A metric from a folder or file of this machine, or from the package's cache, under a clock. Nothing is fetched.

    Args:
        name: the metric's name; a name with "/" or ".py" is a path too.
        path: where its script is.
        config_name: its configuration.

    Returns:
        a function of pairs, `result` and `kwargs`, as `LibraryMetric.number`.

    Raises:
        NotApprovedError: the script is not the user's own, and not approved; it has not run then.
        SetupError: without the package, without the script, or if it cannot be loaded.
    """
    loaded = _loaded(name, path, config_name)  # now, so that a mistake costs no calls
    return BatchMetric(loaded.name, f"{__name__}:number_of", name, path, config_name, more=(None, {}))


def number_of(name: str, path: str | None, config_name: str | None) -> Callable[..., float]:
    """The metric's `number`, in the process of the clock."""
    return _loaded(name, path, config_name).number


@lru_cache(maxsize=16)
def _loaded(name: str, path: str | None, config_name: str | None) -> LibraryMetric:
    where = _place(name, path)
    called = Path(name).stem if where == name else name
    try:
        import evaluate
    except ImportError as error:
        hint = "pip install 'mas-eval-harness[data]'"
        raise SetupError(f"the metric {called} needs the package `evaluate`", hint=hint) from error
    try:
        with _approved(where, called) as script:
            return LibraryMetric(called, evaluate.load(script, config_name, **_options(where)))
    except NotApprovedError:
        raise
    except Exception as error:  # the package raises dozens of kinds
        if where is not None:
            hint = f"path: names a local metric module, a folder that has {called}.py, or the file itself."
            raise SetupError(f"the metric {called} cannot be loaded from {where}: {error}", hint=hint) from error
        hint = (
            f"It is on the hub, which is not asked. Copy the folder huggingface.co/spaces/evaluate-metric/{called} "
            "and set path: FOLDER; or take a metric that needs no script: {use: corpus, of: bleu}, exact_match, …"
        )
        raise SetupError(f"this machine has no script of the metric {called}", hint=hint) from error


def _script(where: str | None, name: str) -> str:
    """What the package takes for a script's place."""
    if where is None:
        return name
    place = Path(where).expanduser().resolve()
    if not place.exists():
        raise FileNotFoundError("there is no such file or folder")
    named = place / f"{name}.py"
    return str(named if named.is_file() else place)


def _options(where: str | None) -> dict[str, Any]:
    if where is not None:
        return {"keep_in_memory": True}
    from evaluate.utils.file_utils import DownloadConfig

    return {"keep_in_memory": True, "download_config": DownloadConfig(local_files_only=True)}


def overlapping(of: str) -> Callable[[Sequence[tuple[str, Sequence[str]]]], float]:
    """A number of sacrebleu, 0 to 100, of all pairs together: "bleu", "chrf", "chrf++" or "ter"."""
    import sacrebleu

    def number(pairs: Sequence[tuple[str, Sequence[str]]]) -> float:
        answers = [answer for answer, _ in pairs]
        most = max(len(right) for _, right in pairs)
        references: Any = [[right[i] if i < len(right) else None for _, right in pairs] for i in range(most)]
        if of == "bleu":
            return float(sacrebleu.corpus_bleu(answers, references).score)
        if of == "ter":
            return float(sacrebleu.corpus_ter(answers, references).score)
        return float(sacrebleu.corpus_chrf(answers, references, word_order=2 if of == "chrf++" else 0).score)

    return number
