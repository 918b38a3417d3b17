"""One task of lm-eval as a spec of the task `dataset_qa`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import yaml

from harness.api.errors import Place
from harness.extensions.datasets.filters import STEPS

from ._source import Entry, Function, lookup

Kind = Literal["left out", "differs"]

_SAME: Final = (
    "dataset_path", "dataset_name", "training_split", "validation_split", "test_split", "fewshot_split",
)  # fmt: skip
_TEMPLATES: Final = ("doc_to_text", "doc_to_target", "description")
_WITHOUT_EFFECT: Final = frozenset(
    {"task", "task_alias", "tag", "metadata", "group", "should_decontaminate", "doc_to_decontamination_query",
     "target_delimiter", "fewshot_delimiter", "unsafe_code", "output_type", "include"}
)  # fmt: skip
"""Keys that need no note: they mean nothing here, or another key's conversion reads them."""
_CORPUS: Final = {"bleu": "bleu", "chrf": "chrf", "chrf++": "chrf++", "ter": "ter", "f1": "f1", "mcc": "mcc"}
_SCORED: Final = ("acc", "acc_norm", "brier_score")
_INDEX: Final = re.compile(r"\w+|\{\{[^{}]*(?:label|answer|target|gold|index|idx)[^{}]*\}\}")
"""A `doc_to_text` that could be a number: a column by itself, or an expression with such a name."""
_EXACT: Final = ("regexes_to_ignore", "ignore_case", "ignore_punctuation", "ignore_numbers")
ITSELF: Final = "{use: lm_eval, task: NAME} plays the task as it is"


