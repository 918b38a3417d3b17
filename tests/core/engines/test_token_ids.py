"""Token ids of completions: kept whole in memory, once in the journal, and read back as they were."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness import storage
from harness.api import Completion, Engine, Move, Request, Thread
from harness.engines.cache import Cache
from harness.engines.mock import Mock
from harness.engines.replay import Replay
from harness.runtime.runner import BudgetReachedError
from harness.storage import JournalState, PromptIds, move_line, move_of
from harness.storage.finished_episodes import batches

ids = st.lists(st.integers(0, 3), max_size=8).map(tuple)
calls = st.builds(
    Completion,
    text=st.just("x"),
    prompt_token_ids=st.none() | ids,
    token_ids=st.none() | ids,
    logprobs=st.none() | st.lists(st.floats(-9, 0), max_size=3).map(tuple),
)
moves = st.builds(
    Move,
    agent=st.sampled_from(["Ada", "Bob"]),
    turn=st.just("t"),
    error_kind=st.sampled_from([None, storage.UNFINISHED]),
    calls=st.lists(calls, max_size=3).map(tuple),
)


@given(st.lists(moves, max_size=8))
def test_lines_read_in_their_order_give_the_moves_back(played: list[Move]) -> None:
    writes, reads = PromptIds(), PromptIds()
    lines = [json.loads(json.dumps(move_line("e", 0, 0, i, move, writes))) for i, move in enumerate(played)]
    assert [move_of(json.loads(json.dumps(line)), reads) for line in lines] == played
    for line, move in zip(lines, played, strict=True):
        for call, alone in zip(move.calls, move_of(line).calls, strict=True):
            assert alone.prompt_token_ids in (call.prompt_token_ids, None), "a line alone never gives other ids"
            assert (alone.token_ids, alone.logprobs) == (call.token_ids, call.logprobs)


@given(st.integers(-2, 9) | st.text(max_size=1) | st.none(), ids)
def test_a_line_that_follows_nothing_that_was_read_is_refused(shared: Any, new: tuple[int, ...]) -> None:
    line = {"k": "move", "e": "e", "s": "Ada", "t": "t", "calls": [{"text": "", "prompt_token_ids": [*new]}]}
    line["calls"][0]["prompt_ids_shared"] = shared  # type: ignore[index]
    if shared == 0 and type(shared) is int:
        assert move_of(line, PromptIds()).calls[0].prompt_token_ids == new
    else:
        with pytest.raises(ValueError, match="the call before has 0 ids"):
            move_of(line, PromptIds())


# ------------------------------------------------------------------------------------ runs

ROUNDS = 6
SPEC: dict[str, Any] = {
    "name": "ring",
    "task": {"use": "agentsnet/leader_election", "instances": 1, "source": "seeded", "size": 4},
    "protocol": {"use": "local_rounds", "rounds": ROUNDS, "channel": "neighbors", "parse_retries": 1},
    "prompts": "agentsnet/standard",
    "metrics": ["solved"],
}


class Numbered(Mock):
    """A model whose tokens are characters; its chats are append-only. It notes what it answered.

    Args:
        asked: whether it is asked for tokens.
    """

    def __init__(self, asked: bool = True) -> None:
        self.said: dict[str, Completion] = {}
        super().__init__(model="m", function=self.answer)
        self.return_token_ids = self.return_logprobs = asked

    def answer(self, request: Request) -> Completion:
        prompt = "".join(f"<{one['role']}>{one['content']}" for one in request.thread.messages) + "<assistant>"
        text = "what?" if request.seed % 3 == 0 else f"### Final Answer ###\n{'Yes' if request.seed % 2 else 'No'}"
        answer = Completion(text)
        if self.return_token_ids:
            reply = tuple(map(ord, text))
            scores = tuple(-1 / (1 + one) for one in reply)
            answer = Completion(text, prompt_token_ids=tuple(map(ord, prompt)), token_ids=reply, logprobs=scores)
        self.said[request.id] = answer
        return answer


def play(engine: Engine, folder: Path, **options: Any) -> harness.Run:
    return harness.evaluate(SPEC, engine, output_path=folder, **options)


def recorded(folder: Path) -> dict[str, Completion]:
    """Request → its completion, as the journal gives it back."""
    found: dict[str, Completion] = {}
    turns: dict[str, int] = {}
    for end, played in batches(*storage.journals(folder)):
        for move in (move for batch in played for move in batch):
            index = turns[move.agent] = turns.get(move.agent, -1) + 1
            found |= {f"{end['e']}/{move.agent}/{index}/{i}": call for i, call in enumerate(move.calls)}
    return found


def tokens(call: Completion) -> Any:
    return call.text, call.prompt_token_ids, call.token_ids, call.logprobs


def same(found: dict[str, Completion], said: dict[str, Completion]) -> bool:
    return {name: tokens(call) for name, call in found.items()} == {name: tokens(call) for name, call in said.items()}


def test_a_journal_gives_the_ids_back_and_holds_each_once(tmp_path: Path) -> None:
    engine = Numbered()
    play(engine, tmp_path / "run", log_requests=True)
    said = engine.said
    assert same(recorded(tmp_path / "run"), said) and any(name.endswith("/1") for name in said)
    written = whole = 0
    for _, line in storage.lines(tmp_path / "run" / "journal.jsonl"):
        for call in line.get("calls", ()) if line["k"] == "move" else ():
            written += len(call["prompt_token_ids"])
    longest: dict[str, int] = {}
    for name, call in said.items():
        agent, size = name.split("/")[-3], len(call.prompt_token_ids or ())
        whole, longest[agent] = whole + size, max(longest.get(agent, 0), size)
    assert written <= sum(longest.values()) < whole / 3, "as long as the conversations are at their end"
    again = Replay(path=str(tmp_path / "run"))
    play(again, tmp_path / "again")
    assert same(recorded(tmp_path / "again"), said)
    [log] = (tmp_path / "run").glob("requests*.jsonl")
    play(Replay(path=str(log)), tmp_path / "of_the_log")
    assert same(recorded(tmp_path / "of_the_log"), said)
    assert log.stat().st_size < 3 * (tmp_path / "run" / "journal.jsonl").stat().st_size
    for table in (*(tmp_path / "run").glob("*.csv"), tmp_path / "run" / "results.json"):
        assert "token_ids" not in table.read_text("utf-8")


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_with_whole_ids(tmp_path: Path) -> None:
    whole, engine = Numbered(), Numbered()
    play(whole, tmp_path / "whole")
    for calls in (7, 30):
        with pytest.raises(BudgetReachedError):
            play(engine, tmp_path / "cut", max_calls=calls)
        state = JournalState(tmp_path / "cut" / "journal.jsonl")
        [moves] = state.moves.values()
        for (agent, index), move in moves.items():
            for attempt, call in enumerate(move.calls):
                [name] = [one for one in engine.said if one.endswith(f"/{agent}/{index}/{attempt}")]
                assert tokens(call) == tokens(engine.said[name])
    play(engine, tmp_path / "cut")
    assert same(recorded(tmp_path / "cut"), whole.said) and same(engine.said, whole.said)


@pytest.mark.slow
def test_other_runs_and_caches_give_ids_to_those_that_ask(tmp_path: Path) -> None:
    first = Numbered()
    play(first, tmp_path / "first", use_cache=tmp_path / "cache.sqlite")
    for options in ({"reuse": tmp_path / "first"}, {"use_cache": tmp_path / "cache.sqlite"}):
        name, second, silent = next(iter(options)), Numbered(), Numbered(asked=False)
        play(second, tmp_path / f"with_{name}", **options)
        assert not second.said, "nothing is asked again"
        assert same(recorded(tmp_path / f"with_{name}"), first.said)
        without = play(silent, tmp_path / f"without_{name}", **options)
        assert not silent.said and len(recorded(without.folder)) == len(first.said)
        for call in recorded(without.folder).values():
            assert tokens(call)[1:] == (None, None, None), "it did not ask for them"


class Patchy(Numbered):
    """Some of its answers have no ids."""

    def answer(self, request: Request) -> Completion:
        answer = super().answer(request)
        if answer.text == "what?":
            answer = self.said[request.id] = Completion(answer.text)
        return answer


def test_a_turn_whose_first_call_has_no_ids_gives_back_those_of_the_next(tmp_path: Path) -> None:
    first, second = Patchy(), Patchy()
    play(first, tmp_path / "first")
    play(second, tmp_path / "second", reuse=tmp_path / "first")
    assert second.said and all(call.token_ids is None for call in second.said.values()), "only these are asked again"
    assert same(recorded(tmp_path / "second"), first.said)


def test_an_answer_without_ids_does_not_stand_for_one_with_them(tmp_path: Path) -> None:
    async def work() -> list[tuple[Completion, int]]:
        answers = []
        for asked in (False, True, True):
            cache = Cache(Numbered(asked), tmp_path / "cache.sqlite")
            await cache.start()
            thread = Thread()
            thread.add("user", "Hello")
            answers.append((await cache.complete(Request("e/a/0/0", thread, {}, 3)), cache.misses))
            await cache.close()
        return answers

    bare, whole, kept = asyncio.run(work())
    assert (bare[0].token_ids, bare[1]) == (None, 1)
    assert whole[0].token_ids and whole[1] == 1, "it is asked again"
    assert tokens(kept[0]) == tokens(whole[0]) and kept[1] == 0


def test_calls_are_known_by_the_weights(tmp_path: Path) -> None:
    async def work() -> list[int]:
        engine = Numbered()
        cache = Cache(engine, tmp_path / "cache.sqlite")
        await cache.start()
        misses = []
        for weights in (None, None, "step 1", "step 1", "step 2", None):
            engine.weights = weights
            thread = Thread()
            thread.add("user", "Hello")
            await cache.complete(Request("e/a/0/0", thread, {}, 3))
            misses.append(cache.misses)
        await cache.close()
        return misses

    assert asyncio.run(work()) == [1, 1, 2, 2, 3, 3]


def test_a_run_says_which_weights_it_played_with(tmp_path: Path) -> None:
    engine = Numbered()
    play(engine, tmp_path / "before")
    engine.weights = "step 1"
    play(engine, tmp_path / "after", reuse=tmp_path / "before")
    before, after = (json.loads((tmp_path / name / "run.json").read_text("utf-8")) for name in ("before", "after"))
    assert after["identity"] != before["identity"] and "step 1" in json.dumps(after["identity"])
    digests = [{call.request_digest for call in recorded(tmp_path / name).values()} for name in ("before", "after")]
    assert digests[0].isdisjoint(digests[1])
    assert all(call.reused_from is None for call in recorded(tmp_path / "after").values())
