"""Turns that are scored instead of answered, and prompts that a model continues: through runs of the toy project."""

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, ContinuesText, Engine, Request, Thread, Turn
from harness.api.errors import PromptError, RequestError, SpecError
from harness.checks.consistency import check_plan
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import parse
from harness.engines.likelihoods import Continuation, LikelihoodRequest, Likelihoods, likelihoods_of
from harness.engines.mock import Mock
from harness.engines.replay import Replay
from harness.extensions.replay.what_if import _some_legal_reply
from harness.extensions.stress.stand_in import StandIn
from harness.extensions.stress.styles import STYLES
from harness.extensions.yaml_tasks import conformance
from harness.replies import WrappedReply
from harness.runtime.players import ModelPlayer
from harness.runtime.policy_players import PolicyPlayer
from harness.runtime.runner import RunStoppedError
from tests.helpers.mock_scores import mock_scores
from tests.helpers.toy import TOY, results

TEXTS = (Continuation(" a"), Continuation(" b"))
FORM = Likelihoods(TEXTS)


def spec(prompts: str = "toy/base", **task: Any) -> dict[str, Any]:
    return {
        "name": "weigh",
        "task": {"use": "weigh", **task},
        "protocol": {"use": "rounds", "rounds": 2},
        "prompts": prompts,
        "metrics": ["agreed"],
        "tables": [{"title": "Agreed", "rows": "model", "columns": "number", "metrics": "agreed"}],
    }


def run(folder: Path, model: Any, what: dict[str, Any] | None = None, **more: Any) -> harness.Run:
    return harness.evaluate(what or spec(), model, output_path=folder, project=TOY, **more)


