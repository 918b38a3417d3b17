"""Agents: retries, failures as data, and conversations rebuilt from recorded moves."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion, Move, Policy, Request, Turn
from harness.api.errors import ContextLengthError, EngineFatalError, RequestError
from harness.config import project
from harness.config.limits import TurnQuota
from harness.engines.mock import Mock
from harness.extensions.networks.messages import Messages
from harness.replies import Choice
from harness.replies.parse_guard import read_completion
from harness.runtime.episode import play
from harness.runtime.players import ModelPlayer
from harness.runtime.policy_players import PolicyPlayer
from harness.runtime.steps import Steps
from tests.helpers.toy import TOY

BUILTIN = project.builtin()
PROMPTS = BUILTIN.root / "prompts"
TASK = TOY.load("tasks", "pick")()
CASE = TASK.example()


def player(answer: Callable[[Request], str | Completion], structured_output: bool = False) -> ModelPlayer:
    return ModelPlayer(Mock(function=answer), TOY.prompts("toy/base"), {"temperature": 1}, structured_output, "e/S0", 7)


def turn(i: int = 0, parse_retries: int = 1, fresh: bool = False) -> Turn:
    observation = {"round": i, "heard": {}}
    return Turn("S0", "say", observation, TASK.reply(CASE, "S0"), TASK.context(CASE, "S0"), parse_retries, fresh)


def act(who: ModelPlayer, what: Turn) -> Move:
    return asyncio.run(who.act(what))


def test_a_readable_reply_needs_one_call() -> None:
    who = player(lambda request: " a ")
    move = act(who, turn())
    assert (move.action, move.error, len(move.calls)) == ("a", None, 1)
    assert who.thread.messages == [
        {"role": "system", "content": "You are S0."},
        {"role": "user", "content": "Round 0. Say one letter."},
        {"role": "assistant", "content": " a "},
    ]


def test_an_unreadable_reply_is_asked_for_again_and_says_why() -> None:
    seen: list[str] = []

    def answer(request: Request) -> str:
        seen.append(request.thread.messages[-1]["content"])
        return "?" if len(seen) == 1 else "b"

    move = act(player(answer), turn())
    assert (move.action, [c.text for c in move.calls]) == ("b", ["?", "b"])
    assert seen[1] == "Again: say one of a, b."


RETRIES = sorted(path.parent.relative_to(path.parents[2]).as_posix() for path in PROMPTS.glob("*/*/retry.j2"))


@pytest.mark.parametrize("name", RETRIES)
def test_every_retry_says_that_a_reply_was_cut_off(name: str) -> None:
    """All but MAS-Bench's, whose words the paper prints."""
    variables = {"options": (), "instruction": "", "reminded": False, "criteria": ("depth",), "low": 1, "high": 10}
    written = [Completion("?", finish_reason="length", output_tokens=n) for n in (1, 2048, None)] + [Completion("?")]
    shown = []
    for completion in written:
        error = read_completion(Choice(("a", "b")), completion).error
        shown.append(BUILTIN.prompts(name).render("retry", {**variables, "error": error}))
    if name == "mas/short":
        assert all(text.startswith("No commands detected in last reply.") for text in shown)
        return
    for text, tokens in zip(shown, (" after 1 token", " after 2,048 tokens", ""), strict=False):
        assert f"t was cut off{tokens}: answer more briefly; no valid answer" in text
    assert "cut off" not in shown[-1]


def test_what_was_cut_off_is_recorded_and_recalled_as_it_was_asked() -> None:
    cut = Completion("?", finish_reason="length", output_tokens=60)
    who, again = player(lambda request: cut), player(lambda request: cut)
    move = act(who, turn())
    assert move.error == "it was cut off after 60 tokens: answer more briefly; say one of a, b"
    again.recall(turn(), move)
    assert again.thread.messages == who.thread.messages
    assert act(player(lambda request: replace(cut, text="a")), turn()).error is None, "what is whole needs no retry"


@pytest.mark.parametrize("parse_retries", [0, 1, 3])
def test_parse_retries_end(parse_retries: int) -> None:
    move = act(player(lambda request: "?"), turn(parse_retries=parse_retries))
    assert (move.action, move.error_kind, len(move.calls)) == (None, "parse", parse_retries + 1)


@pytest.mark.parametrize("error", [ContextLengthError("too long"), RequestError("no")])
def test_a_failed_request_is_a_move_with_an_error(error: Exception) -> None:
    def answer(request: Request) -> str:
        raise error

    who = player(answer)
    move = act(who, turn())
    assert (move.action, move.error, move.error_kind) == (None, str(error), error.kind)  # type: ignore[attr-defined]
    assert who.thread.messages[-1] == {"role": "assistant", "content": ""}  # roles stay in turn


