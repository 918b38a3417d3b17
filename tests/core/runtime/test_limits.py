"""What a spec allows an episode and an agent: kept exactly, recorded as limits, whatever answer comes first."""

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness import storage
from harness.api import Completion, InnerUsage, Move, Request, Turn
from harness.api.errors import DataError, EngineFatalError, SpecError
from harness.checks.estimate import estimate
from harness.config import project, resolve, spec
from harness.config.limits import EpisodeLimits, Meter, TurnQuota
from harness.engines.mock import Mock
from harness.engines.usage import MAX_BUDGET
from harness.evaluation.rescore import rescored
from harness.runtime.players import LIMITED, ModelPlayer
from harness.runtime.runner import BudgetReachedError, RunStoppedError
from harness.storage import UNFINISHED
from tests.helpers.journals import as_killed
from tests.helpers.toy import TOY, results

BUILTIN = project.builtin()
Dice = TOY.load("engines", "dice")
TASK = TOY.load("tasks", "pick")()
CASE = TASK.example()


def run(
    folder: Path, limits: dict[str, Any], model: Any = None, overrides: tuple[str, ...] = (), **more: Any
) -> harness.Run:
    """The toy run: two or three agents, three rounds, one retry; every call of the dice takes 11 tokens."""
    written = f"limits={json.dumps(limits)}"
    return harness.evaluate("toy", model, overrides=(written, *overrides), output_path=folder, project=TOY, **more)


