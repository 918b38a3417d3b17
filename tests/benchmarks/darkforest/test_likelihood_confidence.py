"""`confidence: likelihood`: how probable a member's answer is among the options of the question, as its confidence."""

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Engine, Move, Outcome, Request, Turn
from harness.api.errors import RequestError, SpecError
from harness.cli import main
from harness.engines.likelihoods import LikelihoodRequest
from harness.engines.mock import Mock
from harness.engines.replay import Replay
from harness.extensions.panels.calibrated_protocol import CalibrationEpisode
from harness.runtime.runner import RunStoppedError
from tests.benchmarks.darkforest.darkforest_kit import BUILTIN, A, B, C, DarkForest, moved, question
from tests.extensions.datasets.documents_kit import jsonl
from tests.helpers.mock_scores import mock_scores

TASK, CASE = question()
SAID = {A: "The answer is (B)", B: "The answer is (B)", C: "The answer is (C)"}
SHARES = {A: [0.1, 0.6, 0.2, 0.1], B: [0.25, 0.25, 0.25, 0.25], C: [0.0, 0.05, 0.9, 0.05]}


def likelihoods(shares: list[float]) -> list[list[float | bool]]:
    """Log-likelihoods, any number lower: only their differences count."""
    return [[math.log(share) - 7 if share else -math.inf, False] for share in shares]


def played(protocol: Any, said: dict[str, str] = SAID, shares: Any = SHARES) -> tuple[list[list[Turn]], Outcome]:
    """The turns, batch by batch, and the outcome; an agent without shares fails to be scored."""
    game = protocol.play(TASK, CASE, protocol.possible_agents(CASE), random.Random(0))
    batches: list[list[Turn]] = [next(game)]
    while True:
        moves = []
        for turn in batches[-1]:
            if turn.name == "confidence":
                found = likelihoods(shares[turn.agent]) if turn.agent in shares else None
                moves.append(Move(turn.agent, turn.name, found, calls=(Completion(""),)))
            else:
                moves.append(moved(turn, said.get(turn.agent, "The answer is (B)")))
        try:
            batches.append(game.send(moves))
        except StopIteration as stop:
            return batches, stop.value


def darkforest(**parameters: Any) -> Any:
    return DarkForest(**{"agents": 3, "confidence": "likelihood", **parameters})


def test_members_score_the_options_in_a_turn_of_their_own() -> None:
    batches, outcome = played(darkforest())
    assert [[turn.name for turn in batch] for batch in batches] == [["answer"] * 3, ["confidence"] * 3, ["coordinate"]]
    for answer, turn in zip(*batches[:2], strict=True):
        assert answer.context["confidence"] == "none" and turn.context == answer.context and turn.fresh
        assert [text.text for text in turn.reply.continuations] == ["A", "B", "C", "D"]  # type: ignore[attr-defined]
        assert turn.observation == {"options": ["A", "B", "C", "D"]}
    scores = (0.5 + 0.6) + (0.5 + 0.25), 0.5 + 0.9
    assert outcome.facts["posterior"] == pytest.approx(scores[0] / sum(scores))
    evidence = batches[2][0].observation["evidence"]
    assert all(f"confidence {number}" in evidence for number in ("0.6", "0.25", "0.9")), evidence


def test_only_the_probability_of_the_own_answer_counts() -> None:
    """A member that reasons its way to an answer other than its likeliest option is unsure of it."""
    _, outcome = played(darkforest(terms=["confidence"]), said={**SAID, C: "The answer is (B)"})
    assert outcome.facts["clusters"][0]["score"] == pytest.approx(3 * 0.5 + 0.6 + 0.25 + 0.05)
    _, impossible = played(darkforest(terms=["confidence"]), said={**SAID, C: "The answer is (A)"})
    assert impossible.facts["clusters"][1]["score"] == 0.5