def test_a_fatal_error_is_not_swallowed() -> None:
    def answer(request: Request) -> str:
        raise EngineFatalError("gone")

    with pytest.raises(EngineFatalError):
        act(player(answer), turn())


def test_requests_are_named_and_seeded_by_turn_and_attempt() -> None:
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return "?"

    for _ in range(2):
        who = player(answer, structured_output=True)
        act(who, turn(0))
        act(who, turn(1))
    ids = [request.id for request in seen]
    assert ids == 2 * ["e/S0/0/0", "e/S0/0/1", "e/S0/1/0", "e/S0/1/1"]
    seeds = [request.seed for request in seen]
    assert seeds[:4] == seeds[4:] and len(set(seeds)) == 4
    assert seen[0].constraint == {"choice": ["a", "b"]}
    assert player(answer).structured_output is False


def test_reasoning_never_enters_the_conversation() -> None:
    who = player(lambda request: Completion("a", reasoning="secret thoughts"))
    assert act(who, turn()).calls[0].reasoning == "secret thoughts"
    assert "secret" not in str(who.thread.messages)


def test_a_fresh_turn_opens_a_new_thread() -> None:
    who = player(lambda request: "a")
    act(who, turn(0))
    act(who, turn(1, fresh=True))
    assert [m["role"] for m in who.thread.messages] == ["system", "user", "assistant"]


replies = st.lists(st.sampled_from(["a", "b", "?", "fail"]), min_size=12, max_size=12)


@given(replies, st.integers(0, 2), st.integers(0, 3))
def test_recalling_rebuilds_the_same_conversation(script: list[str], parse_retries: int, known: int) -> None:
    def scripted() -> Callable[[Request], str]:
        left = iter(script)

        def answer(request: Request) -> str:
            text = next(left)
            if text == "fail":
                raise RequestError("no")
            return text

        return answer

    first = player(scripted())
    moves = [act(first, turn(i, parse_retries)) for i in range(4)]
    second = player(scripted())
    for i in range(known):
        second.recall(turn(i, parse_retries), moves[i])
    skipped = sum(len(m.calls) + (m.error_kind == "request") for m in moves[:known])
    rest = iter(script[skipped:])

    def answer(request: Request) -> str:
        text = next(rest)
        if text == "fail":
            raise RequestError("no")
        return text

    second.engine = Mock(function=answer)
    assert [act(second, turn(i, parse_retries)) for i in range(known, 4)] == moves[known:]
    assert second.thread.messages == first.thread.messages


@pytest.mark.parametrize("known", [1, 2])
def test_answers_from_before_a_stop_are_not_asked_for_again(known: int) -> None:
    texts = ["?", "??", "a"]
    shown: list[Move] = []
    whole = player(lambda request: texts[int(request.id.split("/")[-1])])
    asyncio.run(whole.act(turn(parse_retries=2), on_move=shown.append))
    assert [(move.error_kind, len(move.calls)) for move in shown] == [("unfinished", 1), ("unfinished", 2), (None, 3)]
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(request.id)
        return "a"

    again, later = player(answer), list[Move]()
    asyncio.run(again.act(turn(parse_retries=2), None, shown[-1].calls[:known], later.append))
    assert asked == [f"e/S0/0/{known}"] and again.turns == 1
    assert [len(move.calls) for move in later] == [known + 1], "what stands in the journal is not written again"
    assert again.thread.messages[: 2 * known + 1] == whole.thread.messages[: 2 * known + 1]


@pytest.mark.parametrize(
    ("calls", "error", "roles"),
    [
        (0, "most is reached", ["system", "user", "assistant"]),
        (1, "say one of a, b; not asked again: most is reached", ["system", "user", "assistant"]),
        (2, "say one of a, b; not asked again: most is reached", ["system", "user", "assistant", "user", "assistant"]),
        (3, "say one of a, b", ["system", "user", "assistant", "user", "assistant", "user", "assistant"]),
    ],
)
def test_a_limit_says_what_was_wrong_before_it(calls: int, error: str, roles: list[str]) -> None:
    who = player(lambda request: "?")
    move = asyncio.run(who.act(turn(parse_retries=2), TurnQuota(calls, "most", {})))
    assert (len(move.calls), move.action, move.error) == (calls, None, error)
    assert move.error_kind == ("limit" if calls < 3 else "parse")
    assert [message["role"] for message in who.thread.messages] == roles
    again = player(lambda request: "b")
    again.recall(turn(parse_retries=2), move)
    assert again.thread.messages == who.thread.messages


