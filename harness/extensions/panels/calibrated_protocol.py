"""Protocols with calibrated parameters, estimated on questions that the evaluation never asks, and their files.

`harness calibrate` plays `calibration_protocol()` on the calibration rows, passes the results to `fit`, and writes the
parameters to the file `calibration`. An evaluation reads the file, checks it, and passes them to `load_parameters`.

Such a file says what it is made from: which agents answered which questions. An evaluation refuses it if its own agents
are others, or if it asks one of those questions. `fit` writes them.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import shlex
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any, TypedDict, cast

from harness import storage
from harness.api import Action, Case, Engine, Facts, Move, Protocol, Task
from harness.api.errors import DataError, NotPreparedError, Place, PluginError
from harness.checks.templates import TemplateReading
from harness.config.plan import Condition, Group, Plan
from harness.config.project import Project, find
from harness.config.prompts import PromptSet
from harness.extensions.panels.questions import QuestionTask
from harness.plugins.parameters import OPEN, Keywords, problems

SCHEMA = "harness.calibration/2"


class CalibrationFile(TypedDict):
    """The content of such a file; further keys describe how it was made."""

    agents: Annotated[dict[str, Any], Keywords(minProperties=1)]
    questions: Annotated[dict[str, str], Keywords(minProperties=1)]
    parameters: Annotated[dict[str, Any], Keywords(minProperties=1)]
    templates: Annotated[list[str], Keywords(minItems=1)]
    prompts: dict[str, str]


class NotFittedError(NotPreparedError):
    """Calibrated parameters are missing, or belong to other agents or prompts. `harness calibrate` writes them."""

    def advise(self, options: argparse.Namespace) -> None:
        """Name the command that estimates them for the same agents."""
        words = ["harness", "calibrate"]
        for name in ("spec", "data_dir", "seed", "model", "model_args", "gen_kwargs"):
            if getattr(options, name) not in (None, ""):
                words += [f"--{name}", str(getattr(options, name))]
        for change in options.overrides:
            words += ["--set", change]
        words += [f"--{name}" for name in ("sequential_engines", "allow_code_execution") if getattr(options, name)]
        # `harness calibrate` writes below the current project, if there is one, else below the working directory.
        root = find().root
        home = root if Path.cwd().is_relative_to(root) else Path.cwd()
        if self.place is not None and Path(self.place.file).resolve().is_relative_to(home):
            words.append("--overwrite")
        self.hint = f"Estimate them for these agents first, then give this command again:\n  {shlex.join(words)}"


@dataclass(frozen=True)
class CalibrationEpisode:
    """A calibration question, and the moves of the agents that answered it.

    Attributes:
        task, case: the question.
        batches: the moves of the protocol that `calibration_protocol` named.
        right: answer → whether it is right.
    """

    task: Task
    case: Case
    batches: Sequence[Sequence[Move]]
    right: Callable[[Action], bool]


class CalibratedProtocol(Protocol):
    """A protocol whose parameters come from a file. Without a file it uses defaults that favor no agent."""

    calibration: str | None = None

    @classmethod
    def prepare(cls, plan: Plan) -> Mapping[str, str]:
        """Read the files that protocols of this class name, and load their parameters (`load_parameters`)."""
        return load_parameters(plan, cls)

    @abstractmethod
    def members(self, case: Case) -> tuple[str, ...]:
        """The agents that the parameters are about."""

    @abstractmethod
    def calibration_protocol(self) -> Mapping[str, Any]:
        """The protocol, as in a spec, that asks the agents the calibration rows. In it agents do not see one another's
        replies.
        """

    @abstractmethod
    def fit(self, episodes: Sequence[CalibrationEpisode]) -> Facts:
        """Return the parameters, as JSON."""

    @abstractmethod
    def load_parameters(self, parameters: Facts) -> None:
        """Load parameters. Raises `PluginError` if they are unusable."""


def load_parameters(plan: Plan, kind: type[CalibratedProtocol] = CalibratedProtocol) -> dict[str, str]:
    """Read what the plan's protocols of a class were fitted on, check that it may be used, and hand it to them.

    Returns:
        name of the file → SHA-256 of what it holds.

    Raises:
        NotFittedError: a file is missing, or is about other agents.
        DataError: it is damaged, or about questions that are asked now.
        PluginError: its parameters are none that the protocol can use.
    """
    digests: dict[str, str] = {}
    questions: dict[int, dict[str, str]] = {}
    for condition in plan.conditions:
        protocol = condition.protocol
        if not isinstance(protocol, kind) or protocol.calibration is None:
            continue
        file = located(plan.project, protocol.calibration)
        fitted = _read(file, protocol.calibration)
        if id(condition.task) not in questions:
            cases = condition.task.cases(plan.limit, plan.seed)
            questions[id(condition.task)] = {fingerprint(condition.task, case): case.id for case in cases}
        _check_questions(fitted, questions[id(condition.task)], file)
        _check_agents(fitted, plan, condition, file)
        try:
            protocol.load_parameters(fitted["parameters"])
        except PluginError as error:
            raise PluginError(error.message, place=Place(str(file)), hint=error.hint) from None
        digests[protocol.calibration] = hashlib.sha256(file.read_bytes()).hexdigest()
    return digests


def located(project: Project, name: str) -> Path:
    """The file of that name: from the working directory, the project, or one it builds on."""
    for path in (Path(name), *(project.root / name for project in project.lineage())):
        if path.is_file():
            return path
    hint = (
        "`harness calibrate --spec …` plays the calibration rows and writes it; leave `calibration:` out to do without."
    )
    raise NotFittedError(f"there are no calibrated parameters {name}", hint=hint)


def fingerprint(task: Task, case: Case) -> str:
    """A digest of the question alone: its id, spacing, the examples before it and its options' order do not matter."""
    if isinstance(task, QuestionTask):
        question = task.question_of(case)
        options = question.choices or ()
        listed = "\n".join(f"{letter}. {option}" for letter, option in zip(ascii_uppercase, options, strict=False))
        parts = [question.text.removesuffix(listed), *sorted(options)]
    else:
        parts = [json.dumps([case.public, case.private], sort_keys=True, default=str)]
    text = "\x1f".join(" ".join(part.split()).casefold() for part in parts)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def players(plan: Plan, condition: Condition) -> dict[str, Any]:
    """Agent of the panel → its player: model, sampling and prompt set, or a policy with its parameters."""
    return {agent: _agent(group, plan.engines) for agent, group in _panel(plan, condition).items()}