@pytest.mark.parametrize("shares", [{A: SHARES[A]}, {A: SHARES[A], B: [0.0] * 4, C: [0.0] * 4}])
def test_a_confidence_that_is_missing_is_imputed(shares: Any) -> None:
    _, outcome = played(darkforest(c_miss=0.3), shares=shares)
    scores = (0.5 + 0.6) + (0.5 + 0.3), 0.5 + 0.3
    assert outcome.facts["posterior"] == pytest.approx(scores[0] / sum(scores))


def test_questions_without_options_are_refused(tmp_path: Path) -> None:
    what = spec(tmp_path, answer={"form": "text"}, doc_to_choice=None, doc_to_target="{{options[gold]}}")
    with pytest.raises(SpecError, match=r"needs questions with options; answers of this task are free"):
        harness.evaluate(what, Mock(), output_path=tmp_path, project=BUILTIN)
    what = spec(tmp_path, {"use": "debate", "confidence": "likelihood"})
    with pytest.raises(SpecError, match="'likelihood'"):
        harness.evaluate(what, Mock(), output_path=tmp_path, project=BUILTIN)


def test_the_calibration_asks_in_the_same_way() -> None:
    protocol = darkforest()
    vote = BUILTIN.load("protocols", "vote")(
        **{key: value for key, value in protocol.calibration_protocol().items() if key != "use"}
    )
    batches, _ = played(vote)
    assert [len(batch) for batch in batches] == [3, 3] and batches[1][0].name == "confidence"
    scored = [Move(agent, "confidence", likelihoods(shares)) for agent, shares in SHARES.items() if agent != C]
    moves = [moved(turn, SAID[turn.agent]) for turn in batches[0]]
    facts = protocol.fit([CalibrationEpisode(TASK, CASE, [moves, scored], lambda action: action == "B")])
    assert facts["unstated"] == {"correct": 0, "valid": 1, "all": 1}, "only C's is missing"


def test_reconcile_weighs_votes_by_it() -> None:
    said = {**SAID, B: "The answer is (C)"}
    protocol = BUILTIN.load("protocols", "reconcile")(confidence="likelihood", rounds=1)
    batches, outcome = played(protocol, said)
    assert [batch[0].name for batch in batches] == ["answer", "confidence", "discuss"]
    assert outcome.facts["votes"] == {"B": 1.0, "C": 1.0 + 8.0} and outcome.facts["imputed"] == 0
    members = [member for group in batches[2][0].observation["groups"] for member in group["members"]]
    assert sorted(member["confidence"] for member in members) == [0.25, 0.6, 0.9]


def test_a_vote_weighs_by_confidence() -> None:
    vote = BUILTIN.load("protocols", "vote")
    batches, outcome = played(vote(agents=3, confidence="likelihood", weights="confidence"))
    assert [turn.name for turn in batches[1]] == ["confidence"] * 3
    assert outcome.facts["votes"] == {"B": pytest.approx(0.6 + 0.25), "C": 0.9} and outcome.group == "C"
    _, missing = played(vote(agents=3, confidence="likelihood", weights="confidence"), shares={C: SHARES[C]})
    assert missing.facts["votes"] == {"B": 1.0, "C": 0.9}
    stated = {A: "The answer is (B)\nConfidence: 0.2", B: "The answer is (B)\nConfidence: 0.3", C: SAID[C]}
    _, line = played(vote(agents=3, confidence="line", weights="confidence"), stated)
    assert line.facts["votes"] == {"B": 0.5, "C": 0.5} and line.facts["tied"]
    weighed = vote(agents=3, weights="confidence")
    assert "needs votes that have one" in weighed.misfit(BUILTIN.load("tasks", "arithmetic")())


# ------------------------------------------------------------------------------------ in a run


def spec(tmp_path: Path, protocol: Any = None, baseline: Any = None, **task: Any) -> dict[str, Any]:
    rows = [{"q": f"Is {i} odd?", "options": ["yes", "no", "never"], "gold": i % 2} for i in range(12)]
    keys = {"doc_to_text": "q", "doc_to_target": "gold", "doc_to_choice": "options", "answer": {"form": "letter"}}
    return {
        "name": "sure",
        "task": {"use": "dataset_qa", "data_files": str(jsonl(tmp_path / "test.jsonl", rows)), **keys, **task},
        "protocol": protocol or {"use": "darkforest", "agents": 3, "confidence": "likelihood"},
        "prompts": "panels/standard",
        "metrics": ["score"],
        "tables": [{"title": "Score", "rows": "model", "columns": "metric", "metrics": ["score"]}],
        **({"baseline": baseline} if baseline else {}),
    }