class Counting(Mock):
    """A model whose tokens are words; it knows no `?`."""

    def count_tokens(self, text: str) -> int | None:  # type: ignore[override]
        return None if "?" in text else len(text.split())


@pytest.mark.parametrize(
    ("texts", "tokens"), [(("two words", "three of them"), 5), (("", "one"), 1), (("one", "?"), None)]
)
def test_tokens_of_what_others_wrote_are_counted_once_a_turn(texts: tuple[str, ...], tokens: int | None) -> None:
    who = player(lambda request: "?")
    who.engine = Counting(text="?")
    move = act(who, replace(turn(parse_retries=2), peer_texts=texts))
    assert [call.peer_tokens for call in move.calls] == [tokens, None, None]
    who.engine = Counting(function=lambda request: Completion("a", peer_tokens=9))
    assert act(who, replace(turn(), peer_texts=texts)).calls[0].peer_tokens == 9, "the engine counted"
    assert act(player(lambda request: "a"), turn()).calls[0].peer_tokens is None


def test_an_exit_in_an_engine_ends_one_episode_and_no_more() -> None:
    def answer(request: Request) -> str:
        raise SystemExit("enough")

    with pytest.raises(RuntimeError, match="SystemExit: enough"):
        act(player(answer), turn())


def test_what_was_asked_ends_before_the_first_reply() -> None:
    who = player(lambda request: "?")
    act(who, turn(parse_retries=2))
    assert who.asked == 2 and len(who.thread.messages) == 2 + 1 + 2 * 2


class Counts(Policy):
    """Says `b` from its second turn on."""

    def __init__(self) -> None:
        self.turns = 0

    def choose(self, turn: Turn, rng: random.Random) -> str:
        self.turns += 1
        return "ab"[self.turns > 1]


@pytest.mark.parametrize(
    ("fresh", "context", "second"),
    [(False, {"x": 1}, "b"), (True, {"x": 1}, "b"), (False, {"x": 2}, "b"), (True, {"x": 2}, "a")],
)
def test_a_policy_forgets_where_another_run_starts(fresh: bool, context: dict[str, int], second: str) -> None:
    who = PolicyPlayer(Counts, 1)
    first = replace(turn(fresh=True), context={"x": 1})
    assert who.decide(first).action == "a"
    assert who.decide(replace(first, fresh=fresh, context=context)).action == second


def test_a_policy_may_do_nothing_where_the_form_has_a_word_for_it() -> None:
    form = Messages(("B",))
    assert PolicyPlayer(lambda: Says(form.noop), 1).decide(Turn("A", "talk", {}, form, {})).action == form.noop


class Says(Policy):
    """Says what it is given."""

    def __init__(self, action: Any) -> None:
        self.action = action

    def choose(self, turn: Turn, rng: random.Random) -> Any:
        return self.action


def test_an_illegal_policy_is_a_bug_with_a_name() -> None:
    who = PolicyPlayer(TOY.load("policies", "illegal"), 1)
    with pytest.raises(ValueError, match="Illegal chose 'z', which is none of"):
        who.decide(turn())
    with pytest.raises(ValueError, match="Illegal chose 'z', which turn 'talk' does not allow"):
        who.decide(Turn("A", "talk", {}, Messages(("B",)), {}))


def test_a_policy_repeats_itself_for_its_seed() -> None:
    coin = TOY.load("policies", "coin")
    runs = []
    for _ in range(2):
        who = PolicyPlayer(coin, 5)
        runs.append([who.decide(turn(i)).action for i in range(20)])
    assert runs[0] == runs[1] and len(set(runs[0])) == 2


def test_play_is_a_barrier_and_records_each_move_once() -> None:
    order: list[str] = []

    async def answer(request: Request) -> str:
        order.append(request.id)
        if "S0" in request.id:
            await asyncio.sleep(0)  # S0 answers last, and nobody is asked for the next round before
        return "a"

    prompts = TOY.prompts("toy/base")
    players = {s: ModelPlayer(Mock(function=answer), prompts, {}, False, f"e/{s}", 1) for s in CASE.agents}
    recorded: list[tuple[int, int, str]] = []
    protocol = TOY.load("protocols", "rounds")(rounds=2)
    outcome = asyncio.run(
        play(
            Steps(protocol, TASK, CASE, random.Random(0)),
            players,
            {},
            lambda b, p, i, m: recorded.append((b, i, m.agent)),
        )
    )
    assert outcome.answers == {"S0": "a", "S1": "a", "S2": "a"}
    assert [name.split("/")[2] for name in order] == ["0", "0", "0", "1", "1", "1"]
    assert sorted(recorded) == [(b, b, s) for b in (0, 1) for s in CASE.agents]
