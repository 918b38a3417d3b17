"""The answers of a run's finished episodes, written down for its judges: nothing in them says who gave them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from harness import storage
from harness.api import Action, Case, Move, Outcome, derive_seed
from harness.api.errors import StorageError
from harness.config.plan import Condition, Plan, episode_id
from harness.extensions.judges.judge_task import JudgedMetric, answer_text, read_lines, shorten
from harness.extensions.panels.questions import QuestionTask
from harness.runtime.verification import dispute, refuse
from harness.storage import finished_episodes

Line = dict[str, Any]


def prepare(path: Path, lines: Iterable[Mapping[str, Any]]) -> bool:
    """Write down what is judged, unless that was done before; returns whether there is an answer among it.

    Raises `StorageError`.
    """
    if not path.exists():
        _write(path, lines)
    return any(line.get("answer", "") is not None for _, line in read_lines(path))


def _write(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of JSON lines, in a folder of its own."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
    storage.write_atomically(path, (json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def judged_lines(plan: Plan, folder: Path, metric: JudgedMetric) -> Iterator[Line]:
    """A line for every answer of a run, in the order in which its episodes ended; those that failed have none."""
    for judged in answered(plan, folder):
        question, cut = shorten(question_of(judged.condition, judged.case), metric.max_chars)
        facts: Line = {"question": question, "reference": None, "transcript": None}
        if metric.reference:
            facts["reference"], more = shorten(reference_of(judged.case), metric.max_chars)
            cut += more
        hide = _Names(judged.batches, derive_seed(plan.seed, "judges", judged.id))
        if metric.judges == "transcript":
            facts["question"] = hide(question)
            facts["transcript"], more = shorten(hide.transcript(), metric.max_chars)
            cut += more
        answers = judged.answers
        for i, action in enumerate(answers):
            name = judged.id if len(answers) == 1 else f"{judged.id}#{i}"
            if action is None:
                yield {"id": name, "episode": judged.id, "answer": None}
                continue
            text, more = shorten(answer_text(action), metric.max_chars)
            if metric.judges == "transcript":
                text = hide(text)
            yield {
                "id": name,
                "episode": judged.id,
                "labels": judged.labels,
                **facts,
                "answer": text,
                "left_out": cut + more,
            }


class AnsweredEpisode:
    """An episode that came to an outcome."""

    def __init__(
        self, end: storage.Line, batches: Sequence[Sequence[Move]], condition: Condition, case: Case, outcome: Outcome
    ) -> None:
        self.id, self.condition, self.case, self.outcome, self.batches = (
            str(end["e"]),
            condition,
            case,
            outcome,
            batches,
        )
        self.labels = {name: value for name, value in end["labels"].items() if name != "model"}
        self.repeat = int(end["repeat"])

    @property
    def answers(self) -> Sequence[Action]:
        """What the task grades: the group's answer, else every sample, else the answer of every agent that is scored.

        None stands for an answer that was not given.
        """
        samples = self.outcome.facts.get("samples")
        if self.outcome.group is not None:
            return [self.outcome.group]
        if isinstance(samples, list) and samples:
            return samples
        if isinstance(self.condition.task, QuestionTask):  # the group came to no answer
            return [None]
        answers = self.outcome.answers.items()
        return [action for agent, action in answers if agent not in self.case.unscored] or [None]


def answered(plan: Plan, folder: Path) -> Iterator[AnsweredEpisode]:
    """The episodes of a run that came to an outcome, one in memory at a time.

    Raises `DataError`, also for an outcome to which the recorded moves do not lead.
    """
    episodes = {episode_id(*episode): episode for episode in plan.episodes()}
    for end, batches in finished_episodes.batches(*storage.journals(folder)):
        outcome = storage.outcome_of(end["outcome"])
        if outcome is not None and end["e"] in episodes:
            condition, case, _ = episodes[end["e"]]
            if (why := dispute(plan, episodes[end["e"]], end, batches)) is not None:
                refuse(plan, folder, {end["e"]: why})
            yield AnsweredEpisode(end, batches, condition, case, outcome)


def question_of(condition: Condition, case: Case) -> str:
    """What was asked: the question with its options, or the public facts of a case that is none."""
    if not isinstance(condition.task, QuestionTask):
        return json.dumps(dict(case.public), ensure_ascii=False, indent=1, default=str)
    question = condition.task.question_of(case)
    if not question.choices:
        return question.text
    letters = [ascii_uppercase[i] if i < 26 else str(i + 1) for i in range(len(question.choices))]
    options = [f"{letter}. {option}" for letter, option in zip(letters, question.choices, strict=True)]
    return question.text if options[0] in question.text else "\n".join((question.text, *options))


def reference_of(case: Case) -> str:
    """The right answer; if several are right, one per line."""
    target = case.target
    if isinstance(target, Mapping) and "answers" in target:
        return "\n".join(map(str, target["answers"]))
    return target if isinstance(target, str) else json.dumps(target, ensure_ascii=False, default=str)


class _Names:
    """Hides agents' names, which may be those of models: every agent is a number, drawn for the episode."""

    def __init__(self, batches: Sequence[Sequence[Move]], seed: int) -> None:
        self.batches = batches
        agents = sorted({move.agent for batch in batches for move in batch})
        numbers = random.Random(seed).sample(range(1, len(agents) + 1), len(agents))
        self.names = {agent: f"Agent {number}" for agent, number in zip(agents, numbers, strict=True)}
        self._pattern = _pattern(tuple(sorted(agents, key=len, reverse=True)))

    def __call__(self, text: str) -> str:
        """The text, with numbers instead of the agents' names."""
        return self._pattern.sub(lambda match: self.names[match[0]], text) if self.names else text

    def transcript(self) -> str:
        """All that the agents wrote, round by round."""
        lines = []
        for number, batch in enumerate(self.batches, 1):
            for move in batch:
                text = move.text if move.text is not None else answer_text(move.action)
                lines.append(f"[{self.names[move.agent]}, round {number}]\n{self(text).strip() or '(nothing)'}")
        return "\n\n".join(lines)


@lru_cache(maxsize=64)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")
