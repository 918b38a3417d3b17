"""Any task of lm-eval by its name: its documents, its prompts and its grading, by the package's own code."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from harness.api import Action, Case, Facts, Grading, Outcome, Parsed, PluginError, Protocol, Range, Reply, near, plugin
from harness.extensions.lm_eval import LoadedTasks, SingleTask, load, own_examples
from harness.extensions.lm_eval.data import LocalData
from harness.extensions.lm_eval.document_cases import case_of, interleaved, likelihoods
from harness.extensions.lm_eval.proposals import proposals
from harness.extensions.lm_eval.requests import Settings
from harness.extensions.lm_eval.values import pairs_of
from harness.extensions.panels.panels import Panel, candidate
from harness.extensions.panels.questions import GRADES, Question, QuestionTask, panel_grades

_COUNTS: Final = ("score", "answered", "samples", "correct")


@dataclass(frozen=True, slots=True)
class RawText(Reply):
    """The reply as it was written: the task's filters read it."""

    def parse(self, text: str) -> Parsed:
        """The text itself."""
        return Parsed(text)


@plugin
class LmEval(QuestionTask):
    """lm-eval's tasks: `task: {use: lm_eval, task: gsm8k}`. `harness list tasks --lm_eval WORD` finds names.

    Documents, prompts, filters and metrics come from the installed package (`pip install
    "mas-eval-harness[lm-eval]"`); the keys are those of its command line. A case is a document, with its task's name as
    the label `task`. Its grades are the task's metrics, "METRIC,FILTER" as in the package's tables, and `score`: the
    first metric behind the filter that votes compare.

    Attributes:
        task: a task, a group, a tag, a pattern with `*`, a YAML file, or a list of them.
        include_path: a folder with more tasks in YAML files, or several.
        num_fewshot: examples before each document; by default the task's own number.
        apply_chat_template: whether the prompt is a conversation (prompts: lm_eval/chat) and no plain text.
        fewshot_as_multiturn: whether examples are turns of that conversation; by default if there is one.
        system_instruction: a system message; in a plain text, what comes first.
        limit: documents of each task; below 1 a share of them. `--limit` counts all tasks' documents together.
        samples: task → the numbers of its documents to ask about.
        fewshot_seed: the seed of the draw of examples.
        leave_own_out: whether a document is no example before itself. The package leaves it in where a task without
            `fewshot_split` draws examples from its questions; `validate` says how many prompts that are.
        gen_kwargs: over the task's `generation_kwargs`.
        metadata: for the tasks' own use.
        filter: the filter whose results votes compare; by default the task's first.
        data_dir: a folder with a copy of the data set, in place of the hub's (`--data_dir`).
        data_files: a file of it, several, or split → file or files.
        dataset_kwargs: more for `datasets.load_dataset`.
    """

    task: str | list[str]
    include_path: str | list[str] | None = None
    num_fewshot: Annotated[int, Range(ge=0, le=10_000)] | None = None
    apply_chat_template: bool = False
    fewshot_as_multiturn: bool | None = None
    system_instruction: str | None = None
    limit: Annotated[float, Range(gt=0)] | None = None
    samples: dict[str, list[int]] | None = None
    fewshot_seed: int = 1234
    leave_own_out: bool = False
    gen_kwargs: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    filter: str | None = None
    data_dir: str | None = None
    data_files: str | list[str] | dict[str, Any] | None = None
    dataset_kwargs: dict[str, Any] = field(default_factory=dict)

    grades_raw_replies = True

    def __post_init__(self) -> None:
        if self.fewshot_as_multiturn and not self.apply_chat_template:
            hint = "Set apply_chat_template: true."
            raise PluginError("examples are turns of a conversation only", hint=hint, at=("fewshot_as_multiturn",))
        if self.samples is not None and self.limit is not None:
            raise PluginError("give samples or limit, not both", at=("limit",))
        self._settings = Settings(
            self.num_fewshot,
            self.system_instruction,
            self.apply_chat_template,
            self.apply_chat_template if self.fewshot_as_multiturn is None else self.fewshot_as_multiturn,
            self.fewshot_seed,
            self.gen_kwargs,
            self.limit,
            self.samples,
            self.leave_own_out,
        )
        _ = self._tasks  # a wrong name shows now; it raises where what it would run is not approved

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tasks"}  # the package's objects stay

    @functools.cached_property
    def _tasks(self) -> LoadedTasks:
        """The package's objects."""
        names = [self.task] if isinstance(self.task, str) else self.task
        folders = [self.include_path] if isinstance(self.include_path, str) else self.include_path or []
        data = LocalData(self.data_dir, self.data_files, self.dataset_kwargs)
        tasks = load(names, folders, self.metadata, data, self._settings)
        for name in self.samples or ():
            if name not in tasks.leaves:
                raise PluginError(f"samples: there is no task {name!r}", hint=near(name, tasks.leaves), at=("samples",))
        if self.filter is not None and not any(self.filter in leaf.filters for leaf in tasks.leaves.values()):
            names = sorted({name for leaf in tasks.leaves.values() for name in leaf.filters})
            raise PluginError(f"there is no filter {self.filter!r}", hint=near(self.filter, names), at=("filter",))
        return tasks

    @property
    def leaves(self) -> Mapping[str, SingleTask]:
        """The tasks that have documents, by name."""
        return self._tasks.leaves

    @property
    def groups(self) -> Mapping[str, Any]:
        """The package's groups among them, by name."""
        return self._tasks.groups

    @functools.cached_property
    def grades(self) -> tuple[str, ...]:
        """ "METRIC,FILTER" of every task, then `score`, `answered`, `samples`, `correct`, and those of panels."""
        return (*self._values, *_COUNTS, *GRADES)

    @functools.cached_property
    def _values(self) -> tuple[str, ...]:
        every = (f"{m},{f}" for leaf in self.leaves.values() for f in leaf.filters for m in leaf.metrics)
        return tuple(dict.fromkeys(every))

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        """The task's metrics, a table with its groups, and as prompts the package's text, conversation, or a panel's.

        `repeats` of the task become those of the protocol `single`; of several tasks each keeps its own.
        """
        if self.apply_chat_template:
            prompts = "lm_eval/chat"
        else:
            prompts = "panels/standard" if issubclass(protocol, Panel) else "lm_eval/text"
        task = {"task": self.task, "include_path": self.include_path}
        return {"prompts": prompts, **proposals(self._tasks, protocol, task)}

    @property
    def grading(self) -> Grading:
        """Whether a task runs programs that models wrote: in our sandbox, with `--allow_code_execution`.

        A task's code reads texts in another process, which may take a while.
        """
        if any(leaf.runs_programs for leaf in self.leaves.values()):
            return "executes"
        return "slow" if any(leaf.output_type == "generate_until" for leaf in self.leaves.values()) else "quick"

    @property
    def writes_text(self) -> bool:
        """Whether all tasks generate text; of the others the model's log-likelihoods count."""
        return all(leaf.output_type == "generate_until" for leaf in self.leaves.values())

    # ------------------------------------------------------------------------------------------ cases

    def cases(self, limit: int | None, seed: int) -> Iterator[Case]:
        """A case a document; those of several tasks one of each in turn."""
        return interleaved([self._cases_of(leaf) for leaf in self.leaves.values()], limit)

    def inputs(self, seed: int) -> tuple[str, ...]:
        """How many prompts hold their own question, if any do."""
        found = (own_examples.warning(leaf) for leaf in self.leaves.values())
        return tuple(f"warning: {one}" for one in found if one is not None)

    def _cases_of(self, leaf: SingleTask) -> Iterator[Case]:
        return (case_of(leaf, request) for request in leaf.requests())

    def example(self) -> Case:
        """The first document if the data are the user's own files, otherwise an invented one: checks download nothing.

        The first document of every task that has such files is tried, so that checks find what is wrong with it.
        """
        firsts = [next(leaf.requests(), None) if leaf.at_hand else None for leaf in self.leaves.values()]
        leaf = next(iter(self.leaves.values()))
        return case_of(leaf, firsts[0] or leaf.example())

    def context(self, case: Case, agent: str) -> Facts:
        """`question`: the text to continue, or the last user message; before it `history`, a list of messages, behind
        it `prefill`, how the reply begins. `choices` (None without), `instruction` (""), `name`, `n` agents."""
        public = case.public
        return {
            "name": agent,
            "n": len(case.agents),
            "question": public["question"],
            "history": public.get("history", []),
            "prefill": public.get("prefill", ""),
            "choices": public.get("choices"),
            "instruction": "",
        }

    def reply(self, case: Case, agent: str) -> Reply:
        """The reply as written, or the log-likelihoods of the document's continuations."""
        return likelihoods(case) if "continuations" in case.public else RawText()

    def replies_wanted(self, case: Case) -> int | None:
        """The `repeats` of the document's task, where tasks differ in that."""
        return self._repeats[case.labels["task"]] if len(set(self._repeats.values())) > 1 else None

    @functools.cached_property
    def _repeats(self) -> dict[str, int]:
        return {name: int(leaf.config.repeats or 1) for name, leaf in self.leaves.items()}

    def question_of(self, case: Case) -> Question:
        """The document's question with all that precedes it, and its choices."""
        choices = case.public.get("choices")
        return Question(case.public["question"], None if choices is None else tuple(choices))

    # ---------------------------------------------------------------------------------------- answers

    def _voting(self, leaf: SingleTask) -> str:
        return self.filter if self.filter in leaf.filters else leaf.filters[0]

    def canonical(self, case: Case, action: Action) -> str:
        """The filtered response; "" where the filter finds none. Of log-likelihoods the number of the largest."""
        leaf = self.leaves[case.labels["task"]]
        if leaf.output_type != "generate_until":
            choices = case.public.get("choices")
            sums = [total for total, _ in pairs_of(action) or ()][: len(choices) if choices else None]
            return str(sums.index(max(sums))) if len(sums) > 1 else json.dumps(action) if sums else ""
        number = case.target["document"]
        if number is None:  # of the invented document
            return str(action)
        response = leaf.filtered(number, [str(action)], self._voting(leaf))
        while isinstance(response, (list, tuple)) and len(response) == 1:
            response = response[0]
        text = response if isinstance(response, str) else json.dumps(response, default=str)
        return "" if text in leaf.fallbacks else text

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, Any]:
        """Return every "METRIC,FILTER" (None where the case's task lacks it), `score`, and counts of answers.

        The group's answer is graded; all samples where each counts by itself: the filters get them together.
        `score`: the first metric behind the filter of votes, if it lies between 0 and 1. `samples`: the number of
        answers; `correct`: of those that score 1 alone; `answered`: the share in which the filter finds an answer.
        `GRADES`: see `panel_grades`.
        """
        leaf, number = self.leaves[case.labels["task"]], case.target["document"]
        if number is None:
            return dict.fromkeys(self.grades)
        samples, history = outcome.facts.get("samples"), outcome.facts.get("history")
        answers = list(samples if samples is not None else history[-1] if history else outcome.answers.values())
        together = samples is not None and outcome.group is None
        # A group's one answer stands for each of the replies that the task's filters expect.
        final = answers if together else [outcome.group] * max(1, self._repeats[leaf.name])
        values = leaf.values(number, final)
        scores: dict[str, float | None] = {}

        def alone(action: Action) -> float | None:
            key = repr(action)
            if key not in scores:
                scores[key] = self._score(leaf, leaf.values(number, [action], self._voting(leaf)))
            return scores[key]

        one = len(answers) == 1 and together
        if one:
            scores[repr(answers[0])] = self._score(leaf, values)
        return {
            **dict.fromkeys(self._values),
            **values,
            "score": self._score(leaf, values),
            "samples": len(answers),
            "correct": sum(alone(action) == 1 for action in answers),
            "answered": self._answered(case, answers),
            **panel_grades(outcome, lambda action: alone(action) == 1),
        }

    def _score(self, leaf: SingleTask, values: Mapping[str, Any]) -> float | None:
        value = values.get(f"{leaf.metrics[0]},{self._voting(leaf)}")
        return value if isinstance(value, (int, float)) and 0 <= value <= 1 else None

    def _answered(self, case: Case, answers: Sequence[Action]) -> float | None:
        readable = [candidate(self, case, action) is not None for action in answers]
        return sum(readable) / len(readable) if readable else None
