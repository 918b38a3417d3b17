"""What agent programs asked their model, and tools that models called, in a trace."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Request
from harness.api.errors import EngineError, LimitReachedError, RequestError
from harness.config import resolve, spec
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.extensions.exports import export
from harness.extensions.traces.sender import Sender
from harness.extensions.traces.trace_listener import TraceListener
from harness.runtime.options import Options
from harness.runtime.runner import BudgetReachedError
from tests.core.runtime.test_inner_calls import Ask, Program, Programs, said, twice
from tests.extensions.traces.test_live import comparable
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY, run
from tests.helpers.trace_collector import Seen, collecting, in_file, tree


def asked_of(
    folder: Path,
    url: str,
    content: bool = False,
    program: Program = twice,
    model: Callable[[Request], Completion] = said,
    limits: Any = None,
    **options: Any,
) -> harness.Run:
    """The toy, played by a program: one that asks its model four times a turn."""
    engine = Programs(program=program, inner=Mock(model="small", function=model), limits=limits or {})
    plan = resolve.plan(spec.parse({"extends": "toy", "matrix": {"agents": [2]}, "tables": []}, TOY), TOY, engine)
    heard = TraceListener(f"{url}/v1/traces", content, partial(Sender, timeout=5.0))
    return execute(plan, Options(output_path=folder, **options), asked_for={"trace": heard})


def lie_within(spans: list[Seen]) -> None:
    """Every span's parent is there, and lasts at least as long."""
    known = {span.id: span for span in spans}
    for span in spans:
        assert span.start <= span.end
        if span.parent:
            parent = known[span.parent]
            assert parent.start <= span.start and span.end <= parent.end, (span.name, parent.name)


def slowly(request: Request) -> Completion:
    """An answer that took 50 ms, says the engine: the program's reply, which does not say how long it took, ends
    before."""
    return replace(said(request), latency=0.05)


def exported(done: harness.Run, folder: Path, **options: Any) -> list[Seen]:
    (file,) = export(done, "otel", folder, **options).files
    return in_file(file)


def test_inner_calls_are_chats_below_the_reply_for_which_they_were_made(tmp_path: Path) -> None:
    with collecting() as collector:
        done = asked_of(tmp_path / "r", collector.url)
    spans = exported(done, tmp_path / "out")
    assert comparable(collector.spans) == comparable(spans)
    known = {span.id: span for span in spans}
    inner = [span for span in spans if "mas_eval.inner.number" in span.attributes]
    replies = [span for span in spans if span.name == "chat program"]
    assert len(inner) == 4 * len(replies) > 0
    for span in inner:
        facts, outer = span.attributes, known[span.parent]
        assert outer.name == "chat program" and known[outer.parent].name.startswith("turn ")
        assert (facts["gen_ai.request.model"], facts["gen_ai.response.model"]) == ("any", "small")
        assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (10, 2)
        assert (
            facts["gen_ai.agent.name"] == outer.attributes["gen_ai.agent.name"]
            and facts["mas_eval.inner.api"] == "chat"
        )
    assert not any("gen_ai.usage.input_tokens" in span.attributes for span in replies), "or sums would count them twice"
    seeds = {span.attributes["gen_ai.request.seed"] for span in inner}
    assert len(seeds) == len(inner)
    assert sum(line == "          chat any" for line in tree(spans)) == len(inner)


def test_inner_calls_show_their_content_where_it_is_asked_for(tmp_path: Path) -> None:
    with collecting() as collector:
        done = asked_of(tmp_path / "r", collector.url, content=True)
    assert comparable(collector.spans) == comparable(exported(done, tmp_path / "out", trace_content=True))
    texts = set()
    for span in collector.spans:
        if "mas_eval.inner.number" in span.attributes:
            [read] = json.loads(span.attributes["gen_ai.input.messages"])
            [wrote] = json.loads(span.attributes["gen_ai.output.messages"])
            texts.add((read["parts"][0]["content"], wrote["parts"][0]["content"]))
    assert texts == {(text, f"answer to {text}") for text in ("one", "two", "answer to one")}


def test_calls_of_tools_are_spans_beside_the_chat(tmp_path: Path) -> None:
    def calls(request: Request) -> Completion:
        return Completion("a", tool_calls=[{"id": "call_1", "name": "look", "arguments": '{"at": 1}'}])

    done = run(tmp_path / "r", Mock(function=calls), ("matrix.agents=[2]",), limit=1)
    spans = exported(done, tmp_path / "out", trace_content=True)
    known = {span.id: span for span in spans}
    tools = [span for span in spans if span.name == "execute_tool look"]
    assert len(tools) == len([span for span in spans if span.name == "chat mock"]) > 0
    for span in tools:
        facts = span.attributes
        assert (facts["gen_ai.tool.name"], facts["gen_ai.tool.call.id"]) == ("look", "call_1")
        assert facts["gen_ai.tool.call.arguments"] == '{"at": 1}' and facts["gen_ai.tool.type"] == "function"
        assert known[span.parent].name.startswith("turn ")


