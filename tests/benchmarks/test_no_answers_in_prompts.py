"""No prompt of ours states a legal answer as an example: weak models copy it, and a group that copies agrees.

Every prompt and complaint that shipped specs and all forms show is searched for places where a reply stands or could
stand: behind a label that the form asks for, in braces, in quotes, after "like this". What the form reads there as an
action would be an example, unless it lists all of its options. A copied placeholder is no action for the same reason.
"""

import random
import re
from collections.abc import Iterator

import pytest

from harness.api import Action, Case, Move, Reply, Turn, derive_seed
from harness.config import resolve
from harness.config import spec as specs
from harness.config.plan import Condition
from harness.config.project import builtin
from harness.config.prompts import PromptSet
from harness.engines.mock import Mock
from harness.extensions.networks.calls import Calls
from harness.replies.tool_reply import ToolReply
from harness.runtime.steps import Steps
from tests.core.replies.every_form import FEEDBACK, FORMS
from tests.helpers import shipped

THE_PAPERS = ("agentsnet/", "dpbench/")
"""Sets that print the papers' examples word for word, or rephrase them."""
SOLVED = ("world/tiny",)
"""Sets whose conversations begin with solved questions, as turns: other questions than those that are asked."""
CUE = re.compile(
    r"(?:such as|like this|for example|(?<!looks )like|e\.g\.)[:,]?[ \t]*\n?[ \t]*([^\n]{1,200})", re.IGNORECASE
)
QUOTED = re.compile(
    r"(?<!\w)'([^'\n]+)'(?!\w)|(\\boxed\{[^{}\n]*\})|(\{[^{}\n]*:[^{}\n]*\})|(<\w+[^<>\n]*>[^<>\n]*</\w+>)"
)
ODD = (
    "",
    "no",
    "???",
    "I do not know what to say.",
    '{"a": 1}',
    "Answer: 99999999999999",
    "Ranking: Z",
    "Points: A=99",
)
"""Replies that are unreadable each in its way."""
BATCHES = 24


def places(form: Reply, text: str) -> Iterator[str]:
    """Where a reply stands or could stand in a text."""
    for lead in {one.lead.strip() for one in form.fields} - {""}:
        for match in re.finditer(rf"{re.escape(lead)}(?!')", text, re.IGNORECASE):  # a quoted label ends there
            line, _, below = text[match.start() :].partition("\n")
            yield line
            yield f"{line}\n{below.partition(chr(10))[0]}"
    yield from CUE.findall(text)
    yield from (next(filter(None, groups)) for groups in QUOTED.findall(text))


def examples_in(form: Reply, text: str) -> dict[str, Action]:
    """Place → the action that it states, if the form asks for an exact one and the text does not list all options."""
    if any(form.parse(f"{lead} zzz qqq vvv").error is None for lead in ("", *(one.lead for one in form.fields))):
        return {}  # free text: all is an answer, and no example of one
    if isinstance(form, FEEDBACK.Feedback):  # its prompt and its complaint give both verdicts
        return {}
    stated = {place: parsed.action for place in places(form, text) if (parsed := form.parse(place)).error is None}
    stated = {place: action for place, action in stated.items() if says_something(form, action)}
    every = [value for option in (form.options or ())[:20] for value in form.says(option).values() if value is not None]
    listed = bool(every) and all(str(value) in text for value in every)
    return {} if listed else stated


def says_something(form: Reply, action: Action) -> bool:
    """Whether an action is more than idle: a call that says nothing, or is refused, is not an answer."""
    if isinstance(form, (ToolReply, Calls)) or (
        isinstance(action, list) and action and isinstance(action[0], dict) and "call" in action[0]
    ):
        return any("error" not in call and len(call) > 1 for call in action or ())
    return action not in (None, {}, []) and action != form.noop


def complaints(form: Reply) -> Iterator[str]:
    """What retries say."""
    yield from (error for text in ODD if (error := form.parse(text).error) is not None)


def texts(turn: Turn, prompts: PromptSet) -> Iterator[str]:
    """All that an agent reads in a turn, as one text, and what it reads where its reply is refused."""
    opening = [message["content"] for message in prompts.opening(turn.context)]
    yield "\n".join([*opening, prompts.render(turn.name, {**turn.context, **turn.observation})])
    yield from complaints(turn.reply)


def turns_of(condition: Condition, case: Case) -> Iterator[Turn]:
    """The first turns of a condition's example, played by the forms' own examples."""
    with Steps(condition.protocol, condition.task, case, random.Random(0)) as game:
        while game.batch is not None and game.number < BATCHES:
            moves = []
            for turn in game.batch:
                yield turn
                examples, rng = turn.reply.examples, random.Random(derive_seed(game.number, turn.agent))
                moves.append(Move(turn.agent, turn.name, rng.choice(examples) if examples else turn.reply.noop))
            game.send(moves)


def distinct(name: str) -> Iterator[tuple[Condition, Case]]:
    """The conditions of a spec that differ in more than numbers."""
    seen: set[str] = set()
    for condition in resolve.plan(specs.load(name, builtin(), []), builtin(), Mock()).conditions:
        case = condition.task.example()
        about = [condition.task.context(case, agent) for agent in case.agents[:2]]
        sets = [group.prompts.name for group in condition.groups]
        key = re.sub(r"\d+", "0", repr((type(condition.task), condition.protocol, about, sets)))
        if key not in seen:
            seen.add(key)
            yield condition, case


QUICK = ("arithmetic", "finqa", "networks/shared_rooms", "teams/chain")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in shipped.specs()]
)
def test_no_prompt_of_a_shipped_spec_states_an_answer(name: str) -> None:
    found, looked_at = {}, set()
    for condition, case in distinct(name):
        for turn in turns_of(condition, case):
            for group in condition.groups:
                if group.prompts.name.startswith((*THE_PAPERS, *SOLVED)):
                    continue
                for text in texts(turn, group.prompts):
                    if (key := (group.prompts.name, turn.name, re.sub(r"\d+", "0", text))) not in looked_at:
                        looked_at.add(key)
                        for place, action in examples_in(turn.reply, text).items():
                            found[group.prompts.name, turn.name, place[:160]] = action
    assert not found


@pytest.mark.parametrize("name", FORMS)
def test_no_complaint_of_a_form_states_an_answer(name: str) -> None:
    form, _ = FORMS[name]
    assert not [found for text in complaints(form) if (found := examples_in(form, text))]


PLACEHOLDERS = ("…", "...", "<number>", "<letter>", "<answer>", "[your answer]", "<your answer>")


@pytest.mark.parametrize("name", FORMS)
def test_a_copied_placeholder_is_no_answer(name: str) -> None:
    form, _ = FORMS[name]
    for placeholder in PLACEHOLDERS:
        for field in form.fields:
            action = form.parse(f"{field.lead} {placeholder}".strip()).action
            assert not says_something(form, action) or placeholder.strip("[]<>") not in str(action), (field, action)
