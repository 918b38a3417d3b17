"""Inspect logs, read with the real package."""

import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Request
from harness.api.errors import RequestError
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.extensions.exports import export
from harness.runtime.options import Options
from harness.transcripts.view_api import Transcript
from tests.helpers.commands import invoke
from tests.helpers.programs import Ask, Programs
from tests.helpers.toy import TOY, run

pytestmark = pytest.mark.export


def answer(request: Request) -> Completion:
    rng = random.Random(request.seed)
    if rng.random() < 0.1:
        raise RequestError("busy")
    text = rng.choice(["a", "b", "?", "<script>\ud800"])
    return Completion(text, "so it is", rng.choice(["stop", "length"]), 10, 3, 4, 2, None, rng.random())


class Log:
    """An exported run, and what Inspect reads of it."""

    def __init__(self, exported: harness.Run, folder: Path) -> None:
        from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

        self.run = exported
        (self.file,) = export(exported, "inspect", folder).files
        self.log = read_eval_log(str(self.file))
        self.header = read_eval_log(str(self.file), header_only=True)
        self.summaries = read_eval_log_sample_summaries(str(self.file))
        self.transcripts = {transcript.id: transcript for transcript in exported.transcripts()}
        self._read = read_eval_log_sample

    def sample(self, episode: str) -> Any:
        name, _, repeat = episode.rpartition("/")
        return self._read(str(self.file), name, int(repeat) + 1, resolve_attachments=True)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp("inspect")
    return Log(run(folder / "r", Mock(function=answer), max_error_rate=1, repeats=2), folder / "logs")


def test_the_log_says_what_was_run(log: Log) -> None:
    assert log.header.status == "success" and log.header.samples is None
    assert (log.header.eval.task, log.header.eval.model, log.header.eval.config.epochs) == ("toy", "mock", 2)
    assert log.header.eval.model_generate_config.max_tokens == 8 and log.header.eval.dataset.samples == 8
    assert log.header.eval.viewer.trust_content is False
    results = {score.name: score for score in log.header.results.scores}
    assert set(results) == {"agreed", "parse_retries"} and log.header.results.completed_samples == 16
    for row in log.run.rows:
        assert results[row["metric"]].metrics[row["condition"]].value == row["value"]
    assert log.header.eval.headline_metric.score == log.header.results.scores[0].name == "agreed"
    assert results["agreed"].metrics["headline"].value == results["agreed"].metrics["mean"].value
    assert 0 < results["agreed"].metrics["mean"].value < 1 and results["agreed"].scored_samples == 16


def test_samples_have_scores_and_summaries(log: Log) -> None:
    assert len(log.log.samples) == len(log.summaries) == len(log.run.scores)
    scores = {score.id: score for score in log.run.scores}
    for summary in log.summaries:
        score = scores[f"{summary.id}/{summary.epoch - 1}"]
        assert {name: own.value for name, own in summary.scores.items()} == score.numbers
        assert summary.metadata["agents"] in (2, 3) and summary.completed
        assert summary.input.startswith("Round 0. Say one letter.")


def test_a_call_has_the_conversation_before_it_and_the_reply(log: Log) -> None:
    for episode, transcript in log.transcripts.items():
        sample = log.sample(episode)
        for agent in transcript.agents:
            calls = [event for event in sample.events if event.event == "model" and event.role == agent]
            expected = [(role, text.replace("\ud800", "\ufffd")) for role, text in transcript.conversation(agent)]
            assert [(message.role, message.text) for message in calls[-1].input] == expected[:-1]
            for call in calls:
                assert call.output.completion == expected[len(call.input)][1]
                assert call.error == ("busy" if not call.output.completion else None)
            answered = [call for call in calls if not call.error]
            assert all(call.output.choices[0].message.content[0].reasoning == "so it is" for call in answered)
            assert {call.output.stop_reason for call in answered} <= {"stop", "max_tokens"}


def test_usage_is_per_model_and_per_agent(log: Log) -> None:
    total = 0
    for episode, transcript in log.transcripts.items():
        sample = log.sample(episode)
        for agent in transcript.agents:
            count = sum(len(turn.move.calls) for turn in transcript.turns if turn.agent == agent)
            usage = sample.role_usage.get(agent)
            # Inspect counts what came from the cache apart: 10 input tokens, 4 of them cached.
            wanted = (6 * count, 4 * count, 3 * count, 13 * count, 2 * count)
            assert (
                usage is None
                if not count
                else wanted
                == (
                    usage.input_tokens,
                    usage.input_tokens_cache_read,
                    usage.output_tokens,
                    usage.total_tokens,
                    usage.reasoning_tokens,
                )
            )
            total += count
    assert log.header.stats.model_usage["mock"].total_tokens == 13 * total


