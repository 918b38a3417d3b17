"""Instances of every reply form there is, each with a reply that it reads: what tests of all forms go over."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from harness.api import Reply
from harness.config import project
from harness.extensions.datasets.boxed import Boxed
from harness.extensions.datasets.filters import pipelines
from harness.extensions.datasets.forms import filtered
from harness.extensions.datasets.label import Label
from harness.extensions.datasets.letter import Letter
from harness.extensions.datasets.number import Number
from harness.extensions.datasets.pattern import Pattern
from harness.extensions.games.actions import ActionForm, ActionParameter, Actions
from harness.extensions.games.legal import LegalAction
from harness.extensions.games.textarena.public import Public
from harness.extensions.judges.rating import Preference, Rating
from harness.extensions.networks.answers import INTEGER, NUMBERS, TABLE, TEXT, Answer, Integers
from harness.extensions.networks.calls import Calls, Verb
from harness.extensions.networks.messages import Messages
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.extensions.panels.ballots import Approval, Points, Ranking
from harness.extensions.panels.panels import Ballot
from harness.extensions.panels.stance import AgreeOrCounter, NamesFlaw
from harness.extensions.sandbox.code import Code
from harness.extensions.yaml_tasks.contract import ActWithFields
from harness.replies import Choice, FreeText, Labelled, WrappedReply
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from harness.replies.tool_reply import ToolReply
from tests.helpers.mas_commands import Commands

_MOUNTED = project.builtin().load("tasks", "finqa").__module__.partition(".registry.")[0]


def _plugin(module: str) -> Any:
    return importlib.import_module(f"{_MOUNTED}.registry.{module}")


FINQA, LM_EVAL, NETWORK, OPENSPIEL, BLAME, GRAPH, FEEDBACK, PERSONAS, TEAM = (
    _plugin(name)
    for name in (
        "tasks._finqa_reply",
        "tasks.lm_eval",
        "tasks._network.answers",
        "tasks._openspiel.example",
        "tasks.who_broke_it",
        "protocols._graph_replies",
        "protocols._feedback",
        "protocols._discussion.personas",
        "protocols._team.ratings",
    )
)
VERBS = (
    Verb("send_message", ("target_id",), "content"),
    Verb("write_file", ("path",), "content", line=True),
    Verb("list_files", (), None, ("prefix",)),
    Verb("wait"),
    Verb("submit_result", (), "answer"),
)
ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
MARKER = "### Final Answer ###"
ACT, ACT_REFERENCE = Labelled(ACTIONS, "ACTION", "WAIT"), Labelled(ACTIONS, "ACTION", "WAIT", "reference")
TO = ("Emma", "Alan")
LETTER = Letter(("Paris", "Rome", "New York", "5"))

MOVES = Actions(
    (
        ActionForm(
            "OFFER",
            (
                ActionParameter("amount", "integer", 1, 9),
                ActionParameter("price", "number", 0, 5),
                ActionParameter("to_whom", "one_of", values=("Ann", "Bob", 3)),
            ),
        ),
        ActionForm("SAY", (ActionParameter("text", "text", chars=40),)),
        ActionForm("WAIT"),
    ),
    noop={"action": "WAIT"},
)

BESIDE = (
    ActionParameter("reason", "text", chars=60),
    ActionParameter("confidence", "number", 0, 1),
    ActionParameter("first_choice", "one_of", values=("Ann", "Bob", 3)),
)

REGEX = {"function": "regex", "regex_pattern": r"#### (\d+)"}
FILTERED = filtered(pipelines([{"name": "strict", "filter": [REGEX, {"function": "take_first"}]}])).reply(None)

FORMS: dict[str, tuple[Reply, str]] = {
    "filtered": (FILTERED, "It is #### 18."),
    "rating": (Rating(1, 10), "Short and right, though dry.\nRating: **7**/10"),
    "rating in JSON": (Rating(1, 10), 'The answer claims 9. {"rating": 6.5}'),
    "rating by criteria": (Rating(0, 5, ("clarity", "depth")), "Clarity: 4\n**Depth:** 3 of 5"),
    "preference": (Preference(), "A is longer, B is right.\nBetter: **B**"),
    "preference in JSON": (Preference(), 'Both say the same. {"better": "tie"}'),
    "raw text": (LM_EVAL.RawText(), "Question: no.\n#### 18"),
    "actions": (MOVES, "I think.\nACTION: OFFER amount=3 price=2.5 to_whom=Bob"),
    "actions on lines": (MOVES, "**Action:** offer\n- Amount: 3\n- price: 1\n- to whom: 3"),
    "actions in JSON": (MOVES, '{"action": "OFFER", "parameters": {"amount": 1, "price": 2, "to_whom": "Ann"}}'),
    "actions with a text": (MOVES, 'ACTION: SAY "I wait."'),
    "answer": (Answer(INTEGER), "12"),
    "answers": (Answer(NUMBERS), "[1, 2.5]"),
    "table": (Answer(TABLE), '{"a": 1.5, "b": -2}'),
    "word, announced": (Answer(TEXT, "Final answer:"), "So it is.\nFinal answer: Alice"),
    "boxed": (Boxed(), r"so \boxed{\frac{1}{2}}."),
    "boxed, said": (Boxed(), "The final answer is $5$. I hope."),
    "calls": (Calls(VERBS), '<send_message target_id="3">the sum is 12</send_message> <wait/>'),
    "calls, or tools": (Calls(VERBS, as_tools=True), "<wait/>"),
    "choice": (Choice(("Group 1", "Group 12"), MARKER), "So.\n### Final Answer ###\nGroup 12"),
    "choice, whole": (Choice(("Yes", "No")), "Yes."),
    "choice, reference": (Choice(("Yes", "No"), MARKER, "reference"), "### Final Answer ### Yes"),
    "approval": (Approval(("A", "B")), "Both.\nApprove: A, B"),
    "ranking": (Ranking(("A", "B")), "Ranking: B > A"),
    "points": (Points(("A", "B")), "Points: A=7, B=3"),
    "code": (Code("f"), "Sure:\n```python\ndef f(x):\n    return '1'\n```"),
    "code, bare": (Code(), "Sure:\n\nx = 1\nreturn x + 1"),
    "commands": (Commands(VERBS), "Now.\n```\nsend_message 3 the sum\n```\n```\nwait\n```"),
    "considered": (AnswerWithConfidence(Number(), "line"), "Answer: 5\nConfidence: 85 out of 100 (sure)"),
    "considered, JSON": (
        AnswerWithConfidence(Number(), "json"),
        '{"reasoning": "so", "answer": "5", "confidence": "85%"}',
    ),
    "considered, none": (AnswerWithConfidence(LETTER, "none"), "The answer is (B)."),
    "free text": (FreeText(), "some words"),
    "free text, marked": (FreeText("ANSWER:", ("END",)), "ANSWER: some words\nEND"),
    "public": (Public("MESSAGE:"), "I am of the Mafia.\n**MESSAGE:** I trust Player 3.\n[3]"),
    "integers": (Integers(2), "[3, 14]"),
    "yes or no": (Label(("Yes", "No")), "Final Answer: No, since"),
    "labels": (Label(("relevant", "irrelevant", "choice of law")), '{"answer": "choice of law"}'),
    "label letters": (Label(("a", "b", "c")), "Final Answer: (b)"),
    "label digits": (Label(("0", "1")), "Answer: 1"),
    "legal action without names": (OPENSPIEL.AnyAction(("first", "second")), "ACTION: first"),
    "action": (ACT, "THINKING: so\nACTION: GRAB_LEFT"),
    "action, reference": (ACT_REFERENCE, "THINKING: so\nACTION: GRAB_LEFT"),
    "legal action": (LegalAction(("e4", "bxc3", "Bxc3", "Nf3+")), "A fork.\nACTION: **Nf3**, check"),
    "letter": (LETTER, "The answer is (B)."),
    "letter, text": (LETTER, "Answer: New York"),
    "ten letters": (Letter(10), "I choose option J"),
    "messages": (Messages(TO), '{"Emma": "hi\\nyou", "Alan": "a"}'),
    "messages, reference": (Messages(TO, parsing="reference", known=TO), '{"Emma": "hi"}'),
    "number": (Number(), "#### -1,234.50"),
    "number, fraction": (Number(percent=True), r"The answer is \frac{7}{8} = 1/3 %"),
    "pattern": (Pattern(r"#### (\-?[0-9\.\,]+)"), "#### 12"),
    "said": (MessageLine(), "MESSAGE: I take left"),
    "spoken": (ActionWithMessage(ACT, MessageLine()), "MESSAGE: I take left\nACTION: WAIT"),
    "spoken, reference": (
        ActionWithMessage(ACT_REFERENCE, MessageLine(parsing="reference")),
        "MESSAGE: I take left\nACTION: WAIT",
    ),
    "contract": (
        ActWithFields(LETTER, BESIDE, 1),
        "REASON: so.\nThe answer is (B).\nCONFIDENCE: 80 %\nFIRST CHOICE: Ann",
    ),
    "contract, number last": (
        ActWithFields(Number(), BESIDE[:2], 2),
        '{"reason": "so", "confidence": 0.7, "answer": 5}',
    ),
    "contract, free text": (ActWithFields(FreeText(), BESIDE[1:], 1), "CONFIDENCE: 0.7\nANSWER: some words"),
    "contract, value": (ActWithFields(Answer(INTEGER), BESIDE[:2], 0), "ANSWER: 12\nREASON: so\nCONFIDENCE: 1"),
    "contract, action": (ActWithFields(ACT, BESIDE, 3), "REASON: so\nACTION: GRAB_LEFT"),
    "contract, parameters": (ActWithFields(MOVES, BESIDE, 2), "### REASON\nso\n### ACTION\nWAIT"),
    "contract in a panel": (
        AnswerWithConfidence(ActWithFields(LETTER, BESIDE[:1], 1), "none"),
        "REASON: so.\nAnswer: B",
    ),
    "called": (ToolReply(ActionWithMessage(ACT, MessageLine())), "MESSAGE: I take left\nACTION: WAIT"),
    "wrapped": (WrappedReply(LETTER), "The answer is (B)."),
    "ballot": (Ballot(FreeText(), lambda action: str(action).strip(".") or None), "Paris"),
    "program": (FINQA.ProgramReply(), "Program: subtract(10, 4), divide(#0, const_100)"),
    "bounded number": (NETWORK.BoundedNumber(MARKER, 1, 9, True), f"{MARKER} 7"),
    "bounded fraction": (NETWORK.BoundedNumber(MARKER, 0.5, None, False), f"So.\n{MARKER} 1.25"),
    "several": (NETWORK.Several(("red", "green"), MARKER), f"{MARKER} red, green"),
    "several, as JSON": (NETWORK.Several(("red", "green"), MARKER), f'{MARKER} ["green"]'),
    "short": (NETWORK.ShortReply(FreeText(), 40), "a short answer"),
    "indices": (GRAPH.Indices(3, 2), "Agents: [0, 2]"),
    "indices, reference": (GRAPH.Indices(3, 2, "reference"), "0,2"),
    "level": (GRAPH.Level(), "Level: 3"),
    "scores": (GRAPH.Scores(("1", "3")), '{"1": 0.6, "3": "40%"}'),
    "ratings": (TEAM.PeerRatings(("1", "3")), 'The first is sound. {"1": 5, "3": "2"}'),
    "agreement": (AgreeOrCounter(Number(), 7), "**AGREE**, since the sum is right."),
    "counter-proposal": (AgreeOrCounter(LETTER, "B"), "DISAGREE: Rome is in Italy.\nThe answer is (A)."),
    "flaw": (NamesFlaw(Number()), "Flaw: the last step has no proof.\nThe answer is 5"),
    "accusation": (BLAME.Accusation(("Ann", "Bob", "Ann")), "AGENT: Bob\nTURN: 1"),
    "roster": (PERSONAS.Roster(2), "Here they are:\n1. **Chemist**: knows acids\n2. Historian: knows dates"),
    "feedback": (FEEDBACK.Feedback("approved"), "Well.\nVerdict: approved"),
    "rewritten": (FEEDBACK.AnswerAfterCritique(Number(), "approved"), "No.\nVerdict: revise\n\nAnswer: 5"),
}


def name_of(form: type) -> str:
    """Module and name: a data class with slots exists twice."""
    return f"{form.__module__}.{form.__qualname__}"


def every_name(base: type[Any] = Reply) -> Iterator[str]:
    """All forms of the package and of its plugins; none that is abstract."""
    for form in base.__subclasses__():
        if not inspect.isabstract(form) and form.__module__.split(".")[0] in ("harness", _MOUNTED):
            yield name_of(form)
        yield from every_name(form)