def moves(folder: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    return [line for line in lines if line["k"] == "move"]


def numbers(folder: Path) -> dict[tuple[str, str, int], Any]:
    return {(move["e"], move["s"], move["i"]): move["a"] for move in moves(folder)}


def test_a_form_takes_one_pair_for_each_text_and_no_written_text() -> None:
    assert FORM.allows([[-1.5, True], [-math.inf, False]])
    for wrong in (None, "ab", [[-1.5, True]], [[-1.5, 1], [-2, False]], [[math.nan, True], [-1, True]], [[-1], [-2]]):
        assert not FORM.allows(wrong)
    assert FORM.parse("[[-1.5, true], [-2.0, false]]").error
    assert (FORM.options, FORM.noop, FORM.constraint()) == (None, None, None)
    assert likelihoods_of(WrappedReply(WrappedReply(FORM))) is FORM
    assert likelihoods_of(TOY.load("tasks", "pick")().reply(TOY.load("tasks", "pick")().example(), "S0")) is None


@pytest.mark.parametrize("writes", [lambda request: "a text", StandIn(STYLES), _some_legal_reply])
def test_a_stand_in_that_only_writes_replies_has_its_texts_scored(tmp_path: Path, writes: Any) -> None:
    run(tmp_path / "a", Mock(function=writes), limit=1)
    run(tmp_path / "b", Mock(), limit=1)
    assert numbers(tmp_path / "a") == numbers(tmp_path / "b") and None not in numbers(tmp_path / "b").values()


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_scored_turn_is_one_request_whose_numbers_are_the_action(tmp_path: Path, wrapped: bool) -> None:
    seen: list[LikelihoodRequest] = []

    def score(request: LikelihoodRequest) -> list[list[float | bool]]:
        seen.append(request)
        return [[-1.25, False], [-0.5, True]]

    done = run(tmp_path, Mock(function=mock_scores(score)), spec(wrapped=wrapped))
    assert [score.numbers["agreed"] for score in done.scores] == [1.0] * 4
    assert {request.continuations for request in seen} == {TEXTS} and len({r.id for r in seen}) == 16
    journaled = moves(tmp_path)
    assert all(move["a"] == [[-1.25, False], [-0.5, True]] and len(move["calls"]) == 1 for move in journaled)
    assert all(move["calls"][0]["text"] == "" and move["calls"][0]["input_tokens"] > 0 for move in journaled)
    transcript = next(iter(done.transcripts()))
    # The model's message in the conversation is the likeliest text.
    assert transcript.turns[2].prompt[0] == (
        "user",
        "Round 1. S0 said [[-1.25, False], [-0.5, True]]. S1 said [[-1.25, False], [-0.5, True]]. Say one letter.",
    )


def test_the_thread_continues_with_the_likeliest_text() -> None:
    who = ModelPlayer(
        Mock(function=mock_scores(lambda r: [[-2, False], [-1, False]])), TOY.prompts("toy/base"), {}, False, "e/S0", 1
    )
    turn = Turn("S0", "say", {"round": 0, "heard": {}}, FORM, {"name": "S0"}, parse_retries=3)
    move = asyncio.run(who.act(turn))
    again = ModelPlayer(Mock(), TOY.prompts("toy/base"), {}, False, "e/S0", 1)
    again.recall(turn, move)
    assert who.thread.messages[-1] == {"role": "assistant", "content": " b"}
    assert again.thread.messages == who.thread.messages


@pytest.mark.parametrize(
    ("engine", "given"),
    [
        (Mock(function=lambda request: Completion("")), "none"),
        (Mock(function=mock_scores(lambda request: [[-1, False]])), "[[-1, False]]"),
    ],
)
def test_a_scored_turn_without_its_numbers_is_not_asked_again(engine: Mock, given: str) -> None:
    who = ModelPlayer(engine, TOY.prompts("toy/base"), {}, False, "e/S0", 1)
    move = asyncio.run(who.act(Turn("S0", "say", {"round": 0, "heard": {}}, FORM, {"name": "S0"}, parse_retries=3)))
    assert (move.action, move.error_kind, len(move.calls), move.dropped_fields) == (None, "parse", 1, ())
    assert move.error == f"log-likelihoods of 2 texts were asked for; the engine gives {given}"
    assert who.thread.messages[-1]["role"] == "assistant"


def test_a_stopped_run_goes_on_where_it_was_and_a_replay_gives_the_same(tmp_path: Path) -> None:
    whole, parts, again = (tmp_path / name / "run" for name in ("whole", "parts", "again"))
    run(whole, Mock(), max_concurrency=1)
    for calls in (5, 11):
        with pytest.raises(RunStoppedError):
            run(parts, Mock(), max_concurrency=1, max_calls=calls)
    run(parts, Mock(), max_concurrency=1)
    assert len(moves(parts)) == len(moves(whole)) == 16
    assert results(parts) == results(whole)
    run(again, Replay(path=str(whole)))
    assert results(again) == results(whole)
    assert numbers(again) == numbers(whole) == numbers(parts)


def test_the_cache_asks_the_same_texts_once_and_the_log_shows_them(tmp_path: Path) -> None:
    asked: list[str] = []

    def score(request: LikelihoodRequest) -> list[list[float | bool]]:
        asked.append(request.id)
        return [[-1, False], [-2, False]]

    options: dict[str, Any] = {"use_cache": tmp_path / "cache.sqlite", "log_requests": True}
    run(tmp_path / "a", Mock(function=mock_scores(score)), **options)
    first = len(asked)
    # Both agents of a case are asked by their own name in the first round, but for the number, which no prompt shows.
    assert 0 < first < 16
    run(tmp_path / "b", Mock(function=mock_scores(score)), use_cache=tmp_path / "cache.sqlite")
    assert len(asked) == first
    assert numbers(tmp_path / "a") == numbers(tmp_path / "b")
    line = json.loads((tmp_path / "a" / "requests.jsonl").read_text().splitlines()[0])
    assert line["continuations"] == [{"text": " a", "context": None}, {"text": " b", "context": None}]
    assert line["completion"]["likelihoods"] == [[-1, False], [-2, False]]


def test_limits_and_failures_are_moves_without_numbers(tmp_path: Path) -> None:
    def fail(request: LikelihoodRequest) -> list[list[float | bool]]:
        raise RequestError("no")

    run(tmp_path / "a", Mock(function=mock_scores(fail)), max_error_rate=1)
    assert {move["error_kind"] for move in moves(tmp_path / "a")} == {"request"}
    run(tmp_path / "b", Mock(function=mock_scores(lambda request: [[-1, False]])))
    assert {move["error_kind"] for move in moves(tmp_path / "b")} == {"parse"}
    assert "2 texts" in moves(tmp_path / "b")[0]["error"]
    run(tmp_path / "c", Mock(), {**spec(), "limits": {"calls_per_agent": 1}})
    kinds = [move.get("error_kind") for move in moves(tmp_path / "c")]
    assert (kinds.count("limit"), kinds.count(None)) == (8, 8)


def test_the_random_policy_draws_log_probabilities() -> None:
    who = PolicyPlayer(builtin().load("policies", "random"), 7)
    drawn = [who.decide(Turn("S0", "say", {}, WrappedReply(FORM))).action for _ in range(50)]
    assert len({value for pair in drawn for value, _ in pair}) == 100
    assert all(value <= 0 and not greedy for pair in drawn for value, greedy in pair)
    # A text that stands for itself: as if every byte were equally likely.
    assert who.decide(Turn("S0", "say", {}, Likelihoods(TEXTS, rolling=True))).action[0] == [-2 * math.log(256), False]


class Mute(Engine):
    """An engine that only answers."""

    model = "mute"

    async def complete(self, request: Request) -> Completion:
        return Completion("a")


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (spec(), "computes no log-likelihoods"),
        (spec(wrapped=True), "computes no log-likelihoods"),
        (spec("toy/text", written=True), "continues no text"),
        (spec("toy/opened", written=True), "continues no text"),
    ],
)
def test_an_engine_without_the_ability_is_refused_before_the_run(
    tmp_path: Path, what: dict[str, Any], words: str
) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        run(tmp_path / "run", Mute(), what)
    assert "mock" in (caught.value.hint or "")
    assert not (tmp_path / "run").exists()