def _lanes(timeline: Any) -> dict[str, list[Any]]:
    """Agent → its model events, of a timeline's spans, however deep."""
    lanes: dict[str, list[Any]] = {}
    spans = [timeline.root]
    while spans:
        for item in spans.pop(0).content:
            if item.type == "span":
                spans.append(item)
            elif item.event.event == "model":
                lanes.setdefault(item.event.role, []).append(item.event)
    return lanes


def test_each_agent_has_a_lane_and_each_round_a_place(log: Log) -> None:
    from inspect_ai.event import timeline_build

    for episode, transcript in log.transcripts.items():
        sample = log.sample(episode)
        agents, rounds = sample.timelines
        for lanes in (agents.root.content, timeline_build(sample.events).root.content):
            assert [span.name.casefold() for span in lanes] == [agent.casefold() for agent in transcript.agents]
            assert {span.span_type for span in lanes} == {"agent"}
        assert [span.name for span in rounds.root.content] == ["round 0", "round 1", "round 2"]
        by_agent, by_round = _lanes(agents), _lanes(rounds)
        assert {agent: [event.uuid for event in events] for agent, events in by_agent.items()} == {
            agent: [event.uuid for event in by_round[agent]] for agent in by_agent
        }
        _check_barriers(rounds, transcript)


def _check_barriers(rounds: Any, transcript: Transcript) -> None:
    """A round begins when the slowest agent of the one before is done."""
    start = 0.0
    for span, turns in zip(rounds.root.content, transcript.rounds, strict=True):
        took = max(sum(call.latency for call in turn.move.calls) for turn in turns)
        times = [item.event.working_start for agent in span.content for item in agent.content]
        assert min(times) == pytest.approx(start) and max(times) == pytest.approx(start + took)
        start += took


def test_policies_and_failed_episodes(tmp_path: Path) -> None:
    log = Log(run(tmp_path / "r", overrides=("baseline=illegal",)), tmp_path / "logs")
    sample = log.log.samples[0]
    assert sample.error is not None and "Illegal" in sample.error.message and not sample.scores
    assert log.header.results.scores == [] and sample.total_time is None
    assert log.summaries[0].error == sample.error.message


def test_a_policys_actions_are_there(tmp_path: Path) -> None:
    log = Log(run(tmp_path / "r"), tmp_path / "logs")
    events = log.log.samples[0].events
    actions = [event for event in events if event.event == "info"]
    assert {event.source for event in actions} == {"action of policy coin"} and actions[0].data["action"] in ("a", "b")
    assert not any(event.event == "model" for event in events)
    assert log.log.samples[0].metadata["players"] == {"S0": "policy coin", "S1": "policy coin"}


def test_a_single_models_messages_are_its_conversation(tmp_path: Path) -> None:
    log = Log(run(tmp_path / "r", Mock(text="b"), overrides=("matrix.agents=[1]",)), tmp_path / "logs")
    (conversation, *_) = (transcript.conversation("S0") for transcript in log.transcripts.values())
    sample = log.sample(next(iter(log.transcripts)))
    assert [(message.role, message.text) for message in sample.messages] == conversation
    assert sample.scores["agreed"].answer == sample.output.completion == "b"