def test_a_program_that_a_limit_ends_has_an_attempt_around_its_calls(tmp_path: Path) -> None:
    async def dies(ask: Ask, request: Request) -> str:
        try:
            while True:
                await ask("more")
        except LimitReachedError:
            raise RequestError("the program died") from None

    with collecting() as collector:
        done = asked_of(tmp_path / "r", collector.url, program=dies, limits={"turn": {"calls": 2}})
    spans = exported(done, tmp_path / "out")
    for seen in (spans, collector.spans):
        lie_within(seen)
        attempts = [span for span in seen if span.name == "chat program"]
        assert len([span for span in seen if span.name == "chat any"]) == 2 * len(attempts) > 0
        assert {(span.failed, span.attributes["error.type"]) for span in attempts} == {(True, "limit")}
        assert {span.attributes["mas_eval.attempt"] for span in attempts} == {0}
    assert comparable(collector.spans) == comparable(spans)


def test_a_reply_lasts_as_long_as_its_inner_calls_and_says_that_this_is_derived(tmp_path: Path) -> None:
    with collecting() as collector:
        done = asked_of(tmp_path / "r", collector.url, model=slowly)
    spans = exported(done, tmp_path / "out")
    lie_within(collector.spans)
    lie_within(spans)
    replies = [span for span in spans if span.name == "chat program"]
    assert replies and {span.attributes["mas_eval.time.derived"] for span in replies} == {"end"}
    assert all(span.end - span.start >= 50_000_000 for span in replies)


def test_a_turn_that_was_played_again_has_the_calls_of_both_processes(tmp_path: Path) -> None:
    with collecting() as collector:
        with pytest.raises(BudgetReachedError):
            asked_of(tmp_path / "r", collector.url, model=slowly, max_calls=2, max_concurrency=1)
        done = asked_of(tmp_path / "r", collector.url, model=slowly)
    spans = exported(done, tmp_path / "out")
    lie_within(spans)
    assert "start, end" in {
        span.attributes.get("mas_eval.time.derived") for span in spans if span.name == "chat program"
    }
    lie_within(collector.spans)


def test_an_inner_call_that_failed_lies_within_its_reply(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def model(request: Request) -> Completion:
        asked[text := request.thread.messages[-1]["content"]] += 1
        if text == "fail":
            raise RequestError("busy")
        return slowly(request)

    async def goes_on(ask: Ask, request: Request) -> str:
        for text in ("fail", "one", "fail", "two"):
            try:
                await ask(text)
            except EngineError:
                continue
        return "a"

    with collecting() as collector:
        done = asked_of(tmp_path / "r", collector.url, program=goes_on, model=model, max_error_rate=1)
    spans = exported(done, tmp_path / "out")
    assert comparable(collector.spans) == comparable(spans)
    for seen in (spans, collector.spans):
        lie_within(seen)
        calls: dict[str, dict[int, Seen]] = {}
        for span in seen:
            if span.name == "chat any":
                calls.setdefault(span.parent, {})[span.attributes["mas_eval.inner.number"]] = span
        assert calls and asked["fail"] == 2 * len(calls)
        for own in calls.values():
            assert [own[i].failed for i in range(4)] == [True, False, True, False]
            assert own[0].start <= own[1].start <= own[2].start, "in the order in which they were asked"
    known = {span.id: span for span in spans}
    for parent, own in calls.items():
        places = [known[own[i].id] for i in range(3)]
        assert places[0].start == known[parent].start, "no clock has said when; it was not before its reply"
        assert places[2].start == places[1].end, "it was asked when the one before was answered"


def test_a_turn_that_ends_with_a_tool_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def calls(request: Request) -> Completion:
        tools = [{"id": "call_1", "name": "look", "arguments": "{}"}]
        return Completion("a", tool_calls=tools, latency=0.001)

    done = run(tmp_path / "r", Mock(function=calls), ("matrix.agents=[2]",), limit=1)
    code, out, _ = invoke(capsys, "export", str(done.folder), "--to", "otel", "-o", str(tmp_path / "out"))
    assert code == 0 and "spans of 1 episodes" in out and "no clock measured" not in out
    derived = {
        span.name for span in in_file(tmp_path / "out" / "traces.jsonl") if "mas_eval.time.derived" in span.attributes
    }
    assert derived == {"execute_tool look"}
