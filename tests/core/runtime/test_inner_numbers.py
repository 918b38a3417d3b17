"""What runs say of the model calls that agents' programs make: metrics, columns, costs, progress."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import harness
from harness.api import Completion, InnerUsage, Request
from harness.api.errors import RequestError
from harness.cli.output import turns_in_words
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.engines.usage import billed_inner
from harness.evaluation.rescore import rescored
from harness.evaluation.stages import execute
from harness.report import render
from harness.report.provenance import in_one_line
from harness.runtime.options import Options
from harness.runtime.runner import BudgetReachedError
from harness.tables.cost import Price, Usd, usd_of
from tests.helpers.commands import invoke
from tests.helpers.programs import Ask, Programs, said

PRICED = "prices={small: {input: 1000, output: 10000}}"
TABLES = "tables+={title: Calls, rows: model, metrics: [calls, answered], aggregate: pooled}"


def played(
    folder: Path, program: Any, model: Any = said, *overrides: str, limits: Any = MappingProxyType({}), **options: Any
) -> harness.Run:
    """Three episodes of one agent, whose program asks the model `small`."""
    changes = ["matrix.terms=[2]", "protocol.parse_retries=0", "metrics+=calls", *overrides]
    loaded = spec.load("arithmetic", builtin(), changes, limit=3)
    engine = Programs(program=program, inner=Mock(model="small", function=model), limits=limits)
    return execute(resolve.plan(loaded, builtin(), engine), Options(output_path=folder, **options))


async def thrice(ask: Ask, request: Request) -> str:
    await asyncio.gather(*(ask(text) for text in ("one", "two", "three")))
    return "42"


def table(run: harness.Run, title: str) -> dict[str, Any]:
    """The first row of a table: column → value."""
    found = next(one for one in run.tables if one.title == title)
    return {
        column.metric or column.names[-1]: cell.value
        for column, cell in zip(found.columns, found.rows[0].cells, strict=True)
    }


def test_inner_calls_are_numbers_of_their_own_and_stand_beside_replies(tmp_path: Path) -> None:
    run = played(tmp_path / "run", thrice, said, TABLES)
    for score in run.scores:
        own = {name: number for name, number in score.numbers.items() if name.startswith("inner_")}
        assert own == {"inner_calls": 3, "inner_input_tokens": 30, "inner_output_tokens": 6, "inner_cost": None}
        assert score.numbers["calls"] == 1
        assert score.usage == {"small": {"input": 30, "output": 6, "replies": 1, "inner_calls": 3}}
    assert [*table(run, "Calls")][:2] == ["calls", "inner_calls"] and table(run, "Calls")["inner_calls"] == 3
    assert table(run, "Inner calls") == {
        "episodes": 3, "replies": 3, "inner_calls": 9, "input": 90, "output": 18,
    }  # fmt: skip
    assert " inner calls |" in (tmp_path / "run" / "tables.md").read_text()
    assert {row["metric"] for row in run.rows} >= {"inner_calls", "inner_input_tokens"}
    loaded = harness.load_run(tmp_path / "run")
    assert loaded.tables == run.tables and loaded.meta["inner"] == {
        "model": {"engine": "model.inner", "model": "small"}
    }
    assert rescored(tmp_path / "run").scores == run.scores


def test_what_a_program_asks_is_billed_at_its_models_price_and_its_claims_are_not(tmp_path: Path) -> None:
    run = played(tmp_path / "run", thrice, said, PRICED)
    cost = table(run, "Cost")
    assert cost["usd"] == pytest.approx(3 * (30 * 1000 + 6 * 10000) / 1e6)
    assert cost["usd_episode"] == pytest.approx(0.09) and cost["inner_calls"] == 9 and cost["replies"] == 3


def test_sampling_that_programs_choose_is_not_said_to_be_the_specs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No request had that of the spec: no line above tables and no board states it."""
    asked: list[dict[str, Any]] = []

    def small(request: Request) -> Completion:
        asked.append(dict(request.sampling))
        return said(request)

    sampling = "generation_kwargs={temperature: 0.75, max_tokens: 8}"
    run = played(tmp_path / "run", thrice, small, sampling)
    assert asked and all("temperature" not in one for one in asked)
    assert run.meta["generation_kwargs"] == {} and "generation_kwargs: (the agents' own)" in in_one_line(run.meta)
    for words in (["report"], ["leaderboard"], ["leaderboard", "--format", "json"]):
        code, out, _ = invoke(capsys, words[0], str(tmp_path / "run"), *words[1:])
        assert code == 0 and "temperature" not in out and "0.75" not in out, out