def taken(folder: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Episode → agent → its move lines, in the order of its turns."""
    mapping: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for _, line in storage.lines(folder / "journal.jsonl"):
        if line["k"] == "move":
            mapping.setdefault(line["e"], {}).setdefault(line["s"], []).append(line)
    return {e: {s: sorted(moves, key=lambda m: m["i"]) for s, moves in agents.items()} for e, agents in mapping.items()}


def calls(lines: list[dict[str, Any]]) -> int:
    return sum(len(line.get("calls", ())) for line in lines)


# ------------------------------------------------------------------------------------------ dealing


def turn(agent: str = "S0", parse_retries: int = 1, i: int = 0) -> Turn:
    observation = {"round": i, "heard": {}}
    return Turn(agent, "say", observation, TASK.reply(CASE, agent), TASK.context(CASE, agent), parse_retries)


def one_by_one(wanted: list[int], left: int) -> list[int]:
    """Dealing as one would do it with cards."""
    dealt = [0] * len(wanted)
    for level in range(max(wanted, default=0)):
        for i, want in enumerate(wanted):
            if level < want and left:
                dealt[i], left = dealt[i] + 1, left - 1
    return dealt


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(1, 40), st.none() | st.integers(1, 9))
def test_calls_are_dealt_like_cards(parse_retries: list[int], left: int, own: int | None) -> None:
    requests = [turn(f"S{i}", repair) for i, repair in enumerate(parse_retries)]
    dealt = Meter(EpisodeLimits(calls_per_episode=left, calls_per_agent=own)).allocate(requests).values()
    items = [min(1 + repair, own or MAX_BUDGET) for repair in parse_retries]
    assert [quota.calls for quota in dealt] == one_by_one(items, left)
    short = [quota.calls < want for quota, want in zip(dealt, items, strict=True)]
    assert [quota.by for quota in dealt] == ["calls_per_episode" if s else "calls_per_agent" for s in short]


def test_enormous_numbers_are_dealt_at_once() -> None:
    dealt = Meter(EpisodeLimits(calls_per_episode=10**15)).allocate([turn("S0", 10**15), turn("S1", 10**15)]).values()
    assert [quota.calls for quota in dealt] == [10**15 // 2] * 2


def test_no_limits_are_no_limits() -> None:
    plan = resolve.plan(spec.load("toy", TOY, ["limits={}"]), TOY, Mock())
    assert all(condition.limits is None for condition in plan.conditions)
    assert TurnQuota(2, "calls_per_agent", {}).reached([Completion("a")]) is None


def test_tokens_of_inner_calls_count_where_no_reply_came() -> None:
    meter, used = Meter(EpisodeLimits(tokens_per_agent=20)), InnerUsage(calls=1, input_tokens=10, output_tokens=2)
    for left in (20, 8, -4):
        assert meter.allocate([turn("S0")])["S0"].tokens == {"tokens_per_agent": left}
        meter.take([Move("S0", "say", None, "it fell over", "request", inner_calls=used)])


# ------------------------------------------------------------------------------------------ episodes


def test_an_agent_that_has_had_its_calls_is_asked_no_more(tmp_path: Path) -> None:
    done = run(tmp_path / "r", {"calls_per_agent": 2}, Mock(text="a"))
    for agents in taken(tmp_path / "r").values():
        for lines in agents.values():
            assert [line.get("a") for line in lines] == ["a", "a", None]
            assert lines[2]["error_kind"] == "limit" and lines[2]["error"] == "calls_per_agent is reached"
            assert calls(lines) == 2
    assert not done.failed and all(score.limited and score.numbers["agreed"] == 0 for score in done.scores)
    assert "In 8 of 8 episodes a limit of the spec was reached" in (tmp_path / "r" / "tables.md").read_text()
    assert {row["limited"] for row in done.rows} == {4}
    assert harness.load_run(tmp_path / "r", TOY).scores == done.scores
    assert rescored(tmp_path / "r", TOY).scores == done.scores


def test_limits_that_no_agent_reaches_leave_no_trace(tmp_path: Path) -> None:
    free = harness.evaluate("toy", Dice(), output_path=tmp_path / "a" / "r", project=TOY)
    run(tmp_path / "b" / "r", {"calls_per_episode": 18, "tokens_per_episode": 10**18 - 1}, Dice())
    assert results(tmp_path / "a" / "r") == results(tmp_path / "b" / "r")
    assert not any(score.limited for score in free.scores) and "limited" not in free.rows[0]


def test_metrics_tell_limits_from_errors(tmp_path: Path) -> None:
    data = {
        "name": "x",
        "task": {"use": "arithmetic", "size": 4, "terms": 2},
        "protocol": {"use": "vote", "agents": 3},
        "prompts": "qa/standard",
        "matrix": {"most": [2, 3]},
        "limits": {"calls_per_episode": "${most}"},
        "metrics": ["limited", "engine_errors", "parse_failures", "calls"],
        "tables": [{"title": "T", "rows": "most", "metrics": ["limited", "calls"]}],
    }
    done = harness.evaluate(data, Mock(text="The answer is 1"), output_path=tmp_path, project=BUILTIN)
    assert [list(score.numbers.values()) for score in done.scores] == 4 * [[1, 0, 0, 2]] + 4 * [[0, 0, 0, 3]]
    assert "In 4 of 8 episodes a limit" in (tmp_path / "tables.md").read_text()


@pytest.mark.parametrize("most", [1, 4, 7, 12])
def test_an_episode_takes_its_calls_and_not_one_more(tmp_path: Path, most: int) -> None:
    """Nothing can be read, so that everybody would be asked 3 × 2 times."""
    run(tmp_path / "r", {"calls_per_episode": most}, Mock(text="?"))
    for agents in taken(tmp_path / "r").values():
        assert sum(map(calls, agents.values())) == min(most, 6 * len(agents))
        first = [calls(lines[:1]) for lines in agents.values()]
        assert first == one_by_one([2] * len(agents), most), "first one each, in their order"


def test_who_may_not_be_asked_again_keeps_what_could_be_read(tmp_path: Path) -> None:
    run(tmp_path / "r", {"calls_per_agent": 1}, Mock(text="?"))
    first = taken(tmp_path / "r")["agents=2/c0/0"]["S0"][0]
    assert (first["error_kind"], calls([first])) == ("limit", 1)
    assert first["error"] == "say one of a, b; not asked again: calls_per_agent is reached"


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"tokens_per_agent": 1}, {1}),  # what a call takes is known when it is there
        ({"tokens_per_agent": 22}, {2}),
        ({"tokens_per_agent": 23}, {3}),
        ({"tokens_per_agent": 100, "calls_per_agent": 2}, {2}),
        ({"tokens_per_episode": 30, "calls_per_agent": 3}, {2, 1}),  # 2 × 11 leave another batch, 3 × 11 none
    ],
)
def test_tokens_that_are_used_up(tmp_path: Path, limits: dict[str, Any], most: set[int]) -> None:
    answer = Completion("a", input_tokens=10, output_tokens=1)
    run(tmp_path / "r", limits, Mock(function=lambda request: answer))
    items = {calls(lines) for agents in taken(tmp_path / "r").values() for lines in agents.values()}
    assert items == most


@pytest.mark.parametrize("text", ["a", "?"])
@pytest.mark.parametrize("name", ["tokens_per_agent", "tokens_per_episode"])
def test_tokens_that_no_engine_counts_cannot_be_limited(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(RunStoppedError, match=f"does not say how many tokens its calls take: {name} cannot be kept"):
        run(tmp_path / "r", {name: 100}, Mock(text=text))


GRID: list[dict[str, Any]] = [
    {"calls_per_episode": 5},
    {"calls_per_episode": 8, "calls_per_agent": 3},
    {"tokens_per_episode": 60},
    {"tokens_per_agent": 33, "calls_per_episode": 9},
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limits", GRID)
def test_which_answer_comes_first_changes_nothing(tmp_path: Path, limits: dict[str, Any]) -> None:
    run(tmp_path / "one" / "r", limits, Dice(), max_concurrency=1)
    run(tmp_path / "many" / "r", limits, Dice(latency=0.003))
    assert results(tmp_path / "one" / "r") == results(tmp_path / "many" / "r")
    moves = [
        sorted(
            (e, s, [(m.get("a"), m.get("error"), calls([m])) for m in ms])
            for e, ss in there.items()
            for s, ms in ss.items()
        )
        for there in (taken(tmp_path / "one" / "r"), taken(tmp_path / "many" / "r"))
    ]
    assert moves[0] == moves[1] and any(m[1] and "is reached" in m[1] for _, _, ms in moves[0] for m in ms)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("limits", GRID)
def test_a_limited_run_can_be_cut_anywhere(tmp_path: Path, limits: dict[str, Any]) -> None:
    whole = tmp_path / "r"
    run(whole, limits, Dice(), max_concurrency=4)
    journal, expected = (whole / "journal.jsonl").read_bytes(), results(whole)
    for i, cut in enumerate(random.Random(0).sample(range(len(journal)), 8)):
        part = tmp_path / f"cut{i}" / "r"
        part.mkdir(parents=True)
        for name in ("run.json", "spec.yaml"):
            (part / name).write_bytes((whole / name).read_bytes())
        (part / "journal.jsonl").write_bytes(journal[:cut])
        as_killed(part)
        run(part, limits, Dice(), max_concurrency=3)
        assert results(part) == expected


@pytest.mark.sampled(1)
@pytest.mark.parametrize("limits", GRID)
def test_a_limited_run_on_a_budget_comes_to_the_same(tmp_path: Path, limits: dict[str, Any]) -> None:
    calm, wild = tmp_path / "calm" / "r", tmp_path / "wild" / "r"
    first, engine = Dice(), Dice()
    run(calm, limits, first)
    for most in range(9, len(first.asked), 9):
        with pytest.raises(BudgetReachedError):
            run(wild, limits, engine, max_calls=most)
    run(wild, limits, engine)
    assert results(wild) == results(calm) and sorted(engine.asked) == sorted(first.asked)


def test_policies_have_no_limits(tmp_path: Path) -> None:
    done = run(tmp_path / "r", {"calls_per_agent": 1, "tokens_per_episode": 1})
    assert not any(score.limited for score in done.scores)


def test_a_shared_call_is_billed_to_every_episode(tmp_path: Path) -> None:
    data = {
        "name": "x",
        "task": {"use": "arithmetic", "size": 3, "terms": 2},
        "protocol": {"use": "vote", "agents": 3, "ties": "${ties}"},
        "prompts": "qa/standard",
        "matrix": {"ties": ["none", "first"]},
        "limits": {"calls_per_episode": 2},
        "metrics": ["calls", "limited"],
        "dedupe_calls": True,
    }
    counts: Counter[int] = Counter()

    def answer(request: Request) -> str:
        counts[request.seed] += 1
        return "The answer is 1"

    done = harness.evaluate(data, Mock(function=answer), output_path=tmp_path, project=BUILTIN)
    assert {tuple(score.numbers.values()) for score in done.scores} == {(2, 1)} and counts.total() == 6


def test_both_phases_are_one_episode(tmp_path: Path) -> None:
    data = {
        "name": "x",
        "task": {"use": "agentsnet/consensus", "graphs": "ring", "size": 4, "instances": 2, "source": "seeded"},
        "protocol": {"use": "local_rounds", "rounds": 2, "channel": "neighbors", "parse_retries": 0, "phases": "two"},
        "prompts": "agentsnet/standard",
        "limits": {"calls_per_agent": 4},
        "metrics": ["calls", "limited", "engine_errors"],
    }
    text = "### Final Answer ### 0"
    done = harness.evaluate(data, Mock(text=text), output_path=tmp_path, project=BUILTIN)
    assert {tuple(score.numbers.values()) for score in done.scores} == {(16, 1, 0)}, "3 calls of one, 1 of the other"


# ------------------------------------------------------------------------------------- conversations


def player(texts: list[str]) -> ModelPlayer:
    left = iter(texts)
    engine = Mock(function=lambda request: next(left))
    return ModelPlayer(engine, TOY.prompts("toy/base"), {}, False, "e/S0", 7)


@settings(deadline=None)  # it runs an event loop
@given(st.lists(st.sampled_from(["a", "b", "?"]), min_size=12, max_size=12), st.integers(1, 8), st.integers(0, 2))
def test_a_limited_conversation_is_rebuilt(script: list[str], most: int, parse_retries: int) -> None:
    async def act(who: ModelPlayer) -> list[Move]:
        meter, moves = Meter(EpisodeLimits(calls_per_agent=most)), []
        for i in range(4):
            requests = turn(parse_retries=parse_retries, i=i)
            moves.append(await who.act(requests, meter.allocate([requests])["S0"]))
            meter.take(moves[-1:])
        return moves

    first, second = player(script), player([])
    moves = asyncio.run(act(first))
    for i, move in enumerate(moves):
        second.recall(turn(parse_retries=parse_retries, i=i), move)
    assert second.thread.messages == first.thread.messages
    roles = [message["role"] for message in first.thread.messages[1:]]
    assert roles == ["user", "assistant"] * (len(roles) // 2), "in turn, also where nothing was asked"
    assert sum(len(move.calls) for move in moves) <= most


@settings(deadline=None)
@given(st.integers(1, 3), st.sampled_from(["a", "?"]))
def test_a_turn_that_was_begun_is_gone_on_with(begun: int, last: str) -> None:
    whole: list[Move] = []
    first = player([*["?"] * 3, last])
    move = asyncio.run(first.act(turn(parse_retries=3), on_move=whole.append))
    assert [len(seen.calls) for seen in whole] == [1, 2, 3, 4] and whole[-1] == move
    assert {seen.error_kind for seen in whole[:-1]} == {UNFINISHED}
    again: list[Move] = []
    second = player([*["?"] * (3 - begun), last])
    assert asyncio.run(second.act(turn(parse_retries=3), None, whole[begun - 1].calls, again.append)) == move
    assert second.thread.messages == first.thread.messages and again == whole[begun:]


def test_a_quota_needs_to_know_tokens() -> None:
    with pytest.raises(EngineFatalError, match="tokens_per_agent cannot be kept"):
        TurnQuota(3, "calls_per_agent", {"tokens_per_agent": 5}).reached([Completion("?", input_tokens=3)])
    with pytest.raises(EngineFatalError, match="tokens_per_episode and tokens_per_agent cannot be kept"):
        move = Move("S0", "say", None, "no", LIMITED, (Completion("?"),))
        Meter(EpisodeLimits(tokens_per_agent=1, tokens_per_episode=1)).take([move])


# ------------------------------------------------------------------------------------------ the spec


def test_limits_are_part_of_what_a_run_is(tmp_path: Path) -> None:
    done = run(tmp_path / "r", {"calls_per_agent": 2}, Dice())
    assert done.meta["spec_digest"] != spec.load("toy", TOY).digest()
    with pytest.raises(DataError, match=r"-    calls_per_agent: 2\n\+    calls_per_agent: 3"):
        run(tmp_path / "r", {"calls_per_agent": 3}, Dice())
    with pytest.raises(DataError, match=r"other questions(.|\n)*limits"):
        run(tmp_path / "b", {"calls_per_agent": 3}, "replay", model_args={"path": str(tmp_path / "r")})
    run(tmp_path / "c" / "r", {"calls_per_agent": 2}, "replay", model_args={"path": str(tmp_path / "r")})
    assert results(tmp_path / "c" / "r") == results(tmp_path / "r")


@pytest.mark.parametrize("value", ["0", "-1", "1" + 30 * "0", "1.5", "true", "x", "[1]"])
def test_values_that_are_no_limits(value: str) -> None:
    with pytest.raises(SpecError, match=r"--set limits.calls_per_agent"):
        resolve.plan(spec.load("toy", TOY, [f"limits.calls_per_agent={value}"]), TOY)


def test_a_limit_that_there_is_not() -> None:
    with pytest.raises(SpecError, match="calls_per_agent"):
        spec.load("toy", TOY, ["limits={calls_per_seet: 1}"])


@pytest.mark.parametrize(
    ("limits", "turns", "most"),
    [
        ("{}", 4 * (6 + 9), 8 * (6 + 9)),
        ("{calls_per_agent: 2}", 4 * (4 + 6), 4 * (4 + 6)),
        ("{calls_per_agent: 4}", 4 * (6 + 9), 4 * (8 + 12)),
        ("{calls_per_episode: 7}", 4 * (6 + 7), 4 * (7 + 7)),
        ("{tokens_per_agent: 1}", 4 * (6 + 9), 8 * (6 + 9)),
    ],
)
def test_a_plan_counts_within_limits(limits: str, turns: int, most: int) -> None:
    plan = resolve.plan(spec.load("toy", TOY, [f"limits={limits}"]), TOY, Mock())
    result = estimate(plan)
    assert (result.turns, result.calls) == (turns, most)
