"""Tasks over a data set's rows, declared with lm-eval's keys: sources of rows, questions, right answers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from harness.api import Action, Case, Facts, Grading, Outcome, Protocol, Range, Reply, derive_seed
from harness.api.errors import DataError, Place, PluginError
from harness.extensions.panels.panels import Panel
from harness.extensions.panels.questions import GRADES, Question, QuestionTask
from harness.extensions.yaml_tasks.reply_fields import ReplyEntry, ReplyFields
from harness.replies import unquoted
from harness.replies.literals import NOTHING, read

from .examples import Choose, chooser
from .filters import pipelines, readings
from .forms import Form, filtered, form_of
from .grading import Measure, grade, measures_of
from .parameter_checks import FewshotConfig, ProcessDocs, check, check_literal
from .rows import Row, Source
from .scored_options import CUE, Scored, ScoredOptions, What
from .templates import DocTemplate

MAX_TEMPLATES = 200
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(kw_only=True)
class DatasetTask(QuestionTask):
    """Questions from the rows of a data set, each with a right answer and one agent (protocols add panels).

    Templates (`doc_to_…`, `labels`, `process_docs`) are a column's name or Jinja over the columns.

    Attributes:
        dataset_path: a data set on the hub, a local folder, or json, csv, parquet with `data_files`.
        dataset_name: its configuration.
        dataset_kwargs: more for `datasets.load_dataset`, e.g. revision, data_files.
        data_files: a local file, several, or split → file or files; JSON, JSONL, CSV, TSV or Parquet.
        data_dir: the folder of local files (`--data_dir`); without `data_files` the split's name finds them.
        test_split: the split with the questions; if None, `validation_split`.
        training_split, validation_split: the split of examples, in this order, unless `fewshot_split` is set.
        fewshot_split: the split of examples.
        num_fewshot: the number of solved examples before a question.
        fewshot_config: `sampler`: "first_n", or "default", a new draw for each question; `samples`: rows written out;
            `same`: a column in which examples and question must agree.
        process_docs: `where`: rows for which it renders to nothing, false or 0 are left out; `set`: new column →
            template.
        doc_to_text: the question.
        doc_to_target: the right answer; with choices its index, its letter or its text. Any one of a list is right.
        doc_to_choice: the options: a list, a column with one, or a template that renders to one.
        list_choices: whether the prompt lists the options below the question, "A. one", if an answer is one of their
            letters; false if `doc_to_text` shows them.
        doc_to_id: the id of a row; by default its column id, task_id or question_id, otherwise its number.
        description: precedes everything: a template.
        target_delimiter: between an example's question and its answer.
        fewshot_delimiter: between examples.
        answer: the form of an answer: `form`, and the form's own parameters. If None, `output_type` and `filter_list`
            decide, as in lm-eval: "multiple_choice" is the form letter; filters (`harness.extensions.datasets.filters`)
            read whole replies; and without either the answer is text.
        output_type, filter_list: see `answer`.
        reply: what agents write beside the answer, each on its line, such as `{reason: text, answer: , confidence:
            {number: [0, 1]}}`. The answer stands where `answer:` does, by default last. A panel takes a `confidence`
            for that of the answer.
        instruction: how to write the answer, in words, after the question; by default the form's own.
        scoring: "loglikelihood": nothing is written; the options' log-likelihoods decide. Without an instruction.
        continuation: the texts that are then scored: each option's "letter", or its "text", which the question does not
            list; by default the letter if answers are letters.
        metric_list: how an answer is graded; the first is the score. A name, or `metric` and its parameters. For
            log-likelihoods: acc, acc_norm, brier_score.
        labels: labels for tables: label → template.
        metadata, tag, should_decontaminate, doc_to_decontamination_query: lm-eval's; not used.
    """

    dataset_path: str | None = None
    dataset_name: str | None = None
    dataset_kwargs: dict[str, Any] = field(default_factory=dict)
    data_files: str | list[str] | dict[str, Any] | None = None
    data_dir: str | None = None
    training_split: str | None = None
    validation_split: str | None = None
    test_split: str | None = None
    fewshot_split: str | None = None
    num_fewshot: Annotated[int, Range(ge=0, le=100)] = 0
    fewshot_config: FewshotConfig = field(default_factory=FewshotConfig)
    process_docs: ProcessDocs = field(default_factory=ProcessDocs)
    doc_to_text: str
    doc_to_target: str | int | None = None
    doc_to_choice: str | list[str] | None = None
    list_choices: bool = True
    doc_to_id: str | None = None
    description: str = ""
    target_delimiter: str = " "
    fewshot_delimiter: str = "\n\n"
    answer: dict[str, Any] | None = None
    output_type: Literal["generate_until", "multiple_choice"] = "generate_until"
    filter_list: list[dict[str, Any]] = field(default_factory=list)
    reply_: ReplyEntry = field(default_factory=dict)
    instruction: str | None = None
    scoring: Scored | None = None
    continuation: What | None = None
    metric_list: list[str | dict[str, Any]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    tag: Any = None
    should_decontaminate: bool = False
    doc_to_decontamination_query: str | None = None

    def __post_init__(self) -> None:
        self._source = Source(
            self.dataset_path,
            self.dataset_name,
            self.data_files or self.dataset_kwargs.get("data_files"),
            self.data_dir or self.dataset_kwargs.get("data_dir"),
            self.dataset_kwargs,
        )
        self._form = self.form()
        self._beside = ReplyFields(self.reply_, "answer")
        if self._beside.values and (self.scoring or self._form.filters or self._form.name == "filtered"):
            what = "log-likelihoods decide" if self.scoring else "filters read whole replies"
            raise PluginError(f"reply: {what}; nothing stands beside an answer", at=("reply",), hint="Leave it out.")
        if self.continuation and not self.scoring:
            hint = "Set scoring: loglikelihood, or leave it out."
            raise PluginError("continuation says which texts are scored; nothing is", hint=hint, at=("continuation",))
        self._scored = ScoredOptions(self._form, self.continuation, self._metrics()) if self.scoring else None
        self._description = DocTemplate("description", self.description, column=False)
        self._text = DocTemplate("doc_to_text", self.doc_to_text)
        self._target = _template("doc_to_target", self.doc_to_target)
        self._choice = _template("doc_to_choice", self.doc_to_choice if isinstance(self.doc_to_choice, str) else None)
        self._id = _template("doc_to_id", self.doc_to_id)
        self._check_mappings()
        self._labels = {name: DocTemplate(f"labels.{name}", source) for name, source in self.labels.items()}
        self._where = _template("process_docs.where", self.process_docs.get("where"))
        columns = self.process_docs.get("set", {})
        self._set = {name: DocTemplate(f"process_docs.set.{name}", str(source)) for name, source in columns.items()}
        if isinstance(self.doc_to_choice, list):
            check_literal(self.doc_to_choice)
        if self.doc_to_choice is None:
            self._form.reply(None)  # a form that needs choices says so now
        needs_target = self.metric_list != ["ungraded"] and type(self).hidden is DatasetTask.hidden
        if self._target is None and self.doc_to_target is None and needs_target:
            raise PluginError("doc_to_target is missing: it has the right answer", at=("doc_to_text",))
        if self._form.name == "code" and type(self).measures is DatasetTask.measures:
            hint = "Use humaneval, or a task of your own that defines `measures`."
            raise PluginError("programs are not graded by comparing their text", hint=hint, at=("answer",))
        self._measures = self._scored.measures if self._scored is not None else self.measures()
        for name in self._measures.keys() & {"score", "pairs", "answered", "samples", "correct", *GRADES}:
            raise PluginError(f"the name {name!r} of a metric is taken", at=("metric_list",))
        self._readings = readings(self._form.filters)
        self.grades_raw_replies = bool(self._form.filters)
        self.replies_needed = max(reading.needs for reading in self._readings.values())

    @property
    def grades(self) -> tuple[str, ...]:
        """See `grade`."""
        names = [f"{measure}{suffix}" for suffix in self._readings for measure in self._measures]
        return (*names, "score", "answered", "samples", "correct", *GRADES, *self.wanted)

    @property
    def optional_grades(self) -> tuple[str, ...]:
        """`pairs`, of several filters the first one's and one each: see `grade`."""
        return tuple({"pairs": None, **{f"pairs{suffix}": None for suffix in self._readings}})

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        """The prompt set of panels, or that of questions; the score, all other metrics, and how much could be read."""
        own = "qa/standard" if self.writes_text else "qa/scored"
        others = [*list(self._measures)[1:], *(["answered"] if self.writes_text else [])]
        read = ["parse_failures", "truncated"] if self.writes_text else []
        return {
            "prompts": "panels/standard" if issubclass(protocol, Panel) else own,
            "metrics": ["score", *({"use": "grade", "of": o, "name": o} for o in others), *read, "engine_errors"],
            "headline": {"metric": "score", "title": "Score"},
        }

    @property
    def writes_text(self) -> bool:
        """False if options are `scored_options`."""
        return self.scoring is None

    @property
    def beside(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the fields of `reply`."""
        return self._beside.names

    @property
    def grading(self) -> Grading:
        """Slow if a measure is."""
        return "slow" if any(measure.slow for measure in self._measures.values()) else "quick"

    def looks_in(self, roots: Sequence[Path]) -> None:
        """Look for the local files there."""
        self._source = replace(self._source, roots=tuple(roots))

    # ------------------------------------------------------------------------- for each benchmark

    def form(self) -> Form:
        """The form of an answer."""
        if self.answer is not None:
            return form_of(self.answer)
        if self.scoring or self.output_type == "multiple_choice":
            return form_of({"form": "letter"})
        return filtered(pipelines(self.filter_list))

    def measures(self) -> dict[str, Measure]:
        """Name → measure of an answer, the score first."""
        return measures_of(self.metric_list or [self._form.metric])

    def prepare(self, doc: dict[str, Any]) -> dict[str, Any] | None:
        """Change a row before templates see it; None leaves it out. Override it if `process_docs` is not enough."""
        return doc

    # ---------------------------------------------------------------------------------------- rows

    def rows(self, split: str, seed: int) -> Iterable[tuple[Place, Row]]:
        """The rows of a split, unchanged. A task that generates its rows overrides this."""
        return self._source.rows(split)

    def docs(self, split: str, seed: int = 0) -> Iterator[tuple[Place, dict[str, Any]]]:
        """The prepared rows of a split."""
        for place, row in self.rows(split, seed):
            doc = self._prepare_row(place, row)
            if doc is not None:
                yield place, doc

    def _prepare_row(self, place: Place, row: Row) -> dict[str, Any] | None:
        try:
            doc = self.prepare(dict(row))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            from harness.plugins.explain_errors import in_words  # what only a mistake needs

            columns = ", ".join(map(str, row))
            problem = f"column {error} is missing" if isinstance(error, KeyError) else in_words(error)
            message = f"the task cannot read the row: {problem}"
            raise DataError(message, place=place, hint=f"Available columns: {columns}.") from None
        try:
            if doc is None or (self._where is not None and not _true(self._where(doc))):
                return None
            return {**doc, **{name: template(doc) for name, template in self._set.items()}}
        except DataError as error:
            raise DataError(error.message, place=error.place or place, hint=error.hint) from None

    @property
    def split(self) -> str:
        """The split with the questions."""
        return self.test_split or self.validation_split or "test"

    @property
    def local_files(self) -> list[Path]:
        """The files with the questions; none of data on the hub. Raises `DataError`."""
        return self._source.files(self.split) if self._source.local else []

    def cases(self, limit: int | None, seed: int) -> Iterator[Case]:
        """One case per row, in the order of the file.

        Raises:
            DataError: for no rows, two rows with one id, and rows without a question.
        """
        for measure in self._measures.values():
            measure.ready()  # fails before the first call if a package is missing
        shots = self._choose_examples()
        seen: dict[str, Place] = {}
        for number, (place, doc) in enumerate(itertools.islice(self.docs(self.split, seed), limit)):
            name = self._name(doc, number)
            if name in seen:
                message = f"the id {name!r} occurs twice, first at {seen[name]}"
                raise DataError(message, place=place, hint="Set doc_to_id to a template that is unique to each row.")
            seen[name] = place
            shots_seed = derive_seed("fewshot", seed, name)
            yield self._case(name, doc, place, functools.partial(shots, shots_seed, doc))
        if not seen:
            reason = "" if self._where is None else ", or `process_docs: where` leaves all of them out"
            raise DataError(f"{self._source} has no rows in the split {self.split!r}{reason}")

    def example(self) -> Case:
        """The first row if the data are at hand, otherwise invented columns, so checks download nothing."""
        if self._source.local:
            return next(iter(self.cases(1, 0)))
        templates = (self._description, self._text, self._target, self._choice, self._id)
        names = set().union(*(t.columns for t in templates if t is not None))
        names |= {t.source for t in (self._text, self._target) if t is not None and t.source.isidentifier()}
        choices = self.doc_to_choice if isinstance(self.doc_to_choice, list) else ["one", "two"]
        targets = [LETTERS[0] if self._form.letters else "1"]
        question = f"(columns of {self._source}: {', '.join(sorted(names))})"
        options = choices if self.doc_to_choice is not None else None
        return self._new_case("example", question, options, targets, dict.fromkeys(self._labels, "–"), {})

    def _name(self, doc: Mapping[str, Any], number: int) -> str:
        if self._id is not None:
            return str(self._id(doc)).strip()
        value = next((doc[name] for name in ("id", "task_id", "question_id") if doc.get(name) is not None), number)
        return str(value)

    def _case(self, name: str, doc: dict[str, Any], place: Place, examples: Callable[[str], Iterable[str]]) -> Case:
        try:
            options = self._options(doc)
            question = self._question(doc, options)
            text = f"{self._description(doc)}{''.join(examples(question))}{question}"
            bare = {"bare": question} if text != question else {}  # what tells questions apart
            labels = {label: str(template(doc)).strip() for label, template in self._labels.items()}
            case = self._new_case(name, text, options, self._targets(doc, options), labels, self.hidden(doc))
            return replace(case, public={**case.public, **bare, **self.public(doc)})
        except (PluginError, DataError) as error:
            raise DataError(error.message, place=error.place or place, hint=error.hint) from None

    def _new_case(
        self,
        name: str,
        question: str,
        options: Sequence[str] | None,
        targets: Sequence[str],
        labels: Facts,
        more: Facts,
    ) -> Case:
        public = {"question": question, "choices": list(options) if options is not None else None}
        target: dict[str, Any] = {"answers": list(targets), **more}
        target |= self._scored.target(options) if self._scored is not None else {}
        return Case(name, ("Agent-0",), public, target=target, labels=labels)

    def public(self, doc: Mapping[str, Any]) -> Facts:
        """Facts of the row that `reply` needs; they join `Case.public`."""
        return {}

    def hidden(self, doc: Mapping[str, Any]) -> Facts:
        """Facts of the row that grading needs besides the right answer; they join `Case.target`."""
        return {}

    # ------------------------------------------------------------------------------------- answers

    def _question(self, doc: Mapping[str, Any], options: Sequence[str] | None) -> str:
        """The question. The options follow if an answer is one of their letters, unless they are letters themselves."""
        value = self._text(doc)
        if value is None or not str(value).strip():
            raise DataError("the row has no question: doc_to_text is empty")
        text = str(value)
        listed = self._form.letters if self._scored is None else self._scored.letters
        if not self.list_choices or not listed:
            return text
        if options is None or [*options] == [*LETTERS[: len(options)]]:
            return text
        options_text = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
        return text + ("" if text.endswith("\n") else "\n") + options_text + (CUE if self.scoring else "")

    def _options(self, doc: Mapping[str, Any]) -> list[str] | None:
        """The choices of a row; None without choices."""
        if isinstance(self.doc_to_choice, list):
            return [str(choice) for choice in self.doc_to_choice]
        if self._choice is None:
            return None
        value = self._choice.value(doc)
        if isinstance(value, str):
            value = read(value)
        if isinstance(value, Mapping):
            value = list(value.values())
        if value is NOTHING or not isinstance(value, (list, tuple)) or not value:
            raise PluginError("doc_to_choice gives no list of options", at=("doc_to_choice",))
        return [str(choice) for choice in value]

    def _targets(self, doc: Mapping[str, Any], options: Sequence[str] | None) -> list[str]:
        """The right answers, letters or texts depending on the form. Any one of them counts."""
        if self._target is None:
            return [] if self.doc_to_target is None else self._targets_from(self.doc_to_target, options)
        value = self._target.value(doc)
        if value is None or value == "" or value == []:
            raise DataError("the row has no right answer: doc_to_target is empty")
        values = value if isinstance(value, (list, tuple)) else [value]
        return list(dict.fromkeys(target for item in values for target in self._targets_from(item, options)))

    def _targets_from(self, target: Any, options: Sequence[str] | None) -> list[str]:
        if target is None:
            raise DataError("a right answer is empty")
        if options is None or not (self._form.letters or text_in(target, options) or str(target).strip().isdecimal()):
            return [self._form.right(self._form.reply(options), str(target))]
        text = str(target).strip()
        place = int(text) if text.isdecimal() and len(text) < 4 else -1  # a whole number is an index, as in lm-eval
        if not 0 <= place < len(options):
            place = (
                list(options).index(text) if text in options else LETTERS.find(text.upper() if len(text) == 1 else "?")
            )
        if not 0 <= place < min(len(options), len(LETTERS)):
            choices = ", ".join(options)
            raise DataError(f"the right answer {text!r:.60} is none of the choices", hint=f"They are: {choices:.300}.")
        return [LETTERS[place] if self._form.letters else options[place]]

    def context(self, case: Case, agent: str) -> Facts:
        """`question` (with examples before it and options below it), `choices` (None without choices),
        `instruction` (how to write the answer), `name` of the agent and `n` agents."""
        instruction = self._form.instruction if self.instruction is None else self.instruction
        return {
            "name": agent,
            "n": len(case.agents),
            "question": case.public["question"],
            "choices": case.public["choices"],
            "instruction": "" if self.scoring else self._beside.instruction(instruction),
        }

    def reply(self, case: Case, agent: str) -> Reply:
        """The declared form; the log-likelihoods of the options where they are `scored_options`."""
        form = (self._form if self._scored is None else self._scored).reply(case.public["choices"])
        return self._beside.around(form)

    def question_of(self, case: Case) -> Question:
        """The row's question without examples, and its choices."""
        choices = case.public["choices"]
        bare = case.public.get("bare", case.public["question"])
        return Question(bare, None if choices is None else tuple(choices))

    def canonical(self, case: Case, action: Action) -> str:
        """One text for all equal answers, for counting votes. Quotes around an answer are ignored.

        Of log-likelihoods it is the answer that they prefer, in the sense of the first metric; of a reply that filters
        read, what the first of them finds.
        """
        choices = case.public["choices"]
        if self._scored is not None:
            return self._scored.answer(action, choices)
        answer = self._form.filters[0].one(action, choices) if self._form.filters else action
        if answer is None:
            return ""
        plain = next(iter(self._measures.values())).plain
        return plain(unquoted(str(answer))) if plain is not None else self._form.canonical(answer)

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """Every metric of `metric_list`, and what `harness.extensions.datasets.grading.grade` counts."""
        return grade(case, outcome, self._measures, self._readings, self.wanted, prefers=self._scored is not None)

    # ------------------------------------------------------------------------------------ examples

    def _choose_examples(self) -> Choose:
        """Return the function that chooses the examples before a question."""
        split = self.fewshot_split or self.training_split or self.validation_split
        return chooser(self.num_fewshot, self.fewshot_config, split, self.docs, self._example_text)

    def _example_text(self, doc: dict[str, Any]) -> tuple[str, str]:
        """Return an example's question, and the whole example as it precedes another question."""
        options = self._options(doc)
        question = self._question(doc, options)
        return question, f"{question}{self.target_delimiter}{self.solution(doc, options)}{self.fewshot_delimiter}"

    def solution(self, doc: Mapping[str, Any], options: Sequence[str] | None) -> str:
        """The answer of an example as prompts show it."""
        targets = self._targets(doc, options)
        if not targets:
            raise PluginError("examples need a right answer: doc_to_target", at=("num_fewshot",))
        return targets[0] if self._scored is None else self._scored.text(targets[0], options)

    def _metrics(self) -> Sequence[str | Mapping[str, Any]]:
        """`metric_list`; empty if it is only the class's default, which grades what models write."""
        default = next(f.default_factory for f in fields(self) if f.name == "metric_list")
        return [] if callable(default) and default() == self.metric_list else self.metric_list

    def _check_mappings(self) -> None:
        """Raise `PluginError` for mappings that do not fit their annotations, or have too many templates."""
        check("process_docs", self.process_docs, ProcessDocs, ("process_docs",))
        check("fewshot_config", self.fewshot_config, FewshotConfig, ("fewshot_config",))
        columns = self.process_docs.get("set", {})
        for parameter, templates in (("labels", self.labels), ("process_docs", columns)):
            if len(templates) > MAX_TEMPLATES:
                message = f"{parameter}: {len(templates):,} templates for each row; at most {MAX_TEMPLATES}"
                raise PluginError(message, at=(parameter,))
        if self.dataset_kwargs.get("trust_remote_code"):
            hint = "Load it once by hand, save the rows, and set data_files."
            raise PluginError("code that comes with data is not run", hint=hint, at=("dataset_kwargs",))


def text_in(target: Any, options: Sequence[str]) -> bool:
    """Return whether a right answer is one of the options' texts."""
    return str(target).strip() in options


def _template(parameter: str, source: Any) -> DocTemplate | None:
    return None if source is None or isinstance(source, int) else DocTemplate(parameter, str(source))


def _true(rendered: Any) -> bool:
    return str(rendered).strip().lower() not in ("", "false", "0", "none", "no")