def test_a_run_without_inner_calls_has_none_of_these_columns(tmp_path: Path) -> None:
    loaded = spec.load("arithmetic", builtin(), ["matrix.terms=[2]", "metrics+=calls", TABLES, PRICED], limit=1)
    model = Mock(model="small", function=said)
    run = execute(resolve.plan(loaded, builtin(), model), Options(output_path=tmp_path / "run"))
    assert "inner" not in (tmp_path / "run" / "tables.md").read_text()
    assert not any(name.startswith("inner") for score in run.scores for name in score.numbers)
    assert "inner" not in json.dumps({**run.meta, "command": None})  # which names files of tests


async def fails(ask: Ask, request: Request) -> str:
    await ask("one")
    raise RequestError("the program fell over")


async def fails_after_two(ask: Ask, request: Request) -> str:
    for text in ("one", "two"):
        await ask(text)
    raise RequestError("the program fell over")


def test_calls_of_a_turn_that_failed_count_and_are_paid(tmp_path: Path) -> None:
    def once(request: Request) -> Completion:
        return Completion("x", input_tokens=10, output_tokens=2, cost=0.5)

    run = played(tmp_path / "run", fails, once, max_error_rate=1.0)
    assert {score.usage["small"]["inner_calls"] for score in run.scores} == {1}
    assert table(run, "Cost")["usd"] == pytest.approx(1.5)


KINDS = "metrics+=[{use: tokens, kind: total, name: all}, {use: tokens, kind: reasoning, name: reasoning}]"


@pytest.mark.parametrize("limits", [{}, {"turn": {"calls": 1}}], ids=["failed", "limited"])
def test_tokens_are_those_of_all_inner_calls_with_a_reply_or_without(tmp_path: Path, limits: Any) -> None:
    async def fails_once(ask: Ask, request: Request) -> str:
        if not request.id.startswith("terms=2/0/"):
            return await fails_after_two(ask, request)
        for text in ("one", "two"):
            await ask(text)
        return "42"

    def thinks(request: Request) -> Completion:
        return Completion("x", input_tokens=10, output_tokens=2, reasoning_tokens=1, cached_tokens=4)

    run = played(tmp_path / "run", fails_once, thinks, KINDS, PRICED, max_error_rate=1.0, limits=limits)
    cost, rows = table(run, "Cost"), [*run.episodes()]
    asked = cost["inner_calls"]
    assert asked == (3 if limits else 6)
    for kind, tokens in {**{kind: cost[kind] for kind in ("input", "output", "cached")}, "reasoning": asked}.items():
        assert sum(row[f"{kind}_tokens"] for row in rows) == tokens
    assert sum(turn["input_tokens"] for turn in run.turns()) == cost["input"] == 10 * asked
    scored = [score for score in run.scores if score.error is None]
    assert {score.numbers["all"] for score in scored} == {12 if limits else 24}
    assert {score.numbers["reasoning"] for score in scored} == {1 if limits else 2}


@pytest.mark.parametrize("inner", [True, False], ids=["inner calls", "replies"])
def test_what_a_stopped_run_has_cost_is_said(tmp_path: Path, inner: bool) -> None:
    protocol = ["protocol={use: debate, agents: 3, rounds: 2}", PRICED]
    limits: Any = {"max_cost": 0.05, "max_concurrency": 1}  # of 0.03 a call
    with pytest.raises(BudgetReachedError, match=r"24 tokens as used, 0\.060 USD as spent") as stop:
        if inner:
            played(tmp_path / "run", thrice, said, *protocol, **limits)
        else:
            loaded = spec.load("arithmetic", builtin(), ["matrix.terms=[2]", *protocol], limit=3)
            model = Mock(model="small", function=said)
            execute(resolve.plan(loaded, builtin(), model), Options(output_path=tmp_path / "run", **limits))
    assert stop.value.stopped["asked"]["usd"] == pytest.approx(0.06)
    run = harness.load_run(tmp_path / "run", unfinished=True)
    assert run.scores == [] and table(run, "Cost")["usd"] == pytest.approx(0.06)
    assert (table(run, "Cost")["input"], table(run, "Cost").get("inner_calls")) == (20, 2 if inner else None)
    assert "Costs are also those of 1 that has begun." in run.unfinished