def test_the_packages_own_writer_gives_the_same_log(log: Log, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    write_eval_log(log.log, str(tmp_path / "again.eval"))
    again = read_eval_log(str(tmp_path / "again.eval"), resolve_attachments=True)
    for name in ("eval", "results", "stats", "status"):
        assert getattr(again, name) == getattr(log.log, name)
    for sample, own in zip(again.samples, log.log.samples, strict=True):
        assert [_content(event) for event in sample.events] == [_content(event) for event in own.events]
        assert (sample.messages, sample.scores, sample.metadata) == (own.messages, own.scores, own.metadata)


def _content(event: Any) -> Any:
    """The event, without the names of messages: the package merges messages of the same text."""
    fields = event.model_dump()
    for message in fields.get("input", ()):
        del message["id"]
    return fields


def test_the_same_run_gives_the_same_bytes(log: Log, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = invoke(capsys, "export", str(log.run.folder), "--to", "inspect", "-o", str(tmp_path))
    assert code == 0 and "16 samples" in out and (tmp_path / log.file.name).read_bytes() == log.file.read_bytes()
    code, _, err = invoke(capsys, "export", str(log.run.folder), "--to", "inspect", "-o", str(tmp_path))
    assert code == 2 and log.file.name in err and "--overwrite" in err


def test_a_message_stands_once_in_a_sample(log: Log) -> None:
    episode = next(iter(log.transcripts))
    name, _, repeat = episode.rpartition("/")
    with zipfile.ZipFile(log.file) as archive:
        text = archive.read(f"samples/{name}_epoch_{int(repeat) + 1}.json").decode()
    agents = len(log.transcripts[episode].agents)
    assert text.count("Round 0. Say one letter.") == agents + 2  # and as input, and among the messages


def test_calls_of_tools_are_inspects_own_with_what_they_returned(tmp_path: Path) -> None:
    def calling(request: Request) -> Completion:
        again = any(message["role"] == "tool" for message in request.thread.messages)
        calls = [
            {"id": "a", "name": "submit_result", "arguments": '{"answer": 12}'} if again
            else {"id": "a", "name": "send_message", "arguments": '{"target_id": 1, "con'},
            {"id": "", "name": "wait", "arguments": ""},
        ]  # fmt: skip
        return Completion("so", finish_reason="tool_calls", tool_calls=calls)

    one = [
        "protocol.reply_via=tool_calls",
        "matrix.agents=[2]",
        "matrix.problem=[global_maximum]",
        "matrix.protocol=[P2P]",
    ]
    log = Log(
        harness.evaluate(
            "silo_quick", Mock(function=calling), overrides=one, output_path=tmp_path / "run", project=builtin()
        ),
        tmp_path,
    )
    (sample,) = (log.sample(episode) for episode in log.transcripts)
    first, second = (e for e in sample.events if e.event == "model" and e.role == "Agent-0")
    send, wait = first.output.message.tool_calls
    assert (send.function, send.arguments, wait.function, wait.arguments) == ("send_message", {}, "wait", {})
    assert send.parse_error == 'no JSON object: {"target_id": 1, "con' and wait.parse_error is None
    assert second.output.message.tool_calls[0].arguments == {"answer": 12}
    assert first.output.choices[0].stop_reason == "tool_calls" and first.tool_choice == "auto"
    for event in (first, second):
        assert [tool.name for tool in event.tools] == ["send_message", "receive_messages", "wait", "submit_result"]
    assert first.tools[0].description == "Deliver a message to the specified agent"
    assert first.tools[0].parameters.required == ["target_id", "content"]
    answers = [message for message in second.input if message.role == "tool"]
    assert [(m.tool_call_id, m.function, m.text[:12]) for m in answers] == [
        ("a", "send_message", "error: the a"), (wait.id, "wait", "your round h"),
    ]  # fmt: skip


def test_inner_calls_are_events_of_their_own(tmp_path: Path) -> None:
    """Apart from replies, whose tokens are not counted on top; each message stands once in the sample."""

    def said_so(request: Request) -> Completion:
        if request.thread.messages[-1]["content"] == "fail":
            raise RequestError("busy")
        return Completion("so", input_tokens=10, output_tokens=2)

    async def program(ask: Ask, request: Request) -> str:
        first = [{"role": "system", "content": "be brief"}, {"role": "odd", "content": "\ud800<b>"}]
        tools = [{"name": "look", "description": "", "parameters": {}}]
        await ask("", messages=first, tools=tools, sampling={"temperature": 0.25, "max_tokens": 9, "stop": ["END"]})
        more = [{"role": "assistant", "content": "", "tool_calls": [{"name": "look", "arguments": "{"}]}]
        await ask("", messages=[*first, *more, {"role": "tool", "content": "seen"}])
        with pytest.raises(RequestError):
            await ask("fail")
        return "a"

    plan = resolve.plan(
        spec.load("toy", TOY, ["matrix.agents=[2]", "generation_kwargs={temperature: 0.75}"], limit=1), TOY,
        Programs(program=program, inner=Mock(model="small", function=said_so)),
    )  # fmt: skip
    log = Log(execute(plan, Options(output_path=tmp_path / "r", max_error_rate=1.0)), tmp_path / "logs")
    (episode,) = log.transcripts
    sample = log.sample(episode)
    events = [event for event in sample.events if event.event == "model"]
    inner = [event for event in events if event.model == "small"]
    turns = sum(turn.move is not None for turn in log.transcripts[episode].turns)
    assert len(inner) == 3 * turns and len(events) == 4 * turns
    one, two, failed = inner[:3]
    assert [message.role for message in one.input] == ["system", "user"] and one.tools[0].name == "look"
    assert [message.role for message in two.input] == ["system", "user", "assistant", "tool"]
    assert two.output.completion == "so" and failed.error == "busy"
    assert one.config.model_dump(exclude_none=True) == {"temperature": 0.25, "max_tokens": 9, "stop_seqs": ["END"]}
    assert (
        two.config.model_dump(exclude_none=True)
        == log.header.eval.model_generate_config.model_dump(exclude_none=True)
        == {}
    ), "the temperature of the spec was in no request"
    assert sample.model_usage["small"].total_tokens == 24 * turns and "program" not in sample.model_usage
