"""What agent programs asked their model, and tools that models called, in a trace."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import harness
from harness.api import Completion, Request
from harness.config import resolve, spec
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.extensions.exports import export
from harness.extensions.traces.sender import Sender
from harness.extensions.traces.trace_listener import TraceListener
from harness.runtime.options import Options
from tests.core.runtime.test_inner_calls import Programs, said, twice
from tests.extensions.traces.test_live import comparable
from tests.helpers.toy import TOY, run
from tests.helpers.trace_collector import Seen, collecting, in_file, tree


def asked_of(folder: Path, url: str, content: bool = False) -> harness.Run:
    """The toy, played by a program that asks its model four times a turn."""
    engine = Programs(program=twice, inner=Mock(model="small", function=said))
    plan = resolve.plan(spec.parse({"extends": "toy", "matrix": {"agents": [2]}, "tables": []}, TOY), TOY, engine)
    heard = TraceListener(f"{url}/v1/traces", content, partial(Sender, timeout=5.0))
    return execute(plan, Options(output_path=folder), asked_for={"trace": heard})


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
