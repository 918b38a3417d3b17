"""Commands in fences: MAS-Bench's grammar, what is read, what is refused with a reason, and that nothing raises."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.networks.calls import Verb
from tests.benchmarks.mas.mas_kit import BACKENDS, BROADCASTING, KV, P2P, fence, play
from tests.helpers.mas_commands import UNKNOWN, Commands, fenced, usage, written

# The forms that agents really get, one a backend.
FORMS: dict[str, Commands] = {name: next(iter(play(name, {}).turns())).reply for name in BACKENDS}  # type: ignore[misc]
SENT = {"call": "send_message", "target_id": "1", "content": "hello there"}
WROTE = {"call": "write_file", "path": "plan", "content": "a\nb"}
WAIT = {"call": "wait"}


def calls(backend: str, text: str) -> list[dict[str, Any]]:
    parsed = FORMS[backend].parse(text)
    assert parsed.error is None and parsed.fallback_action is None
    return parsed.action  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------- fences


def printed(text: str) -> list[str]:
    """Appendix F.3, PARSEFENCED: the expression as printed, then trailing line breaks stripped."""
    return [block.rstrip("\r\n") for block in re.findall(r"```(?:[^\n`]*\n)?(.*?)```", text, re.DOTALL)]


PIECES = st.lists(
    st.sampled_from(["`", "``", "```", "````", "\n", "\r\n", " ", "\t", "wait", "xml", "send_message 1 x", "\ud800"])
).map("".join)


@given(st.one_of(PIECES, st.text("`\n a"), st.text()))
def test_fences_are_what_the_papers_expression_finds(text: str) -> None:
    assert fenced(text) == printed(text)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("```wait```", ["wait"]),  # on one line
        ("```text\nwait\n```", ["wait"]),
        ("```\r\nwait\r\n```\r\n", ["wait"]),
        ("```wait\n```", [""]),  # what stands behind the opening fence is a tag
        ("```send_message 1 a\nb\n```", ["b"]),
        ("```\nwait", []),  # never closed
        ("``` \nwait\n\n\n```", ["wait"]),
        ("``````", [""]),
        ("```\n```", [""]),
        ("```\n  wait  \n```", ["  wait  "]),
        ("```\nwait\n``` and ```\nlist_agents\n``` and ```\nwait", ["wait", "list_agents"]),
        ("`wait` ``wait`` '''\nwait\n'''", []),
        ("~~~\nwait\n~~~", []),
        ("```a```b```c```", ["a", "c"]),
    ],
)
def test_what_a_fence_holds(text: str, blocks: list[str]) -> None:
    assert fenced(text) == blocks == printed(text)


# ----------------------------------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("backend", "block", "call"),
    [
        *((name, "wait", WAIT) for name in BACKENDS),
        *((name, "submit_result [1, 2]", {"call": "submit_result", "answer": "[1, 2]"}) for name in BACKENDS),
        *((name, "receive_messages", {"call": "receive_messages"}) for name in (BROADCASTING, P2P)),
        (BROADCASTING, "list_agents", {"call": "list_agents"}),
        (BROADCASTING, "broadcast_message to 1: all", {"call": "broadcast_message", "content": "to 1: all"}),
        (P2P, "send_message 1 hello there", SENT),
        (P2P, "send_message Agent-1 hello there", {**SENT, "target_id": "Agent-1"}),
        (KV, "list_files", {"call": "list_files", "prefix": ""}),
        (KV, "list_files pl", {"call": "list_files", "prefix": "pl"}),
        (KV, "list_files my pl ", {"call": "list_files", "prefix": "my pl"}),
        (KV, "read_file plan", {"call": "read_file", "path": "plan"}),
        (KV, "read_file my plan", {"call": "read_file", "path": "my plan"}),
        (KV, "delete_file plan", {"call": "delete_file", "path": "plan"}),
        (KV, "write_file plan\na\nb", WROTE),
        (KV, "write_file my plan\na", {"call": "write_file", "path": "my plan", "content": "a"}),
        # blanks, line breaks, capitals
        (P2P, "  WAIT ", WAIT),
        (P2P, "\n\twait", WAIT),
        (P2P, "wait for the others", WAIT),
        (P2P, "Send_Message   1 \t hello there  ", SENT),
        (P2P, "send_message 1\nhello there", SENT),
        (P2P, "send_message\n1\nhello there", SENT),
        (P2P, "send_message 1 a\n\n b\n", {**SENT, "content": "a\n\n b"}),
        (P2P, "submit_result [1,\n 2]", {"call": "submit_result", "answer": "[1,\n 2]"}),
        (P2P, "submit_result\n[1, 2]", {"call": "submit_result", "answer": "[1, 2]"}),
        (P2P, "send_message 1 `code` and ``more``", {**SENT, "content": "`code` and ``more``"}),
        # values of keys stay as they are
        (KV, "write_file plan\n  a\n\tb ", {**WROTE, "content": "  a\n\tb "}),
        (KV, "write_file plan\n\n\na", {**WROTE, "content": "\n\na"}),
        (KV, "WRITE_FILE \t plan \na\nb", WROTE),
        (KV, "write_file plan\n ", {**WROTE, "content": " "}),
        (KV, "write_file plan\r\na\r\nb", {**WROTE, "content": "a\r\nb"}),
        (P2P, "send_message 1 \ud83d\ude00 \ud800", {**SENT, "content": "😀 �"}),
    ],
)
def test_what_is_read(backend: str, block: str, call: dict[str, str]) -> None:
    assert calls(backend, f"I think so.\n{fence(block)}\nThat is all.") == [call]
    assert FORMS[backend].allows([call])


@pytest.mark.parametrize(
    ("backend", "block", "name", "why"),
    [
        (BROADCASTING, "broadcast_message", "broadcast_message", "content is missing; write:\nbroadcast_message <cont"),
        (BROADCASTING, "broadcast_message  \n ", "broadcast_message", "content is missing"),
        (P2P, "send_message", "send_message", "target_id is missing; write:\nsend_message <target_id> <content>"),
        (P2P, "send_message 1", "send_message", "content is missing"),
        (P2P, "send_message 1  \n\t", "send_message", "content is missing"),
        (P2P, "submit_result", "submit_result", "answer is missing; write:\nsubmit_result <answer>"),
        (P2P, "submit_result \n ", "submit_result", "answer is missing"),
        (KV, "read_file", "read_file", "path is missing; write:\nread_file <path>"),
        (KV, "delete_file  ", "delete_file", "path is missing; write:\ndelete_file <path>"),
        (KV, "write_file", "write_file", "path is missing; write:\nwrite_file <path>\n<content>"),
        (KV, "write_file\nplan\na", "write_file", "path is missing"),  # the key stands on the first line
        (KV, "write_file plan", "write_file", "content is missing"),
        (KV, "write_file plan a", "write_file", "content is missing"),  # and nothing else does
        (KV, "write_file plan\n\n\n", "write_file", "content is missing"),
    ],
)
def test_what_is_refused_and_why(backend: str, block: str, name: str, why: str) -> None:
    [call] = calls(backend, fence(block))
    assert call["call"] == name and why in call["error"] and set(call) == {"call", "error"}


@pytest.mark.parametrize(
    ("backend", "block", "name"),
    [
        (P2P, "", ""),
        (P2P, " \n ", ""),
        (P2P, "fly away\nat once", "fly away"),
        (P2P, "\n  sendmessage 1 x\n", "sendmessage 1 x"),
        (P2P, "send_message(1, 'x')", "send_message(1, 'x')"),
        (P2P, "wait;", "wait;"),
        (P2P, "/wait", "/wait"),
        (P2P, "# wait", "# wait"),
        (P2P, "I\ud800", "I�"),
        (P2P, "x" * 1000, "x" * 120),
        # commands of another backend
        (P2P, "broadcast_message x", "broadcast_message x"),
        (P2P, "list_agents", "list_agents"),
        (BROADCASTING, "send_message 1 x", "send_message 1 x"),
        (KV, "receive_messages", "receive_messages"),
        (P2P, "read_file x", "read_file x"),
    ],
)
def test_an_unknown_error_goes_by_its_first_line(backend: str, block: str, name: str) -> None:
    assert calls(backend, fence(block)) == [{"call": name, "error": UNKNOWN}]


def test_a_tag_line_eats_a_command_and_an_unclosed_fence_holds_none() -> None:
    assert calls(P2P, "```wait\n```") == [{"call": "", "error": UNKNOWN}]
    assert calls(P2P, "```bash\nwait\n```") == [WAIT] == calls(P2P, "```wait```")
    assert calls(P2P, "```send_message 1 a\nwait\n```") == [WAIT]
    assert calls(P2P, "```\nwait\n```\n```\nsubmit_result [1]\n") == [WAIT]
    # Without the fence that should have closed the first block the next one does, with all that is between them.
    assert calls(P2P, "```\nsend_message 1 a\n\n```\nwait\n```\n") == [{**SENT, "content": "a"}]


def test_a_block_is_one_command() -> None:
    assert calls(P2P, fence("send_message 1 a\nwait\nsubmit_result [1]")) == [
        {**SENT, "content": "a\nwait\nsubmit_result [1]"}
    ]
    assert calls(P2P, fence("wait\nsubmit_result [1]")) == [WAIT]
    assert calls(P2P, fence("wait", "fly", "send_message 1 hello there")) == [
        WAIT, {"call": "fly", "error": UNKNOWN}, SENT,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", " ", "wait", "`wait`", "```", "```\nwait", "I wait.\n``\nwait\n``", "\x00"])
def test_a_text_without_blocks_is_an_error_that_says_what_to_do(text: str) -> None:
    parsed = FORMS[P2P].parse(text)
    assert parsed.action is None
    assert parsed.error == "there is no command; write each one in a fenced code block of its own"


def test_commands_beyond_the_limit_are_counted_and_not_kept() -> None:
    few = Commands((Verb("wait"),), limit=2)
    assert few.parse(fence("wait", "wait")).action == [WAIT, WAIT]
    assert few.parse(fence("wait", "fly", "wait", "", "wait")).action == [
        WAIT, {"call": "fly", "error": UNKNOWN}, {"call": "", "skipped": 3},
    ]  # fmt: skip
    many = calls(P2P, fence(*["wait"] * 10_000))
    assert len(many) == 1001 and many[-1] == {"call": "", "skipped": 9000}


# ----------------------------------------------------------------------- writing, limits, constraint

WORDS = st.text(st.characters(blacklist_categories=("Cs", "Z", "C")), min_size=1).filter(
    lambda word: not any(mark.isspace() or mark == "`" for mark in word)
)
# Neither blanks around it nor a fence in it: of such a text nothing is lost.
BODIES = st.text(min_size=1).filter(lambda text: text == text.strip() and "```" not in text + "\n")
# The value of a key loses line breaks at its end, nothing else.
VALUES = st.text(min_size=1).filter(lambda text: text == text.rstrip("\r\n") and "```" not in text)


@given(st.data())
def test_what_is_written_is_read_again(data: st.DataObject) -> None:
    form = FORMS[data.draw(st.sampled_from(BACKENDS))]
    verb = data.draw(st.sampled_from(form.verbs))
    call = {"call": verb.name}
    call |= {name: data.draw(WORDS) for name in verb.arguments}
    call |= {name: data.draw(st.one_of(st.just(""), WORDS)) for name in verb.optional}
    if verb.body is not None:
        call[verb.body] = data.draw(VALUES if verb.line else BODIES)
    assert form.parse(fence(written(call, form.verbs))).action == [call]


def test_how_commands_are_written() -> None:
    assert [usage(verb) for verb in FORMS[BROADCASTING].verbs] == [
        "receive_messages", "broadcast_message <content>", "list_agents", "wait", "submit_result <answer>",
    ]  # fmt: skip
    assert [usage(verb) for verb in FORMS[P2P].verbs] == [
        "receive_messages", "send_message <target_id> <content>", "wait", "submit_result <answer>",
    ]  # fmt: skip
    assert [usage(verb) for verb in FORMS[KV].verbs] == [
        "list_files [prefix]", "read_file <path>", "write_file <path>\n<content>", "delete_file <path>", "wait",
        "submit_result <answer>",
    ]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_allowed(backend: str) -> None:
    form = FORMS[backend]
    assert form.noop == [WAIT] and form.allows(form.noop) and form.allows([]) and form.options is None
    assert form.allows([WAIT] * form.limit) and not form.allows([WAIT] * (form.limit + 1))
    odd: list[Any] = [None, "wait", WAIT, ["wait"], [{"call": "fly"}], [{"call": "wait", "x": "1"}], [{}], [[]], [None]]
    for wrong in odd:
        assert not form.allows(wrong), wrong
    assert not form.allows([{"call": "submit_result"}]), "without its answer"


def test_an_optional_argument_may_be_left_out() -> None:
    assert FORMS[KV].allows([{"call": "list_files"}]) and not FORMS[KV].allows([{"call": "write_file", "path": "x"}])


@pytest.mark.parametrize("backend", BACKENDS)
@given(st.data())
def test_what_the_constraint_lets_through_is_read_without_an_error(backend: str, data: st.DataObject) -> None:
    regex: str = dict(FORMS[backend].constraint())["regex"]
    text = data.draw(st.from_regex(regex, fullmatch=True))
    result = calls(backend, text)
    assert 1 <= len(result) <= 100 and not any("error" in call or "skipped" in call for call in result), text
    assert FORMS[backend].allows(result)


def test_the_constraint_lets_every_command_through() -> None:
    pattern = {name: dict(form.constraint())["regex"] for name, form in FORMS.items()}
    for name, blocks in {
        BROADCASTING: ["receive_messages", "broadcast_message my list: [1]", "list_agents", "wait"],
        P2P: ["receive_messages", "send_message Agent-1 my list: [1]", "wait", "submit_result [1, 2]"],
        KV: ["list_files", "read_file a.txt", "write_file a.txt\n[1]", "delete_file a.txt", "submit_result [1, 2]"],
    }.items():
        for text in (fence(*blocks) + "\n", *(fence(block) + "\n" for block in blocks)):
            assert re.fullmatch(pattern[name], text), text
    for wrong in ("", "wait\n", fence("fly") + "\n", fence("send_message 1") + "\n", fence(*["wait"] * 101) + "\n"):
        assert not re.fullmatch(pattern[P2P], wrong), wrong
    one = dict(Commands((Verb("wait"),), limit=1).constraint())["regex"]
    assert re.fullmatch(one, fence("wait") + "\n") and not re.fullmatch(one, fence("wait", "wait") + "\n")


# ------------------------------------------------------------------------------------------ hostile


@pytest.mark.parametrize("backend", BACKENDS)
@given(st.one_of(st.text(), PIECES, st.lists(st.one_of(PIECES, st.text())).map(lambda blocks: fence(*blocks))))
def test_never_raises(backend: str, text: str) -> None:
    parsed = FORMS[backend].parse(text)
    assert (parsed.action is None) == (parsed.error is not None) == (not printed(text))
    for call in parsed.action or ():
        for value in call.values():
            assert isinstance(value, str | int)
            str(value).encode()  # no lone surrogates: whatever is kept can be written down


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "piece", ["`", "``x", "```", "```\n", "````\n", " ", "\n", "``` ", "```x", "```\nsend_message 1 x\n```\n", "\r"]
)
def test_a_long_text_of_anything_is_read(piece: str) -> None:
    """A reading that takes quadratic time would not come back."""
    text = piece * (200_000 // len(piece))
    blanks = " " * 200_000
    for form in FORMS.values():
        for reply in (text, fence(text), fence(f"send_message{text}"), fence(f"write_file 1{blanks}{text}")):
            parsed = form.parse(reply)
            assert (parsed.action is None) == (parsed.error is not None)