def wordings(plan: Plan, condition: Condition, templates: Iterable[str]) -> dict[str, str]:
    """Prompt set of a model on the panel → digest of what it is asked with there."""
    models = (group for group in _panel(plan, condition).values() if group.policy is None)
    return {group.prompts.name: group.prompts.digest_of(_with_includes(group.prompts, templates)) for group in models}


def _with_includes(prompts: PromptSet, templates: Iterable[str]) -> set[str]:
    """These templates, as far as the set has them, and what they include. Raises `PromptError`."""
    names: set[str] = set()
    waiting = [name for name in templates if name in prompts.files]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += [other for other in TemplateReading.of(prompts, name).includes if other in prompts.files]
    return names


def _panel(plan: Plan, condition: Condition) -> dict[str, Group]:
    """Agent of the panel → its group."""
    assert isinstance(condition.protocol, CalibratedProtocol)
    case = condition.assign_groups(next(iter(condition.task.cases(1, plan.seed))), plan.seed)
    return {agent: condition.group_of(case, agent) for agent in condition.protocol.members(case)}


def _agent(group: Group, engines: Mapping[str, Engine]) -> Mapping[str, Any]:
    player: dict[str, Any]
    if group.policy is not None:
        policy = group.policy
        make, fields = (policy.func, policy.keywords) if isinstance(policy, functools.partial) else (policy, {})
        player = {"policy": getattr(make, "__name__", str(make)), "parameters": fields}
    else:
        engine = engines[group.model or "model"]
        player = {"model": engine.model, "generation_kwargs": group.sampling, "prompts": group.prompts.name}
        revision = engine.describe().get("revision")
        player |= {"revision": revision} if revision else {}
    plain: Mapping[str, Any] = json.loads(json.dumps(player, default=str))
    return plain


def _read(file: Path, name: str) -> CalibrationFile:
    document = storage.read_json(file)
    place, hint = Place(str(file)), f"Write it again with `harness calibrate --spec … --overwrite` ({name})."
    if document.get("schema") != SCHEMA:
        message = f"not a file of calibrated parameters: its schema is {document.get('schema')!r:.60}, not {SCHEMA!r}"
        raise DataError(message, place=place, hint=hint)
    for path, what in problems(document, Annotated[CalibrationFile, OPEN]):
        raise DataError(": ".join([*map(str, path[:-1]), what]), place=place, hint=hint)
    return cast("CalibrationFile", document)


def _check_questions(fitted: CalibrationFile, questions: Mapping[str, str], file: Path) -> None:
    """No question may be one that the parameters were fitted on."""
    earlier = {digest: name for name, digest in fitted["questions"].items()}
    both = [digest for digest in questions if digest in earlier]
    if both:
        raise DataError(
            f"{len(both)} of the {len(questions)} questions are among those the parameters were fitted on, e.g. "
            f"{questions[both[0]]!r} (there {earlier[both[0]]!r})",
            place=Place(str(file)),
            hint="Calibration and evaluation rows must be disjoint: change the spec's `calibrate:`, and fit again.",
        )


def _check_agents(fitted: CalibrationFile, plan: Plan, condition: Condition, file: Path) -> None:
    """The parameters are about these agents, all of them and no others, and about the words that they are asked in."""
    then, now = fitted["agents"], players(plan, condition)
    for agent in dict.fromkeys((*then, *now)):
        if then.get(agent) != now.get(agent):
            there, here = (
                json.dumps(side[agent], ensure_ascii=False)[:300] if agent in side else "not there"
                for side in (then, now)
            )
            raise NotFittedError(
                f"it is about other agents: {agent} was {there}, and is {here}",
                place=Place(str(file)),
                hint="Parameters are about the agents that were calibrated: run `harness calibrate` with these, or let "
                "those play.",
            )
    for name, digest in wordings(plan, condition, fitted["templates"]).items():
        if fitted["prompts"].get(name) != digest:
            message = f"the prompt set {name} has other words than when the parameters were fitted"
            hint = "Fit again with these: `harness calibrate --overwrite`."
            raise NotFittedError(message, place=Place(str(file)), hint=hint)
