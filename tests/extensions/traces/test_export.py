"""`harness export --to otel`, read back by the schema of OTLP/JSON."""

import itertools
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import opentelemetry.semconv._incubating.attributes.gen_ai_attributes as gen_ai
import pytest
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.semconv.schemas import Schemas

import harness
from harness import storage
from harness.api import Completion, Request
from harness.api.errors import RequestError
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.extensions.exports import export
from harness.extensions.traces.content import MAX_CHARS
from harness.extensions.traces.otlp_json import lines
from harness.extensions.traces.span import SCHEMA_URL, RunSpans, Span
from harness.storage import sealed
from tests.helpers.commands import invoke
from tests.helpers.toy import run
from tests.helpers.trace_collector import Seen, in_file, tree

SECRET = "the-reply-that-none-may-see"
HOSTILE = ("\x00\x1b[2J\u202e\x9f", "\ud800\udfff lone", "x" * 1_000_000, '{"a": NaN}\r\n\u2028', "b")


def answer(request: Request) -> Completion:
    """A model that is at times unreadable, at times fails, and says how long it took."""
    rng = random.Random(request.seed)
    if rng.random() < 0.15:
        raise RequestError(f"busy {SECRET}")
    text = rng.choice(["a", "b", f"? {SECRET}"])
    return Completion(text, SECRET, "stop", 10, 3, cached_tokens=4, reasoning_tokens=2, latency=rng.random(), cost=0.25)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    return run(tmp_path_factory.mktemp("traces") / "r", Mock(function=answer), max_error_rate=1)


def exported(done: harness.Run, folder: Path, **options: Any) -> list[Seen]:
    (file,) = export(done, "otel", folder, **options).files
    return in_file(file)


def of(spans: list[Seen], operation: str) -> list[Seen]:
    return [span for span in spans if span.attributes.get("gen_ai.operation.name") == operation]


def test_every_turn_and_every_call_is_a_span_below_its_agent(done: harness.Run, tmp_path: Path) -> None:
    spans = exported(done, tmp_path)
    known = {span.id: span for span in spans}
    assert len(known) == len(spans) and {span.trace for span in spans} == {spans[0].trace}
    [root] = [span for span in spans if span.parent not in known]
    assert root.parent == "" and root.name == "invoke_workflow toy" and root is spans[-1]
    moves = [move for transcript in done.transcripts() for turn in transcript.turns if (move := turn.move)]
    failed = [move for move in moves if move.error_kind == "request"]
    chats = of(spans, "chat")
    assert len(chats) == sum(len(move.calls) for move in moves) + len(failed)
    assert len([span for span in chats if span.failed]) == len(failed) > 0
    assert max(span.attributes["mas_eval.attempt"] for span in chats) > 0, "retries are spans too"
    assert all(known[span.parent].name.startswith("turn ") and span.kind == 3 for span in chats)
    agents = of(spans, "invoke_agent")
    assert len(agents) == sum(len(transcript.agents) for transcript in done.transcripts())
    assert {known[span.parent].name for span in agents} == {"episode agents=2", "episode agents=3"}
    assert all(known[known[span.parent].parent] is root for span in agents)
    for span in spans:
        assert span.start <= span.end
        if span.parent and span is not root:
            assert known[span.parent].start <= span.start and span.end <= known[span.parent].end, span.name


def test_a_call_says_what_was_asked_and_what_it_cost(done: harness.Run, tmp_path: Path) -> None:
    spans = exported(done, tmp_path)
    answered = [span for span in of(spans, "chat") if not span.failed]
    for span in answered:
        facts = span.attributes
        assert (facts["gen_ai.request.model"], facts["gen_ai.provider.name"]) == ("mock", "mock")
        assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (10, 3)
        assert facts["gen_ai.usage.cache_read.input_tokens"] == 4 and facts["mas_eval.cost"] == 0.25
        assert facts["gen_ai.response.finish_reasons"] == ["stop"] and facts["gen_ai.request.max_tokens"] == 8
        assert "mas_eval.time.derived" not in facts, "the journal says when it began, and how long it took"
    seeds = [span.attributes["gen_ai.request.seed"] for span in of(spans, "chat")]
    assert len(set(seeds)) == len(seeds)
    [error] = {span.attributes["error.type"] for span in of(spans, "chat") if span.failed}
    assert error == "request"
    scores = {score.id: score for score in done.scores}
    episodes = [span for span in spans if span.name.startswith("episode ")]
    for span in episodes:
        score = scores[span.attributes["mas_eval.episode"]]
        assert span.attributes["mas_eval.metric.agreed"] == score.numbers["agreed"]
        assert span.attributes["gen_ai.conversation.id"] == f"r/{score.id}"


