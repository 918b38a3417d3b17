"""SILO-Bench through the front door: hostile replies, resuming, the cost of coordination, figures of the paper."""

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Completion, Request
from harness.api.errors import RequestError, UserError
from harness.config import project
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from harness.tables import Table
from tests.helpers import shipped
from tests.helpers.fake_openai import FakeOpenAI, chat
from tests.helpers.journals import as_killed

BUILTIN = project.builtin()
ONE = ["matrix.agents=[3]", "matrix.problem=[global_maximum]", "protocol.max_rounds=4"]
PAPER = [*shipped.published_by("silo").values()]


def evaluate(folder: Path, answer: Any, *overrides: str, spec: str = "silo_quick", **more: Any) -> Run:
    model = Mock(function=answer) if callable(answer) else Mock(text=answer)
    return harness.evaluate(spec, model, overrides=[*ONE, *overrides], output_path=folder, **more)


def only(run: Run, protocol: str) -> dict[str, Any]:
    [score] = [score for score in run.scores if score.labels["protocol"] == protocol]
    return dict(score.numbers)


def results(folder: Path, protocol: str) -> list[str]:
    """Every result that a conversation of the protocol was shown."""
    outputs: list[str] = []
    for line in (folder / "samples.jsonl").read_text().splitlines():
        sample = json.loads(line)
        if f"protocol={protocol}" in json.dumps(sample):
            outputs += [text for text in json.dumps(sample, ensure_ascii=False).split("\\n") if text.startswith("- ")]
    return outputs


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("protocol", "reply", "message", "refused"),
    [
        (
            "P2P",
            '<send_message target_id="99">x</send_message>',
            "there is no agent '99'; there are Agent-0",
            3,
        ),
        ("P2P", "<send_message>x</send_message>", "target_id is missing", 3),
        ("P2P", '<send_message target_id="1">x', "</send_message> is missing", 3),
        ("P2P", "<launch_missiles/>", "there is no launch_missiles; there are: send_message", 3),
        ("P2P", "I would rather not.", "no call was found", 3),
        ("P2P", "", "no call was found", 3),
        ("SFS", '<read_file path="../../etc/passwd"/>', "there is no file '../../etc/passwd'", 3),
        ("SFS", '<delete_file path="nothing"/>', "there is no file 'nothing'", 3),
        ("SFS", f'<write_file path="{"x" * 500}">1</write_file>', "a path has 1 to 200 printable characters", 3),
        ("P2P", "<submit_result>I do not know</submit_result>", "the answer must be one integer and nothing else", 3),
        ("P2P", "<submit_result>1,202</submit_result>", "the answer must be one integer and nothing else; [1, 202]", 3),
        ("P2P", "<submit_result>answer</submit_result>", "write your own in place of answer", 3),
    ],
)
def test_what_is_wrong_is_answered_in_words_and_counted(
    tmp_path: Path, protocol: str, reply: str, message: str, refused: int
) -> None:
    run = evaluate(tmp_path / "r", reply, f"matrix.protocol=[{protocol}]", "protocol.max_rounds=2", log_samples=True)
    numbers = only(run, protocol)
    assert not run.failed and numbers["refused_calls"] == 2 * refused and numbers["timeout"] == 1
    assert any(message in line for line in results(tmp_path / "r", protocol)), results(tmp_path / "r", protocol)
    assert (numbers["messages"], numbers["silo/success"]) == (0, 0)


@pytest.mark.slow
def test_a_message_to_oneself_is_refused_and_others_arrive(tmp_path: Path) -> None:
    run = evaluate(tmp_path / "r", '<send_message target_id="1">hi</send_message>', "matrix.protocol=[P2P]")
    numbers = only(run, "P2P")
    assert (numbers["messages"], numbers["refused_calls"]) == (2 * 4, 4)


@pytest.mark.slow
def test_ten_thousand_calls_in_one_reply(tmp_path: Path) -> None:
    run = evaluate(tmp_path / "r", "<receive_messages/>" * 10_000, "matrix.protocol=[P2P]", "protocol.max_rounds=1")
    assert only(run, "P2P")["refused_calls"] == 3, "one line for all that is too much"
    [*_, end] = [line for _, line in storage.lines(tmp_path / "r" / "journal.jsonl") if line["k"] == "move"]
    assert end["a"][-1] == {"call": "", "skipped": 10_000 - 11} and len(end["a"]) == 12