def ends(folder: Path) -> dict[str, Any]:
    lines = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    return {line["e"]: (line["outcome"], line["grade"]) for line in lines if line["k"] == "end"}


def answers(request: Request) -> str:
    return f"The answer is ({'ABC'[request.seed % 3]})."


@pytest.mark.slow
def test_a_stopped_run_goes_on_where_it_was_and_a_replay_gives_the_same(tmp_path: Path) -> None:
    whole, parts, again = (tmp_path / name for name in ("whole", "parts", "again"))
    options: dict[str, Any] = {"project": BUILTIN, "max_concurrency": 2}
    what = spec(tmp_path)
    harness.evaluate(what, Mock(function=answers), output_path=whole, **options)
    for calls in (17, 23):
        with pytest.raises(RunStoppedError):
            harness.evaluate(what, Mock(function=answers), output_path=parts, max_calls=calls, **options)
    harness.evaluate(what, Mock(function=answers), output_path=parts, **options)
    harness.evaluate(what, Replay(path=str(whole)), output_path=again, **options)
    assert ends(whole) == ends(parts) == ends(again) and len(ends(whole)) == 12
    moves = [json.loads(line) for line in (whole / "journal.jsonl").read_text().splitlines()]
    assert sum(move["k"] == "move" for move in moves) == 12 * 7


@pytest.mark.slow
def test_simulated_members_are_as_sure_as_they_would_say(tmp_path: Path) -> None:
    """So what is known of methods on simulated panels holds for either source of confidence."""
    baseline = {"use": "simulated", "accuracy": 0.6, "confidence_wrong": 0.6, "conformity": 0.5}
    found, charts = {}, {}
    for style in ("line", "likelihood"):
        what = spec(tmp_path, {"use": "darkforest", "agents": 3, "confidence": style}, baseline)
        harness.evaluate(what, None, output_path=tmp_path / style, project=BUILTIN)
        found[style] = ends(tmp_path / style)
        chart = tmp_path / f"{style}.svg"
        assert main(["plot", str(tmp_path / style), "--kind", "calibration", "-o", str(chart)]) == 0
        charts[style] = re.findall(r"ECE [0-9.]+", chart.read_text())
    for name, (outcome, grade) in found["line"].items():
        other, other_grade = found["likelihood"][name]
        assert (outcome["answers"], outcome["group"], grade) == (other["answers"], other["group"], other_grade)
        assert outcome["facts"]["posterior"] == pytest.approx(other["facts"]["posterior"], abs=1e-4)
    assert charts["line"] == charts["likelihood"] and charts["line"]


@pytest.mark.slow
def test_an_engine_that_cannot_score_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    class Writes(Engine):
        model = "writes"

        async def complete(self, request: Request) -> Completion:
            raise AssertionError("asked")

    with pytest.raises(SpecError, match="turn 'confidence' is scored by log-likelihoods"):
        harness.evaluate(spec(tmp_path), Writes(), output_path=tmp_path, project=BUILTIN)


def test_a_failed_turn_costs_no_episode(tmp_path: Path) -> None:
    def score(request: LikelihoodRequest) -> list[list[float | bool]]:
        if "Agent-1" in request.id and "0/" in request.id:
            raise RequestError("the server was busy")
        return [[-1.0 - i, False] for i in range(3)]

    run = harness.evaluate(
        spec(tmp_path), Mock(function=mock_scores(score, answers)), output_path=tmp_path / "run", project=BUILTIN,
        max_error_rate=1,
    )  # fmt: skip
    assert len(run.scores) == 12 and not run.failed
    prompts = [text for one in run.transcripts() for turn in one.turns for _, text in turn.prompt]
    assert any("Reply with your choice alone, nothing before or after it: A, B, C" in text for text in prompts)