def test_a_stopped_run_bills_each_reply_at_the_price_of_its_own_model(tmp_path: Path) -> None:
    changes = [
        "matrix.terms=[2]",
        "protocol={use: debate, agents: 3, rounds: 2}",
        "models={large: {use: mock, model: big}}",
        "agents={default: model, others: {model: large, count: 2}}",
        "prices={small: {input: 1000, output: 10000}, big: {input: 10000, output: 100000}}",
    ]
    loaded = spec.load("arithmetic", builtin(), changes, limit=3)
    plan = resolve.plan(loaded, builtin(), Mock(model="small", function=said))
    vars(plan.engines["large"])["function"] = said
    with pytest.raises(BudgetReachedError) as stop:
        execute(plan, Options(output_path=tmp_path / "run", max_cost=0.3, max_concurrency=1))
    run = harness.load_run(tmp_path / "run", unfinished=True)
    cost = next(one for one in run.tables if one.title == "Cost")
    at = [column.metric or column.names[-1] for column in cost.columns].index("usd")
    usd = {row.names[0]: row.cells[at].value for row in cost.rows}
    assert run.scores == [] and usd.keys() == {"small", "big"}
    assert sum(value or 0 for value in usd.values()) == pytest.approx(stop.value.stopped["asked"]["usd"])
    written = run.folder / "spec.yaml"
    written.write_text(written.read_text("utf-8").replace("- 2", "- 3"), "utf-8")
    run = harness.load_run(tmp_path / "run", unfinished=True)
    assert run.begun == [] and not any(one.title == "Cost" for one in run.tables)
    assert "Costs lack replies of 1 that has begun, as it is not known which models gave them: " in run.unfinished


def test_a_limit_of_the_agents_own_model_is_no_limit_of_the_spec(tmp_path: Path) -> None:
    run = played(tmp_path / "run", fails_after_two, said, "metrics+=limited", limits={"turn": {"calls": 1}})
    for score in run.scores:
        assert not score.limited and score.numbers["limited"] == 0
        assert score.turns == {"model": {"asked": 1, "answered": 0, "inner_limit": 1}}
    notes = [note for one in run.tables for note in one.notes]
    assert "3 turns in 3 of 3 episodes ended without a reply: the agent's own model had reached a limit" in str(notes)
    assert "a limit of the spec" not in str(notes)
    said_of_turns = turns_in_words(run.scores, run.folder)[0]
    assert said_of_turns == "model: 3 turns, 0 % parsed (3 at a limit of the agent's own model)"
    assert rescored(run.folder).scores == run.scores


def test_a_call_without_tokens_makes_the_cost_a_lower_bound(tmp_path: Path) -> None:
    def partly(request: Request) -> Completion:
        known = request.thread.messages[-1]["content"] != "two"
        return said(request) if known else Completion("x")

    run = played(tmp_path / "run", thrice, partly, PRICED)
    shown = next(render(one, "markdown") for one in run.tables if one.title == "Cost")
    assert "≥ 0.18" in shown and "≥ 0.06" in shown and "3 replies do not say" in shown


async def one(ask: Ask, request: Request) -> str:
    await ask("one")
    return "42"


@pytest.mark.parametrize("again", ["use_cache", "reuse"])
def test_calls_that_a_cache_answers_cost_what_they_did(tmp_path: Path, again: str) -> None:
    def paid(request: Request) -> Completion:
        return Completion("x", input_tokens=10, output_tokens=2, cost=0.5)

    cache = {"use_cache": tmp_path / "cache"} if again == "use_cache" else {}
    first = played(tmp_path / "first", one, paid, **cache)
    second = played(tmp_path / "second", one, paid, **(cache or {"reuse": first.folder}))
    assert table(second, "Cost")["usd"] == table(first, "Cost")["usd"] == pytest.approx(1.5)
    assert table(second, "Cost")["replies"] == 3 and next(second.turns())["inner_calls"] == 1
    assert sum(row["cost"] for row in second.episodes()) == pytest.approx(1.5)


def test_calls_that_a_cache_answers_are_billed_at_the_price_of_the_inner_model(tmp_path: Path) -> None:
    first = played(tmp_path / "first", one, said, PRICED, use_cache=tmp_path / "cache")
    second = played(tmp_path / "second", one, said, PRICED, use_cache=tmp_path / "cache")
    assert table(second, "Cost")["usd"] == table(first, "Cost")["usd"] == pytest.approx(3 * 0.03)