@pytest.mark.slow
def test_a_message_that_is_too_long_is_refused_whole(tmp_path: Path) -> None:
    reply = f"<broadcast_message>{'x' * 50}</broadcast_message><broadcast_message>short</broadcast_message>"
    channel = "matrix.protocol=[{name: BP, channel: {use: broadcast, max_chars: 20}}]"
    numbers = only(evaluate(tmp_path / "r", reply, channel), "BP")
    assert (numbers["messages"], numbers["refused_calls"]) == (3 * 4, 3 * 4)


@pytest.mark.slow
def test_the_first_answer_that_can_be_read_is_final(tmp_path: Path) -> None:
    reply = "<submit_result>7</submit_result><submit_result>8</submit_result><broadcast_message>x</broadcast_message>"
    run = evaluate(tmp_path / "r", reply, "matrix.protocol=[BP]")
    numbers = only(run, "BP")
    assert (numbers["rounds"], numbers["messages"], numbers["calls"], numbers["timeout"]) == (1, 0, 3, 0)
    assert (numbers["premature"], numbers["consensus"], numbers["computation"]) == (1, 0, 0)


def test_failed_requests_lose_a_round_and_nothing_else(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        if "/Agent-1/" in request.id and request.id.endswith("/0/0"):
            raise RequestError("the server is away")
        return "<submit_result>7</submit_result>"

    numbers = only(evaluate(tmp_path / "r", answer, "matrix.protocol=[P2P]"), "P2P")
    assert (numbers["engine_errors"], numbers["rounds"], numbers["timeout"]) == (1, 2, 0)


# ------------------------------------------------------------------------------------ runs and tables


def talkative(request: Request) -> Completion:
    """Says something for two rounds, then submits what its seed says."""
    if len(request.thread.messages) < 6:
        return Completion('<send_message target_id="0">one</send_message><wait/>', input_tokens=50, output_tokens=9)
    return Completion(f"<submit_result>{request.seed % 5}</submit_result>", input_tokens=90, output_tokens=6)


@pytest.mark.slow
def test_neither_concurrency_nor_an_interruption_changes_scores(tmp_path: Path) -> None:
    whole = evaluate(tmp_path / "whole", talkative)
    narrow = evaluate(tmp_path / "narrow", talkative, max_concurrency=1)
    journal = (tmp_path / "whole" / "journal.jsonl").read_bytes()
    (tmp_path / "cut").mkdir()
    for file in (tmp_path / "whole").iterdir():
        if file.name not in ("journal.jsonl", "scores.jsonl", "results.json") and file.is_file():
            (tmp_path / "cut" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "cut" / "journal.jsonl").write_bytes(journal[: len(journal) // 2])
    as_killed(tmp_path / "cut")
    resumed = evaluate(tmp_path / "cut", talkative)
    numbers = [score.numbers for score in whole.scores]
    assert numbers == [score.numbers for score in narrow.scores] == [score.numbers for score in resumed.scores]
    assert all(n["silo/token_consumption"] == (3 * (9 + 9 + 6)) / 4 for n in numbers[:1])


@pytest.mark.slow
def test_the_cost_of_coordination_by_hand(tmp_path: Path) -> None:
    """Alone always right; in teams of three nobody is: all is lost. The other way round there is no cost to tell."""
    truth = next(iter(BUILTIN.load("tasks", "silo/global_maximum")(agents=3, whole=True).cases(1, 0))).target[0]

    def answer(request: Request) -> str:
        alone = "team=alone" in request.id
        return f"<submit_result>{truth if alone else -5000}</submit_result>"

    overrides = ["matrix.agents=[3]", "matrix.problem=[global_maximum]", "seed=0"]
    run = harness.evaluate("silo_rcc", Mock(function=answer), overrides=overrides, output_path=tmp_path / "r")
    table = run.tables[0]
    assert [cell.value for cell in table.rows[0].cells] == [1, 0, 1]
    run = harness.evaluate("silo_rcc", Mock(text="<wait/>"), overrides=overrides, output_path=tmp_path / "s")
    assert [cell.value for cell in run.tables[0].rows[0].cells] == [0, 0, None]


def test_in_the_planning_round_nothing_is_submitted_and_messages_arrive(tmp_path: Path) -> None:
    proposal = '<send_message target_id="0">I propose that you collect everything</send_message>'

    def answer(request: Request) -> str:
        planning = "Planning round" in request.thread.messages[-1]["content"]
        return proposal if planning and "/Agent-0/" not in request.id else "<submit_result>1</submit_result>"

    overrides = ["matrix.agents=[3]", "matrix.problem=[global_maximum]", "matrix.scaffold=[planning]"]
    run = harness.evaluate(
        "silo_scaffolds", Mock(function=answer), overrides=overrides, output_path=tmp_path / "r", log_samples=True
    )
    [score] = run.scores
    assert (score.numbers["messages"], score.numbers["refused_calls"], score.numbers["rounds"]) == (2, 1, 1)
    text = (tmp_path / "r" / "samples.jsonl").read_text()
    assert "this round is for planning; submit later" in text and "- Agent-2: I propose" in text


@pytest.mark.slow
def test_the_papers_figures_stand_beside_a_runs_own(tmp_path: Path) -> None:
    run = harness.evaluate("silo_bench", overrides=["matrix.agents=[2]"], output_path=tmp_path / "r")
    tables = {table.title: table for table in run.with_published(PAPER)}
    protocols = tables["Overall performance by communication protocol"]
    row = next(r for r in protocols.rows if r.published and r.names == ("DeepSeek-V3.1", "P2P"))
    assert [cell.value for cell in row.cells] == [0.389, 0.504, 363.1, None, 1.52]
    outputs: list[Table] = [table for table in tables.values() if any(row.published for row in table.rows)]
    assert len(outputs) == 14, sorted(table.title for table in outputs)
    unplaced = [note for table in tables.values() for note in table.notes if "have no place" in note]
    assert unplaced == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("task.items=0", "'items' must be ≥ 1, found 0"), ("matrix.agents=[0]", "'agents' must be ≥ 1, found 0"),
        ("task.domain=harder", "domain"), ("matrix.protocol=[{name: X, channel: mailbx}]", "mailbox"),
        ("protocol.calls_per_round=0", "must be ≥ 1"), ("matrix.problem=[global_maximun]", "global_maximum"),
        ("baseline.plan=comb", "plan"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_reported_with_their_bounds(change: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        harness.evaluate("silo_quick", overrides=[change])


@pytest.mark.slow
def test_text_and_tools_stand_side_by_side_against_a_server(tmp_path: Path) -> None:
    """A model that calls tools well, and does not keep to the form of a text."""

    def answer(body: dict[str, Any]) -> Any:
        if "tools" not in body:
            return "submit_result: 977"
        function = {"name": "submit_result", "arguments": '{"answer": 977}'}
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]}
        return chat(message, usage={"prompt_tokens": 50, "completion_tokens": 9})

    more = ["matrix.protocol=[P2P]", "protocol.max_rounds=2", "protocol.parse_retries=1"]
    with FakeOpenAI(answer) as server:
        arguments = {"base_url": server.url, "model": "fake", "api_key_env": "NO_SUCH_KEY"}
        run = harness.evaluate(
            "silo_calls", "openai", model_args=arguments, overrides=[*ONE[:2], *more], output_path=tmp_path
        )
    numbers = {score.labels["form"]: score.numbers for score in run.scores}
    assert [numbers[form]["parse_failures"] for form in ("text", "tools")] == [3 * 2, 0]
    assert [numbers[form]["calls"] for form in ("text", "tools")] == [3 * 2 * 2, 3]
    assert numbers["tools"]["tokens_total"] == 3 * 59
    first = run.tables[0]
    shown = {row.key["form"]: [cell.value for cell in row.cells] for row in first.rows}
    assert (shown["text"][2], shown["tools"][2]) == (6, 0)