def test_a_text_set_has_no_chat_template_and_a_case_brings_its_sampling(tmp_path: Path) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return " x"

    run(tmp_path, Mock(function=answer), {**spec("toy/text", written=True), "generation_kwargs": {"max_tokens": 9}})
    assert {request.thread.chat for request in seen} == {False}
    assert seen[0].thread.text.startswith("You are S0.Round 0. Say one letter.")
    # The spec's words win over the case's, whatever they are called there.
    assert all(request.sampling == {"max_tokens": 9, "stop": ["\n"]} for request in seen)
    seen.clear()
    run(tmp_path / "own", Mock(function=answer), spec("toy/text", written=True))
    assert sorted({request.sampling["max_tokens"] for request in seen}) == [1, 2, 3, 4]


def test_a_conversation_opens_with_a_history_and_a_reply_with_its_beginning() -> None:
    seen: list[tuple[list[dict[str, str]], str]] = []

    def answer(request: Request) -> str:
        seen.append((list(request.thread.messages), request.prefill))
        return " b"

    task = TOY.load("tasks", "weigh")(written=True)
    case = task.example()
    turns = [
        Turn("S0", "say", {"round": i, "heard": {}}, task.reply(case, "S0"), task.context(case, "S0")) for i in (0, 1)
    ]
    who = ModelPlayer(Mock(function=answer), TOY.prompts("toy/opened"), {}, False, "e/S0", 1)
    done = [asyncio.run(who.act(turn)) for turn in turns]
    assert [message["content"] for message in seen[0][0]] == ["Be brief.", "Q", "A", "Round 0. Say one letter."]
    assert {prefill for _, prefill in seen} == {"It is"} and done[0].action == "b"
    assert seen[1][0][4] == {"role": "assistant", "content": "It is b"}
    again = ModelPlayer(Mock(), TOY.prompts("toy/opened"), {}, False, "e/S0", 1)
    for turn, move in zip(turns, done, strict=True):
        again.recall(turn, move)
    assert again.thread.messages == who.thread.messages