def test_tables_and_budgets_agree_where_some_answers_say_what_they_cost(tmp_path: Path) -> None:
    def partly(request: Request) -> Completion:
        own = 0.5 if request.thread.messages[-1]["content"] == "two" else None
        return Completion("x", input_tokens=10, output_tokens=2, cost=own)

    run = played(tmp_path / "run", thrice, partly, PRICED, max_cost=100.0)
    shown = next(render(one, "markdown") for one in run.tables if one.title == "Cost")
    assert table(run, "Cost")["usd"] == pytest.approx(3 * (0.5 + 2 * 0.03))
    assert "≥" not in shown and "do not say" not in shown
    assert sum(row["cost"] for row in run.inner_calls()) == pytest.approx(3 * 0.56)


def test_what_some_answers_cost_is_no_whole() -> None:
    mixed = InnerUsage(calls=4, failed=1, input_tokens=9, output_tokens=9, cost=0.5, priced=2)
    assert usd_of(billed_inner(mixed), Price(1, 1)) == Usd(0.5, whole=False)
    whole = InnerUsage(calls=3, failed=1, input_tokens=9, output_tokens=9, cost=0.5, priced=2)
    assert usd_of(billed_inner(whole), None) == Usd(0.5)


def test_the_metrics_can_be_named_in_a_spec(tmp_path: Path) -> None:
    own = "metrics+=[{use: inner_calls, over: run, name: asked}, inner_calls]"
    run = played(tmp_path / "run", thrice, said, own, "tables.0.metrics+=asked")
    assert table(run, run.tables[0].title)["asked"] == 9 and [*run.metrics].count("inner_calls") == 1


def test_progress_tells_turns_from_inner_calls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from harness.engines.usage import Usage
    from harness.runtime.heartbeat import Heartbeat

    usage = Usage()
    line = Heartbeat("toy", {}, 9, usage, lambda: 0.0).counts
    usage.calls, usage.answers, usage.turns, usage.inner_calls = 31, 30, 4, 30
    assert line() == "4 turns, 30 inner calls answered"


async def talks(ask: Ask, request: Request) -> str:
    """Two rounds of a conversation that grows, with a tool."""
    first = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "one"}]
    tools = [{"name": "look", "description": "", "parameters": {}}]
    seen = await ask("one", messages=first, tools=tools)
    await ask("", messages=[*first, {"role": "assistant", "content": seen.text}, {"role": "user", "content": "two"}])
    return "42"


def test_rows_have_inner_calls_apart_from_replies(tmp_path: Path) -> None:
    run = played(tmp_path / "run", talks, said, PRICED)
    rows = [*run.inner_calls()]
    assert len(rows) == 6 and {row["model"] for row in rows} == {"small"}
    assert [(row["number"], row["earlier_messages"], len(row["prompt"])) for row in rows[:2]] == [(0, 0, 2), (1, 2, 2)]
    assert rows[0]["reply"] == "answer to one" and rows[0]["tools"][0]["name"] == "look"
    assert rows[0]["cost"] == pytest.approx(0.03)
    turn, episode = next(run.turns()), next(run.episodes())
    assert (turn["calls"], turn["inner_calls"], turn["inner_output_tokens"]) == (1, 2, 4)
    assert (turn["cost"], turn["cost_is_whole"]) == (pytest.approx(0.06), True)
    assert (episode["inner_calls"], episode["cost"]) == (2, pytest.approx(0.06))
    assert {agent: known["usd"] for agent, known in episode["costs"].items()} == {turn["agent"]: pytest.approx(0.06)}
    assert len(run.to_pandas("inner_calls")) == 6
    assert set(run.to_pandas("turns").columns) >= {"inner_calls", "inner_failed"}


def test_a_run_without_inner_calls_has_no_rows_of_them(tmp_path: Path) -> None:
    loaded = spec.load("arithmetic", builtin(), ["matrix.terms=[2]"], limit=1)
    run = execute(
        resolve.plan(loaded, builtin(), Mock(model="m", function=said)), Options(output_path=tmp_path / "run")
    )
    assert not [*run.inner_calls()] and not any("inner" in name for name in next(run.turns()))
    assert next(run.turns())["cost"] is None and next(run.turns())["cost_is_whole"] is None


def test_the_file_of_whole_conversations_has_inner_calls_apart(tmp_path: Path) -> None:
    played(tmp_path / "run", talks, said, log_samples=True)
    lines = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text().splitlines()]
    for line in lines:
        one, two = line["inner"]
        assert one["call"]["text"] == "answer to one" and "be brief" in str(one["ask"]["messages"])
        assert two["ask"]["same"] == [0, 0, 0, 2] and len(two["ask"]["messages"]) == 2
        assert "answer to" not in json.dumps(line["threads"])
    assert len(lines) == 3
