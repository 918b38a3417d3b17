"""Dialects of chat templates: what is thought is never read, carried out or seen; calls of tools as text are read."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Request
from harness.engines.mock import Mock
from harness.extensions.stress.dialects import CALLS, DRAFTS, written_in
from harness.replies import FreeText, Labelled, strip_reasoning, without_thinking
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from harness.replies.dialects import ELEMENTS, ENDS, FRAMES, THOUGHTS
from harness.replies.dropped_fields import dropped_fields
from harness.replies.parse_guard import MAX_CHARS
from harness.replies.text_tool_calls import ENVELOPES, calls_in
from tests.core.replies.every_form import FORMS

SPOKEN = ActionWithMessage(Labelled(("GRAB_LEFT", "WAIT"), "ACTION", "WAIT"), MessageLine())
MEANT = {"act": "GRAB_LEFT", "message": "I go first"}
EXACT = {"raw text", "filtered", "pattern", "integers", "answer", "answers", "table", "ballot", "short", "roster"}
EXACT |= {name for name in FORMS if "reference" in name}
"""Forms that take a text as it is, or read it as published code does."""
READ = sorted(FORMS.keys() - EXACT)


def meant(name: str) -> list[tuple[Any, Any, str]]:
    """(action, another one, the first as asked for) of examples that the form reads as they are."""
    form = FORMS[name][0]
    pairs = zip(form.examples, [*form.examples[1:], *form.examples[:1]], strict=True)
    written = [(action, other, form.written(action)) for action, other in pairs if action != other]
    return [one for one in written if form.parse(one[2]).action == one[0]][:3]


def alike(form: Any, action: Any, text: str) -> bool:
    parsed = form.parse(text)
    return parsed.error is None and form.says(parsed.action) == form.says(action)


# ------------------------------------------------------------------------------------------------- thoughts


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", READ)
def test_no_draft_in_any_dialect_is_the_answer(name: str) -> None:
    form = FORMS[name][0]
    for action, other, asked in meant(name):
        for dialect, before in DRAFTS.items():
            draft = before.replace("{}", form.written(other))
            assert alike(form, action, draft + asked), (dialect, draft + asked)
            if "harmony" not in dialect:  # a draft behind the answer, too
                assert alike(form, action, f"{asked}\n{draft.rstrip()}") or form.parse(asked + draft).error, dialect
            assert form.parse(draft.rstrip()).action is None, (dialect, "the reply ends with its thoughts")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", READ)
def test_a_mark_that_is_missing_makes_no_draft_an_answer(name: str) -> None:
    """The template wrote the opening, or the reply was cut off before the closing."""
    form = FORMS[name][0]
    for action, other, asked in meant(name)[:1]:
        draft = form.written(other)
        for opening, closing, _ in THOUGHTS:
            assert alike(form, action, f"{draft}{closing}\n{asked}"), closing
            assert form.parse(f"{opening}{draft}").action is None, opening
            assert alike(form, action, f"{opening}{opening}{draft}{closing}{draft}{closing}{asked}"), "nested"
        for element in ELEMENTS:
            nested = f"<{element}>a<{element}>{draft}</{element}>{draft}</{element}>\n{asked}"
            assert alike(form, action, nested), element


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", sorted(FORMS.keys() - EXACT - {"code", "code, bare"}))
def test_what_follows_the_end_of_a_turn_is_not_read(name: str) -> None:
    form = FORMS[name][0]
    for action, other, asked in meant(name)[:1]:
        for end in ENDS:
            assert alike(form, action, asked + end), end
            assert alike(form, action, f"{asked}{end}\n{form.written(other)}"), end
        for beginning in ("<|im_start|>assistant\n", "<|start_header_id|>assistant<|end_header_id|>\n\n", "<s> "):
            assert alike(form, action, f"{beginning}{asked}</s>"), beginning
        for opening, closing, _ in FRAMES:
            assert alike(form, action, f"{opening}{asked}{closing}"), opening


def test_words_that_only_look_like_marks_stay() -> None:
    for text in (
        "analysis of both sides", "Use <b> or <i>.", "a < b > c", "[THINKING] so", "1 <s>2</s> 3",
        "`<think>` is a tag", "```\n<think>\n``` and more",
    ):  # fmt: skip
        assert without_thinking(text) == text
    assert without_thinking('{"message": "<|im_end|>"}') == '{"message": "<|im_end|>"}', "what a field says"


def test_a_closing_mark_in_a_line_between_fences_is_text() -> None:
    """A grammar lets a model write any text as what a command says."""
    written = "```\nsubmit_result so it is</think>4\n```"
    assert without_thinking(written) == written
    assert without_thinking("```\nIs it 3?</think>\nAnswer: 4\n```").split() == ["```", "Answer:", "4", "```"]


def test_thoughts_in_a_fence_around_all_are_thoughts() -> None:
    for dialect, before in DRAFTS.items():
        text = (
            "```\n" + before.replace("{}", "MESSAGE: no\nACTION: WAIT") + "MESSAGE: I go first\nACTION: GRAB_LEFT\n```"
        )
        assert SPOKEN.parse(text).action == MEANT, dialect


SECRET = "zebra-7731"
PLAYED: dict[str, list[str]] = {
    "debate": ["arithmetic", "prompts=panels/standard", "protocol={use: debate}"],
    "digests": ["arithmetic", "prompts=panels/standard", "protocol={use: debate, summarize: shared}"],
    "self-refine": ["arithmetic", "prompts=panels/standard", "protocol={use: self_refine}"],
    "mixture": ["arithmetic", "prompts=panels/standard", "protocol={use: mixture_of_agents}"],
    "reconcile": ["arithmetic", "prompts=panels/standard", "protocol={use: reconcile}"],
    "a team": ["teams/tree"],
    "a table": ["dpbench_quick"],
    "shards": ["silo_quick"],
    "a network": ["agentsnet_quick"],
}


def thinking_aloud(form: str, seen: list[str]) -> Callable[[Request], str]:
    """A model that thinks a draft with a secret, and then answers as asked for."""

    def answer(request: Request) -> str:
        seen.extend(str(message["content"]) for message in request.thread.messages if message["role"] != "assistant")
        reply = request.reply
        asked = reply.written(reply.examples[0]) if reply is not None and reply.examples else "So be it."
        return form.replace("{}", f"My draft with {SECRET}:\n{asked}\nMESSAGE: {SECRET}\nanswer: {SECRET}") + asked

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("played", PLAYED)
@pytest.mark.parametrize("dialect", DRAFTS)
def test_no_thought_is_in_a_prompt_of_anyone_everywhere(played: str, dialect: str, tmp_path: Path) -> None:
    spec, *changes = PLAYED[played]
    seen: list[str] = []
    engine = Mock(function=thinking_aloud(DRAFTS[dialect], seen))
    harness.evaluate(spec, engine, overrides=changes, limit=1, output_path=tmp_path / "run")
    assert seen and not [text for text in seen if SECRET in text]


@pytest.mark.parametrize("dialect", ["[THINK]", "harmony", "<details>"])
def test_no_thought_is_in_a_prompt_of_another(dialect: str, tmp_path: Path) -> None:
    test_no_thought_is_in_a_prompt_of_anyone_everywhere("debate", dialect, tmp_path)


# ---------------------------------------------------------------------------------------------------- calls


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", sorted(FORMS.keys() - EXACT))
def test_every_form_reads_every_format_of_calls(name: str) -> None:
    form = FORMS[name][0]
    labelled = {one.name for one in form.fields}
    if {"code", "feedback", "experts"} & labelled or not meant(name):
        return
    for action, _, _ in meant(name):
        said = {key: value for key, value in form.says(action).items() if value is not None}
        pythonic = all(key.isidentifier() for key in said)
        for dialect in CALLS:
            text = written_in(dialect, form, action)
            if text is not None and (pythonic or "(" not in text):
                assert alike(form, action, text), (dialect, text)
                assert not dropped_fields(form, Completion(text), form.parse(text)), dialect


@pytest.mark.parametrize("dialect", CALLS)
def test_a_free_text_is_never_a_mark_of_a_call(dialect: str) -> None:
    text = CALLS[dialect]("final_answer", {"answer": "The river rises in the north."})
    parsed = FreeText().parse(f"I answer now.\n{text}")
    assert parsed.error is None
    if dialect not in ("pythonic", "OpenAI", "OpenAI, one function"):
        assert parsed.action == "The river rises in the north."
    for piece in re.findall(r"<[^<>]{2,40}>|\[/?TOOL_CALLS\]", text):
        left = FreeText().parse(f"{piece}The river rises.{piece}").action
        assert left is None or ("<" not in left and "[" not in left), left


def test_a_call_that_cannot_be_read_leaves_its_words() -> None:
    assert strip_reasoning("<tool_call>\nMESSAGE: hi, I wait.\n</tool_call>").strip() == "MESSAGE: hi, I wait."
    broken = '<tool_call>{"name": "reply", "arguments": {"message": "I go first", "action": "GRAB_LEFT"</tool_call>'
    assert SPOKEN.parse(broken).action == MEANT


def test_a_field_that_a_call_states_and_that_is_not_read_is_counted() -> None:
    for dialect in CALLS:
        text = CALLS[dialect]("reply", {"message": "I go first", "action": "JUMP"})
        parsed = SPOKEN.parse(text)
        assert parsed.error is not None and parsed.fallback_action == {"act": "WAIT", "message": "I go first"}, dialect


def test_functions_of_mathematics_are_no_calls() -> None:
    for text in ("subtract(10, 4), divide(#0, const_100)", "f(x) = 2", "[f(1), g(2)]", "max(3, 4)", "see(this)"):
        assert not calls_in(text) and strip_reasoning(text) == text


def test_every_dialect_says_where_it_is_documented() -> None:
    tables = [*ELEMENTS.values(), *ENDS.values(), *(one[-1] for one in (*THOUGHTS, *FRAMES, *ENVELOPES))]
    assert all(len(documented) > 4 for documented in tables)


# -------------------------------------------------------------------------------------------------- garbage

LAYOUTS = (
    "| MESSAGE | I go first |\n|---|---|\n| ACTION | GRAB_LEFT |",
    "| Message | Action |\n|---|---|\n| I go first | GRAB_LEFT |",
    "| **Field** | **Value** |\n|---|---|\n| **MESSAGE** | I go first |\n| **ACTION** | GRAB_LEFT |",
    "|MESSAGE|\n|---|\n|I go first|\n\n|ACTION|\n|---|\n|GRAB_LEFT|",
    "+---+---+\n| MESSAGE | I go first |\n+---+---+\n| ACTION | GRAB_LEFT |\n+---+---+",
    "MESSAGE\n------\nI go first\n\nACTION\n------\nGRAB_LEFT",
    "### MESSAGE\n---\nI go first\n### ACTION\n---\nGRAB_LEFT",
    "MESSAGE:\n---\nI go first\n---\nACTION: GRAB_LEFT",
    "{MESSAGE: I go first} {ACTION: GRAB_LEFT}",
    "MESSAGE: I go first |\nACTION: GRAB_LEFT |",
    "| MESSAGE: I go first | ACTION: GRAB_LEFT |",
    "MESSAGE: | I go first\nACTION: GRAB_LEFT",
    "<b>MESSAGE:</b> I go first<br><b>ACTION:</b> GRAB_LEFT",
    "<b>MESSAGE:</b> I go first<br>\n<b>ACTION:</b> GRAB_LEFT<br/>",
    "<p><strong>MESSAGE:</strong> I go first</p>\n<p><strong>ACTION:</strong> GRAB_LEFT</p>",
    "<div><b>MESSAGE</b>: I go first</div><div><b>ACTION</b>: GRAB_LEFT</div>",
    "<h3>Message</h3>\nI go first\n<h3>Action</h3>\nGRAB_LEFT",
    "<ul><li>MESSAGE: I go first</li>\n<li>ACTION: GRAB_LEFT</li></ul>",
    "<table><tr><td>MESSAGE</td><td>I go first</td></tr><tr><td>ACTION</td><td>GRAB_LEFT</td></tr></table>",
    "MESSAGE: I go first</s>\nACTION: GRAB_LEFT</s>",
    "MESSAGE: I go first \\\\\nACTION: GRAB_LEFT",
    "\\textbf{MESSAGE:} I go first\n\\textbf{ACTION:} GRAB_LEFT",
)


@pytest.mark.parametrize("text", LAYOUTS)
def test_messages_have_nothing_of_the_layout_around_them(text: str) -> None:
    assert SPOKEN.parse(text).action == MEANT


def test_what_a_message_says_stays() -> None:
    for said in ("a < b and b > c", "take {left}", "x | y", "5 - 3 --- or not", 'see {"a": 1}'):
        assert SPOKEN.parse(f"MESSAGE: {said}\nACTION: WAIT").action == {"act": "WAIT", "message": said}


# --------------------------------------------------------------------------------------------------- floods

FLOODS = [
    *(marks[i] for marks in (*THOUGHTS, *FRAMES) for i in (0, 1)),
    *(f"<{slash}{name}>" for name in ELEMENTS for slash in ("", "/")),
    *ENDS, *(call("a", {"b": "c"})[:cut] for call in CALLS.values() for cut in (12, 40, 400)),
    *("<|channel|>analysis<|message|>", "<parameter=a>", "f(a=", "\n[f(a=1, ", 'f(a="', "a{", "<b>", "</b>", "|---|\n"),
    *("a\n---\n", "| a | b |\n|---|---|\n", "- ", "-", "<think></think>", "<reasoning></reasoning>", "analysisA"),
]  # fmt: skip
PRECEDED = ("", "<tool_call>", "<think>", "```tool_code\n", "[TOOL_CALLS]reply", "MESSAGE: x\n", '{"a": "')


@pytest.mark.parametrize("before", PRECEDED)
def test_floods_are_read(before: str) -> None:
    """In linear time: with a million characters, in the slow test, one that is not would take hours."""
    for piece in FLOODS[:: 7 if before else 3]:
        text = before + piece * (4_000 // len(piece))
        for form in (SPOKEN, FORMS["calls"][0], FORMS["public"][0], FreeText("X:")):
            form.parse(text)


@pytest.mark.slow
@pytest.mark.parametrize("piece", sorted({*FLOODS}))
def test_floods_of_a_million_characters_are_read(piece: str) -> None:
    for before in PRECEDED[:4]:
        strip_reasoning(before + piece * (MAX_CHARS // len(piece)))
    FORMS["calls"][0].parse(piece * (MAX_CHARS // len(piece)))