def test_a_transcript_shows_the_whole_opening_and_how_each_reply_began(tmp_path: Path) -> None:
    done = run(tmp_path, Mock(text=" b"), spec("toy/opened", written=True))
    first, *_, last = next(iter(done.transcripts())).turns
    opening = [("system", "Be brief."), ("user", "Q"), ("assistant", "A"), ("user", "Round 0. Say one letter.")]
    assert first.prompt == (*opening, ("assistant", "It is"))
    asked = ("user", "Round 1. S0 said b. S1 said b. Say one letter.")
    assert last.prompt == (asked, ("assistant", "It is")) and last.retries == ()


def test_a_text_that_cannot_be_is_a_number_that_a_resumed_run_keeps(tmp_path: Path) -> None:
    def score(request: LikelihoodRequest) -> list[list[float | bool]]:
        return [[-math.inf, False], [-2.5, True]]

    with pytest.raises(RunStoppedError):
        run(tmp_path / "a", Mock(function=mock_scores(score)), max_calls=7, max_concurrency=1)
    done = run(tmp_path / "a", Mock(function=mock_scores(score)))
    assert set(map(str, numbers(tmp_path / "a").values())) == {"[[-inf, False], [-2.5, True]]"}
    assert [one.numbers["agreed"] for one in done.scores] == [1.0] * 4
    assert len(list(done.turns())) == 16


def test_the_contract_checks_take_scored_tasks() -> None:
    task, protocol = TOY.load("tasks", "weigh")(), TOY.load("protocols", "rounds")(rounds=2)
    assert conformance.check_task(task) == [] == conformance.check_reply(FORM)
    assert conformance.check_protocol(protocol, task) == []
    assert conformance.check_policy(builtin().load("policies", "random"), protocol, task) == []


def test_facts_that_a_set_takes_must_be_there_and_of_their_kind() -> None:
    prompts = TOY.prompts("toy/opened")
    with pytest.raises(PromptError, match="'history', which is not there"):
        prompts.opening({"name": "S0"})
    with pytest.raises(PromptError, match="no list of messages"):
        prompts.opening({"history": [{"role": "user"}]})
    with pytest.raises(PromptError, match="no text"):
        prompts.beginning({"beginning": 3})
    assert prompts.beginning({"beginning": None}) == ""
    assert prompts.digest != TOY.prompts("toy/base").digest
    assert TOY.prompts("toy/text").chat is False and isinstance(Mock(), ContinuesText) and Thread().chat


def test_a_plan_counts_scored_turns_without_replies_and_retries() -> None:
    from harness.checks.estimate import Estimate, estimate

    def counted(**task: Any) -> Estimate:
        loaded = parse({**spec(**task), "generation_kwargs": {"max_tokens": 10}}, TOY)
        return estimate(resolve.plan(loaded, TOY, Mock()))

    scored, rolling, written = counted(), counted(rolling=True), counted(written=True)
    assert (scored.turns, scored.calls, scored.output_tokens) == (16, 16, 0)
    assert (written.turns, written.calls, written.output_tokens) == (16, 32, 160)
    assert scored.input_tokens > rolling.input_tokens  # whose texts have no context


def test_validate_finds_facts_that_a_prompt_set_takes_and_a_task_lacks() -> None:
    loaded = parse({**spec("toy/opened"), "task": "pick"}, TOY)
    problems = [str(problem) for problem in check_plan(resolve.plan(loaded, TOY, Mock()))]
    assert len(problems) == 2 and all("which is not there" in problem for problem in problems)
    assert not check_plan(resolve.plan(parse(spec("toy/opened", written=True), TOY), TOY, Mock()))