@dataclass(frozen=True, slots=True)
class Note:
    """What a spec does not say as the task does.

    Attributes:
        kind: whether a key is left out, or means something else here.
        place: file, line and column of the key.
        key: the key.
        text: why, and what to do.
    """

    kind: Kind
    place: Place
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key}: {self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class Conversion:
    """A spec, and what a reader must know about it.

    Attributes:
        spec: the spec as plain data.
        notes: in the order of the task's keys.
    """

    spec: Mapping[str, Any]
    notes: tuple[Note, ...]

    @property
    def complete(self) -> bool:
        """Whether the spec says all that matters."""
        return not any(note.kind == "left out" for note in self.notes)

    def text(self, source: str) -> str:
        """The spec in YAML, with the notes above it."""
        head = [f"# Converted from lm-eval's {source} by `harness convert lm_eval`."]
        head += [f"# {line}" for note in self.notes for line in str(note).splitlines()]
        body: str = yaml.dump(
            dict(self.spec), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=140
        )
        return "\n".join(head) + "\n" + body


class _Dumper(yaml.SafeDumper):
    """Repeats what is the same, as people do, in place of YAML's anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if "\n" in text else None)


_Dumper.add_representer(str, _text)


@dataclass
class TaskConversion:
    """Converts one task."""

    keys: Mapping[str, Entry]
    notes: list[Note] = field(default_factory=list)

    def spec(self, name: str) -> Conversion:
        """The whole spec."""
        task, rest = self.task(), {"protocol": self._protocol(), "prompts": self._prompts()}
        sampling = self._sampling()
        metrics = self._metrics(task)
        spec = {
            "name": word(name),
            "description": f"lm-eval's task {name}, converted.",
            "task": task,
            **rest,
            **({"generation_kwargs": sampling} if sampling else {}),
            "metrics": metrics,
            "headline": self._headline(metrics[0]["name"]),
        }
        order = {key: i for i, key in enumerate(self.keys)}
        return Conversion(spec, tuple(sorted(self.notes, key=lambda note: order.get(note.key.split(".")[0], 0))))

    def task(self) -> dict[str, Any]:
        """The parameters of `dataset_qa`."""
        task: dict[str, Any] = {"use": "dataset_qa"}
        if self.scored:
            task |= {"output_type": "multiple_choice", "scored": "loglikelihood", "continuation": "text"}
        elif self.kind != "generate_until":
            self._note("output_type", f"a data set's task has no {self.kind}: {ITSELF}")
        for key, entry in self.keys.items():
            convert = getattr(self, f"_{key}", None) if key in _SPECIAL else None
            if entry.value is None:
                continue
            if isinstance(entry.value, Function):
                self._note(key, f"{entry.value} is Python. {_PYTHON.get(key, f'Write a task of your own; {ITSELF}')}")
            elif convert is not None:
                task |= convert(entry.value)
            elif key in (*_SAME, *_TEMPLATES):
                task[key] = entry.value
            elif key not in _WITHOUT_EFFECT and key not in _LATER:
                self._note(key, f"there is no such key here. If it matters, {ITSELF}")
        if self.scored and _INDEX.fullmatch(str(task.get("doc_to_text", ""))):
            text = "if this is the index of an option, the options are contexts (as in WinoGrande), which no spec has"
            self._note("doc_to_text", f"{text}: {ITSELF}", "differs")
        task |= self._delimiters(task)
        return task

    @property
    def kind(self) -> str:
        return str(lookup(self.keys, "output_type", "generate_until"))

    @property
    def scored(self) -> bool:
        """Whether the options are scored by their log-likelihoods."""
        return self.kind == "multiple_choice"

    def _note(self, key: str, text: str, kind: Kind = "left out") -> None:
        entry = self.keys.get(key.split(".")[0]) or next(iter(self.keys.values()))
        self.notes.append(Note(kind, entry.place, key, text.replace("NAME}", f"{lookup(self.keys, 'task')}}}")))

    def _delimiters(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """What comes between questions and answers, and how a reply begins (`gen_prefix`), at the question's end.

        The prompt set `qa/scored` ends with the usual blank itself.
        """
        target, prefix = self._delimiter, lookup(self.keys, "gen_prefix")
        fewshot = lookup(self.keys, "fewshot_delimiter")
        done: dict[str, Any] = {} if fewshot is None else {"fewshot_delimiter": fewshot}
        text = task.get("doc_to_text")
        if not isinstance(text, str):
            return done
        if isinstance(prefix, str):
            between = lookup(self.keys, "target_delimiter", " ")
            between = "" if text[-1:].isspace() or prefix[:1].isspace() else between
            done["doc_to_text"] = text = f"{_template(text)}{between}{prefix}"
            note = (
                "it stands at the question's end; in a chat it would begin the reply, which no spec of a data set says"
            )
            self._note("gen_prefix", note, "differs")
        if target == " ":
            return done
        if not self.scored:
            return {**done, "target_delimiter": target}
        if not target.isspace() and target:
            note = f"{target!r} ends the question; lm-eval scores it with each option, so acc_norm can differ"
            self._note("target_delimiter", note, "differs")
        return {**done, "doc_to_text": f"{_template(text)}{target}", "target_delimiter": ""}

    @property
    def _delimiter(self) -> str:
        """What comes between a question, as it is written here, and its answer."""
        prefix = lookup(self.keys, "gen_prefix")
        if isinstance(prefix, str):
            return "" if prefix[-1:].isspace() else " "
        return str(lookup(self.keys, "target_delimiter", " "))

    # ------------------------------------------------------------------------- keys of their own

    def _dataset_kwargs(self, value: Any) -> dict[str, Any]:
        kept = {key: item for key, item in dict(value).items() if key != "trust_remote_code"}
        if len(kept) < len(value):
            hint = "code that comes with data is not run; if the hub has no other form of them, save the rows"
            self._note("dataset_kwargs", f"trust_remote_code: {hint}", "differs")
        return {"dataset_kwargs": kept} if kept else {}

    def _num_fewshot(self, value: Any) -> dict[str, Any]:
        if not value:
            return {}
        config = lookup(self.keys, "fewshot_config", {})
        if isinstance(config, Mapping) and config.get("sampler") != "first_n":
            text = (
                "other examples are drawn than lm-eval draws; with fewshot_config: {sampler: first_n} they are the same"
            )
            self._note("num_fewshot", text, "differs")
        return {"num_fewshot": value}

    def _fewshot_config(self, value: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        more: dict[str, Any] = {}
        for key, item in dict(value).items():
            if (key == "sampler" and item in ("default", "first_n")) or (key == "samples" and isinstance(item, list)):
                kept[key] = item
            elif key == "split" and isinstance(item, str):
                more["fewshot_split"] = item
            elif item is not None:
                what = (
                    f"{item} is Python; write them out under samples" if isinstance(item, Function) else "no such key"
                )
                self._note(f"fewshot_config.{key}", what)
        return {**({"fewshot_config": kept} if kept else {}), **more}

    def _doc_to_choice(self, value: Any) -> dict[str, Any]:
        return {"doc_to_choice": [str(x) for x in value.values()] if isinstance(value, Mapping) else value}

    def _filter_list(self, value: Any) -> dict[str, Any]:
        if self.scored or not isinstance(value, list):
            self._note("filter_list", "log-likelihoods have no text that filters could read")
            return {}
        kept = []
        for entry in value:
            bad = [step.get("function") for step in entry.get("filter", ()) if step.get("function") not in STEPS]
            if bad:
                self._note(
                    "filter_list", f"the filter {entry.get('name')!r} uses {bad[0]!r}, which is Python or unknown here"
                )
            else:
                kept.append({**entry, "filter": self._first_only(entry.get("filter", []))})
        return {"filter_list": kept} if kept else {}

    # ---------------------------------------------------------------------- the rest of the spec

    def _first_only(self, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The steps. Of several replies, lm-eval's take_first keeps only the first; here each would count."""
        names = [step.get("function") for step in steps]
        if (
            lookup(self.keys, "repeats", 1) == 1
            or {"take_first_k", "majority_vote"} & {*names}
            or "take_first" not in names
        ):
            return steps
        return [*steps, {"function": "take_first_k", "k": 1}]

    def _prompts(self) -> str:
        return "qa/scored" if self.scored and self._delimiter == " " else "lm_eval/text"

    def _protocol(self) -> dict[str, Any] | str:
        repeats = lookup(self.keys, "repeats", 1)
        return {"use": "single", "repeats": repeats} if repeats != 1 and not self.scored else "single"

    def _sampling(self) -> dict[str, Any]:
        if self.scored:
            return {}
        arguments = dict(lookup(self.keys, "generation_kwargs", {}))
        until = [lookup(self.keys, "fewshot_delimiter", "\n\n")]
        return {"until": until, **({"do_sample": False} if not arguments else {}), "max_gen_toks": 256, **arguments}

    def _metrics(self, task: dict[str, Any]) -> list[dict[str, Any]]:
        """The spec's metrics; the task gets its `metric_list`."""
        if lookup(self.keys, "process_results") is not None:
            self._note("metric_list", "process_results makes these numbers; answers are graded by exact_match instead")
        graded: list[Any] = []
        whole: list[dict[str, Any]] = []
        processed = lookup(self.keys, "process_results") is not None
        for entry in [] if processed else lookup(self.keys, "metric_list", [{"metric": m} for m in self._usual()]):
            name = entry.get("metric")
            made = self._metric(dict(entry), str(name))
            if made is None:
                continue
            (whole if "use" in made else graded).append(made)
        if not graded and not whole:
            graded = ["acc" if self.scored else "exact_match"]
        if graded:
            task["metric_list"] = [x["metric"] if isinstance(x, dict) and len(x) == 1 else x for x in graded]
        filters = [entry.get("name", "none") for entry in task.get("filter_list", ())]
        names = [x if isinstance(x, str) else x["metric"] for x in graded]
        suffixes = [f",{name}" for name in filters] if len(filters) > 1 else [""]
        metrics = [
            {"use": "grade", "of": f"{name}{suffix}", "name": f"{name}{suffix}"}
            for suffix in suffixes
            for name in names
        ]
        for made in whole:
            for suffix in suffixes:
                chosen = {"filter": suffix[1:]} if suffix else {}
                metrics.append({**made, **chosen, "name": f"{made['of']}{suffix}"})
        return metrics

    def _headline(self, name: str) -> dict[str, Any]:
        """The first metric; lower numbers are better where the task says so."""
        entries = lookup(self.keys, "metric_list", [])
        lower = [entry.get("metric") for entry in entries if entry.get("higher_is_better") is False]
        better = {"better": "lower"} if name.partition(",")[0] in lower else {}
        return {"cell": name, "title": name, **better}

    def _usual(self) -> tuple[str, ...]:
        return ("acc", "acc_norm") if self.scored else ("exact_match",)

    def _metric(self, entry: dict[str, Any], name: str) -> dict[str, Any] | None:
        """An entry of `metric_list`, or with `use` a metric of the spec; None if there is none."""
        aggregation = entry.get("aggregation")
        settings = {k: v for k, v in entry.items() if k not in ("aggregation", "higher_is_better")}
        if isinstance(entry.get("metric"), Function):
            self._note("metric_list", f"{entry['metric']} is Python: write a metric plugin")
        elif isinstance(aggregation, Function):
            self._note("metric_list", f"{name} is aggregated by {aggregation}, which is Python: write a metric plugin")
        elif self.scored:
            if name in _SCORED:
                return {"metric": name}
            self._note("metric_list", f"{name} of log-likelihoods does not exist here ({', '.join(_SCORED)} do)")
        elif entry.get("hf_evaluate") and aggregation in (None, "mean"):
            text = f"{name} is a script of the package evaluate; give its entry path: FOLDER if this machine has none"
            self._note("metric_list", text, "differs")
            return settings
        elif name in _CORPUS and aggregation in (None, name, "matthews_corrcoef"):
            return {"use": "corpus", "of": _CORPUS[name]}
        elif name == "exact_match" and aggregation in (None, "mean"):
            self._exact(settings)
            return {key: value for key, value in settings.items() if key in ("metric", *_EXACT)}
        else:
            how = "" if aggregation in (None, "mean") else f", aggregated by {aggregation},"
            self._note("metric_list", f"{name}{how} does not exist here. {ITSELF}")
        return None

    def _exact(self, settings: Mapping[str, Any]) -> None:
        """Where exact_match could give another number."""
        strips = {"regex", "multi_choice_regex", "remove_whitespace", "format_span", "map"}
        filters = lookup(self.keys, "filter_list", []) or [{}]
        bare = [x for x in filters if not strips & {step.get("function") for step in x.get("filter", ())}]
        if bare:
            text = "exact_match leaves blanks at both ends out; lm-eval does so after the filter remove_whitespace only"
            self._note("metric_list", text, "differs")
        for key in settings.keys() - {"metric", "hf_evaluate", *_EXACT}:
            self._note("metric_list", f"exact_match has no {key}")


_SPECIAL: Final = frozenset({"dataset_kwargs", "num_fewshot", "fewshot_config", "doc_to_choice", "filter_list"})
_LATER: Final = frozenset({"gen_prefix", "metric_list", "generation_kwargs", "repeats"})
_PYTHON: Final[Mapping[str, str]] = {
    "custom_dataset": "Write the rows to a file and set data_files",
    "process_docs": "Write it as {where: TEMPLATE, set: {COLUMN: TEMPLATE}}, or save the rows that it makes",
    "doc_to_text": "Write it as a template over the row's columns",
    "doc_to_target": "Write it as a template over the row's columns",
    "doc_to_choice": "Write it as a template over the row's columns",
    "process_results": f"Grade answers by metric_list or by a task of your own; {ITSELF}",
}


def _template(text: str) -> str:
    """A column's name as a template, to which more can be added."""
    return f"{{{{{text}}}}}" if text.isidentifier() else text


def word(name: str) -> str:
    """A spec's name: letters, digits, `_` and `-`."""
    return "".join(char if char.isalnum() or char in "_-" else "_" for char in name)
