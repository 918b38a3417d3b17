"""Numbers that a judge gives after the episodes, and the tasks with which judges are asked.

A judge is asked in a run of its own, in the folder of the run that it judges. A model, or a policy in its place, plays
a `JudgedTask` there, whose cases are the answers of the judged episodes.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from harness.api import Action, Case, Episode, Facts, Metric, Range, derive_seed
from harness.api.errors import DataError, Place, PluginError
from harness.api.printable import utf8
from harness.extensions.panels.questions import Question, QuestionTask
from harness.plugins.parameters import PLUGIN, Keywords, Plugin

from .judge_records import note_on

RATING = "rating"
"""The number that a judge gives; of several criteria their mean."""
COUNTS = ("missing", "input_tokens", "output_tokens")
"""What a judged metric can also be `of`: the judges' replies of an episode that gave no rating, and their tokens."""
MAX_CRITERIA = 20


@dataclass(kw_only=True)
class JudgedMetric(Metric):
    """A number that a judge gives: a model that reads an episode's question and answer when all episodes are played.

    The judge does not learn who wrote an answer. What it fails to rate (an unreadable reply, a failed request) is
    missing and never counts as a low rating. Several metrics of equal parameters but `of` share one run of the judge.

    Attributes:
        model: the judge, a name under the spec's `models:`; a list is a panel of judges, whose mean counts. None: the
            engine that `--judge` gives, else `baseline`.
        baseline: the policy that judges where neither `model` nor `--judge` names one: for trying out a spec, since
            a script is not a judge.
        prompt: the prompt set, which says what is to be rated.
        scale: the lowest and the highest rating; [0, 1] for yes or no.
        criteria: names of what is rated, each with a number of its own; none: one rating.
        of: which number this metric is: rating (the mean of all criteria), one of the criteria, or a count an
            episode: missing (replies without a rating), input_tokens, output_tokens (of the judge).
        judges: what is rated: the answer alone, or the transcript, which is all that the agents wrote and the answer.
        reference: whether the judge sees the task's right answer.
        unanswered: the rating where agents gave no readable answer: the lowest of the scale, or missing.
        repeats: how often every judge is asked for an answer; the mean counts.
        parse_retries: how often an unreadable reply is asked for again.
        max_chars: characters of a question, an answer or a transcript that a judge is shown; the middle of a longer
            one is left out, and the judge is informed of it.
        generation_kwargs: sampling of the judge.
        structured_output: whether the judge decodes within the form of its reply.
    """

    measured_by: ClassVar[str | None] = "judges"

    model: Annotated[str | list[str], "a name under `models:`, or several"] | None = None
    baseline: Annotated[Plugin, Keywords({PLUGIN: "policies"})] | None = None
    prompt: Annotated[str, Keywords({PLUGIN: "prompts"})] = "judges/helpfulness"
    scale: tuple[float, float] = (1, 10)
    criteria: list[str] = field(default_factory=list)
    of: str = RATING
    judges: Literal["answer", "transcript"] = "answer"
    reference: bool = False
    unanswered: Literal["lowest", "missing"] = "lowest"
    repeats: Annotated[int, Range(ge=1, le=1000)] = 1
    parse_retries: Annotated[int, Range(ge=0, le=100)] = 2
    max_chars: Annotated[int, Range(ge=100, le=1_000_000)] = 20_000
    generation_kwargs: dict[str, Any] = field(default_factory=lambda: {"temperature": 0.0, "max_tokens": 1024})
    structured_output: bool = False

    def recall(self, name: str, meta: Facts) -> None:
        """Let tables say who rated."""
        if self.of not in COUNTS:
            self.note = note_on(name, meta.get("judges", {})) or self.note

    def __post_init__(self) -> None:
        check_scale(self.scale, self.criteria)
        if self.of not in (RATING, *self.criteria, *COUNTS):
            message = f"a judge gives no {self.of!r}; it gives {', '.join((RATING, *self.criteria, *COUNTS))}"
            raise PluginError(message, at=("of",))
        if isinstance(self.model, list) and len(set(self.model)) != len(self.model):
            raise PluginError("a judge is named twice", at=("model",), hint="`repeats:` asks one several times.")
        self.bounds = (0, float("inf")) if self.of in COUNTS else self.scale  # type: ignore[misc]

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the judges."""
        return (self.model,) if isinstance(self.model, str) else tuple(self.model or ())

    def measure(self, episode: Episode) -> None:
        """None: the number exists once the judge has answered
        (`harness.extensions.judges.judge_verdicts.with_verdicts`)."""
        return


def check_scale(scale: tuple[float, float], criteria: Sequence[str]) -> None:
    """Raises `PluginError` for a scale or criteria that no judge could use."""
    if not -1e6 <= scale[0] < scale[1] <= 1e6:
        raise PluginError(f"a scale is [lowest, highest], found {list(scale)}", at=("scale",))
    if len(criteria) > MAX_CRITERIA:
        raise PluginError(f"{len(criteria)} criteria; at most {MAX_CRITERIA}", at=("criteria",))
    for i, name in enumerate(criteria):
        if not name.strip() or len(name) > 60 or not name.isprintable():
            raise PluginError(f"{name!r:.80} names no criterion: a word or a few", at=("criteria", i))
        if name in (RATING, *COUNTS) or name.casefold() in [other.casefold() for other in criteria[:i]]:
            raise PluginError(f"the name {name!r} of a criterion is taken", at=("criteria", i))


class JudgedTask(QuestionTask):
    """A task whose cases are answers to judge, from a file beside the spec.

    Attributes:
        file: JSON lines, one for each answer; None: an example.
        folder: where `file` is looked for: the folder of the spec; the working directory without one.
    """

    file: str | None = None
    folder: Path = Path()

    EXAMPLE: ClassVar[Facts]

    def stands_in(self, folder: Path) -> None:
        """Look for `file` there."""
        self.folder = folder

    @abstractmethod
    def case(self, name: str, line: Facts, fence: str) -> Case:
        """The case of a line of the file. Raises `KeyError`, `TypeError` for a line that is none."""

    def cases(self, limit: int | None, seed: int) -> Iterator[Case]:
        """The answers in the file; lines without one are left out. Raises `DataError` for a line that is damaged."""
        lines = [(Place("example"), dict(self.EXAMPLE))] if self.file is None else read_lines(self.folder / self.file)
        for place, line in lines:
            if limit is not None and limit <= 0:
                return
            if line.get("answer", "") is not None:
                try:
                    name = str(line["id"])
                    fence = f"{derive_seed('fence', seed, name, json.dumps(line)):016x}"
                    yield self.case(name, line, fence)
                except (KeyError, TypeError, ValueError) as error:
                    from harness.plugins.explain_errors import in_words  # what only a mistake needs

                    raise DataError(f"not an answer to judge: {in_words(error)}", place=place) from None
                limit = None if limit is None else limit - 1

    def example(self) -> Case:
        """An answer to judge that needs no file."""
        return self.case("example", self.EXAMPLE, f"{derive_seed('fence'):016x}")

    def context(self, case: Case, agent: str) -> Facts:
        """The question, what is judged, and how: nothing about who wrote it."""
        return case.public

    def question_of(self, case: Case) -> Question:
        """What is judged."""
        return Question(json.dumps([case.public[name] for name in sorted(self.EXAMPLE) if name in case.public]))

    def canonical(self, case: Case, action: Action) -> str:
        """The rating as text."""
        return json.dumps(action, sort_keys=True)


def read_lines(path: Path) -> Iterator[tuple[Place, dict[str, Any]]]:
    """(place, object) of every line of a file of JSON lines. Raises `DataError`."""
    try:
        with path.open(encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                if not text.strip():
                    continue
                line = json.loads(text)
                if not isinstance(line, dict):
                    raise DataError(f"line {number} is not an object", place=Place(str(path), number, 1))
                yield Place(str(path), number, 1), line
    except FileNotFoundError:
        raise DataError("there is no such file", place=Place(str(path))) from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot be read: {error}", place=Place(str(path))) from None


def shorten(text: str, most: int) -> tuple[str, int]:
    """(the text without its middle where it is longer than `most`, how many characters are left out)."""
    text = utf8(text)
    if len(text) <= most:
        return text, 0
    head = most * 2 // 3
    tail = most - head
    left_out = len(text) - most
    return f"{text[:head]}\n[… {left_out:,} characters are left out here …]\n{text[-tail:]}", left_out


def answer_text(action: Action) -> str:
    """An answer as a judge reads it: a text as it is, all else as JSON."""
    return action if isinstance(action, str) else json.dumps(action, ensure_ascii=False)


def judge_names(count: int) -> tuple[str, ...]:
    """What the agents of a judged task are called."""
    return ("Judge",) if count == 1 else tuple(f"Judge-{i + 1}" for i in range(count))


def per_judge(case: Case, facts: Mapping[str, Any], answers: Mapping[str, Action]) -> dict[str, list[Action]]:
    """Judge → its replies, of a case that was played with the protocol `single`; None if one was unreadable."""
    samples = facts.get("samples")
    if not isinstance(samples, list) or len(samples) % len(case.agents):
        return {agent: [answers.get(agent)] for agent in case.agents}
    return {agent: samples[i :: len(case.agents)] for i, agent in enumerate(case.agents)}