def test_seeds_are_those_that_the_engine_got(tmp_path: Path) -> None:
    seeds: set[int] = set()

    def model(request: Request) -> str:
        seeds.add(request.seed)
        return random.Random(request.seed).choice("ab?")

    spans = exported(run(tmp_path / "r", Mock(function=model)), tmp_path / "out")
    assert {span.attributes["gen_ai.request.seed"] for span in of(spans, "chat")} == seeds


def test_names_are_those_of_the_conventions(done: harness.Run, tmp_path: Path) -> None:
    spans = exported(done, tmp_path, trace_content=True)
    known = {text for name, text in vars(gen_ai).items() if name.startswith("GEN_AI_") and isinstance(text, str)}
    used = {name for span in spans for name in span.attributes}
    assert {name for name in used if not name.startswith("mas_eval.")} <= known | {ERROR_TYPE}
    operations = {one.value for one in gen_ai.GenAiOperationNameValues}
    assert {
        span.attributes["gen_ai.operation.name"] for span in spans if "gen_ai.operation.name" in span.attributes
    } <= (operations)
    assert SCHEMA_URL in {one.value for one in Schemas}
    assert used >= {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.agent.id", "gen_ai.workflow.name"}


def test_an_export_twice_is_the_same(done: harness.Run, tmp_path: Path) -> None:
    first, second = (export(done, "otel", tmp_path / name).files[0].read_bytes() for name in ("one", "two"))
    assert first == second and first.count(b"\n") == first.count(b'{"resourceSpans"')


def test_batches_are_written_as_spans_come() -> None:
    ids = RunSpans({"run": "r", "start": "2026-01-01T00:00:00+00:00", "spec_digest": "1"})
    endless = (
        Span(f"turn {i}", ids.span(i), None, i, i, attributes={"text": "x" * 100_000}) for i in itertools.count()
    )
    first, second = itertools.islice(lines(ids, endless), 2)
    assert len(first) < 6_000_000 and '"turn 0"' in first and '"turn 0"' not in second


def test_content_is_shown_where_it_is_asked_for_and_nowhere_else(done: harness.Run, tmp_path: Path) -> None:
    (file,) = export(done, "otel", tmp_path / "without").files
    assert SECRET not in file.read_text("utf-8")
    spans = exported(done, tmp_path / "with", trace_content=True)
    transcripts = {transcript.id: transcript for transcript in done.transcripts()}
    known = {span.id: span for span in spans}
    count = 0
    for span in (span for span in of(spans, "chat") if not span.failed):
        turn = known[span.parent]
        episode = turn.attributes["gen_ai.conversation.id"].removeprefix("r/")
        agent, index, attempt = (
            turn.attributes["gen_ai.agent.name"],
            turn.attributes["mas_eval.turn.index"],
            span.attributes["mas_eval.attempt"],
        )
        own = next(t for t in transcripts[episode].turns if (t.agent, t.index) == (agent, index))
        [said] = json.loads(span.attributes["gen_ai.output.messages"])
        texts = [part["content"] for part in said["parts"]]
        assert texts == [SECRET, own.move.calls[attempt].text] and said["finish_reason"] == "stop"
        read = json.loads(span.attributes["gen_ai.input.messages"])
        expected = own.prompt[-1][1] if attempt == 0 else own.retries[attempt - 1]
        assert read[-1] == {"role": "user", "parts": [{"type": "text", "content": expected}]}
        if (instructions := span.attributes.get("gen_ai.system_instructions")) is not None:
            assert json.loads(instructions)[0]["type"] == "text" and read[0]["role"] != "system"
        count += 1
    assert count > 20
    assert {span.message for span in spans if span.failed and span.name == "chat mock"} == {f"busy {SECRET}"}


def test_text_of_models_breaks_no_export_and_is_bounded(tmp_path: Path) -> None:
    def hostile(request: Request) -> Completion:
        rng = random.Random(request.seed)
        call = {"id": rng.choice(HOSTILE)[:300], "name": rng.choice(HOSTILE)[:5000], "arguments": rng.choice(HOSTILE)}
        return Completion(rng.choice(HOSTILE), rng.choice(HOSTILE), rng.choice(HOSTILE), 10**30, tool_calls=(call,))

    overrides = "headline.metric=agreed", "matrix.agents=[3]"
    bad = run(tmp_path / "r", Mock(function=hostile), overrides, limit=1)
    for content in (None, True):
        spans = exported(bad, tmp_path / f"{content}", trace_content=content)
        for span in spans:
            for name, value in span.attributes.items():
                assert not isinstance(value, str) or len(value) < 8 * MAX_CHARS, name
            assert "gen_ai.usage.input_tokens" not in span.attributes, "no number of 64 bits"
        tools = of(spans, "execute_tool")
        assert tools and all(len(span.attributes["gen_ai.tool.name"]) <= 1000 for span in tools)
        assert all("gen_ai.tool.call.arguments" in span.attributes for span in tools) == (content is True)


def test_a_run_without_times_gets_times_that_follow_from_latencies_and_says_so(
    done: harness.Run, tmp_path: Path
) -> None:
    older = tmp_path / "r"
    older.mkdir()
    for file in done.folder.iterdir():
        if file.is_file() and file.name != "journal.jsonl":
            (older / file.name).write_bytes(file.read_bytes())
    meta = json.loads((older / "run.json").read_text("utf-8"))
    del meta["journals"]
    (older / "run.json").write_text(json.dumps(meta), "utf-8")
    with (older / "journal.jsonl").open("wb") as journal:
        for _, line in storage.lines(done.folder / "journal.jsonl"):
            calls = [{key: one[key] for key in one if key != "began"} for one in line.get("calls", ())]
            kept = {key: line[key] for key in line if key not in ("crc", "calls")} | ({"calls": calls} if calls else {})
            journal.write(sealed(json.dumps(kept, separators=(",", ":")).encode()))
    new, old = exported(done, tmp_path / "new"), exported(load_run(older), tmp_path / "old")
    assert [replace(span, start=0, end=0, attributes={}) for span in new] == [
        replace(span, start=0, end=0, attributes={}) for span in old
    ]
    chats = of(old, "chat")
    assert {span.attributes["mas_eval.time.derived"] for span in chats} == {"start, end"}
    known = {span.id: span for span in old}
    rounds: dict[tuple[str, int], list[Seen]] = {}
    for span in chats:
        turn = known[span.parent]
        rounds.setdefault((turn.attributes["gen_ai.conversation.id"], turn.attributes["mas_eval.round"]), []).append(
            span
        )
    for (episode, number), own in rounds.items():
        if (before := rounds.get((episode, number - 1))) is not None:
            assert min(one.start for one in own) >= max(one.end for one in before), (
                "a round begins after the one before"
            )
    assert all(span.attributes["mas_eval.time.derived"] for span in old[:-1])


def test_policies_have_spans_without_a_model(tmp_path: Path) -> None:
    spans = exported(run(tmp_path / "r"), tmp_path / "out")
    assert not of(spans, "chat") and of(spans, "invoke_agent")
    assert all("mas_eval.policy" in span.attributes for span in of(spans, "invoke_agent"))
    assert not any("gen_ai.request.model" in span.attributes for span in spans)
    names = Counter(span.name.split(" ")[0] for span in spans)
    assert names["turn"] == sum(len(transcript.turns) for transcript in load_run(tmp_path / "r").transcripts())


def test_the_tree_of_an_episode(tmp_path: Path) -> None:
    spans = exported(run(tmp_path / "r", Mock(text="a"), limit=1, overrides=("matrix.agents=[2]",)), tmp_path / "out")
    drawn = tree(spans)
    assert drawn[:2] == ["invoke_workflow toy", "  episode agents=2"]
    assert drawn.count("    invoke_agent S0") == drawn.count("    invoke_agent S1") == 1
    assert "        chat mock" in drawn and len(drawn) == len(spans)


def test_the_command_says_what_it_wrote(done: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = invoke(capsys, "export", str(done.folder), "--to", "otel", "-o", str(tmp_path), "--trace_content")
    assert code == 0 and "spans of 8 episodes, trace " in out and str(tmp_path / "traces.jsonl") in out
    code, _, errors = invoke(capsys, "export", str(done.folder), "--to", "csv", "-o", str(tmp_path), "--trace_content")
    assert code == 2 and "--trace_content is not for the form 'csv'" in errors
