"""Failures are journaled at once; whether they are results is decided by who reads the journal."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness import storage
from harness.api import Completion, Move, Request
from harness.api.errors import RequestError
from harness.engines.mock import Mock
from harness.runtime.runner import RunStoppedError
from harness.storage import finished_episodes
from tests.helpers.journals import as_killed, sealed
from tests.helpers.samples import examples
from tests.helpers.toy import TOY

RESUME = {"k": storage.RESUME}


class Writer:
    """Writes lines as a run does: answers, failures and ends of episodes, with the engines' counts."""

    def __init__(self) -> None:
        self.lines: list[storage.Line] = []
        self.answered = {"A": 0, "B": 0}

    def move(self, episode: str, batch: int, what: str = "answered", engine: str = "A", calls: int = 0) -> None:
        """`what` is "answered", "policy", or the kind of an error."""
        error = None if what in ("answered", "policy", storage.UNFINISHED) else "no"
        kind = None if what in ("answered", "policy") else what
        self.answered[engine] += what in ("answered", storage.UNFINISHED)
        texts = tuple(Completion(f"{i}") for i in range(calls + (what == "answered")))
        place = sum(line.get("e") == episode and line.get("b") == batch for line in self.lines)
        move = Move(f"agent {place}", "say", None, error, kind, texts)
        line = storage.move_line(episode, batch, place, batch, move)
        self.lines.append(line if what == "policy" else {**line, "engine": [engine, self.answered[engine]]})

    def end(self, episode: str) -> None:
        self.lines.append({"k": "end", "e": episode})

    def restart(self) -> None:
        self.lines.append(RESUME)
        self.answered = {"A": 0, "B": 0}


def counting(lines: Sequence[storage.Line]) -> list[int]:
    """The numbers of the lines that count."""
    pending = storage.PendingFailures()
    return sorted(number for i, line in enumerate(lines) for number, _ in pending.add(line, i))


def by_definition(lines: Sequence[storage.Line]) -> list[int]:
    """The same, looked up in the lines that follow."""

    def of_process(lines: Sequence[tuple[int, storage.Line]]) -> list[int]:
        cut: dict[str, int] = {}
        void = set()
        for at, (number, line) in enumerate(lines):
            kind = line.get("error_kind")
            refused = kind in storage.REFUSALS and "engine" in line and not line["engine"][1]
            if (kind in storage.PASSING and "engine" in line) or refused:
                name, answered = line["engine"]
                later = (line["engine"] for _, line in lines[at + 1 :] if "engine" in line)
                if not any(other == name and count > answered for other, count in later):
                    cut.setdefault(line["e"], line["b"])
                    void.add(number)
        return [n for n, line in lines if n not in void and line.get("b", 1e9) <= cut.get(line["e"], 1e9)]

    results: list[int] = []
    process: list[tuple[int, storage.Line]] = []
    for number, line in [*enumerate(lines), (-1, RESUME)]:
        if line == RESUME:
            results += [*of_process(process), number]
            process = []
        else:
            process.append((number, line))
    return results[:-1]


def test_a_failure_and_what_follows_from_it_count_once_its_engine_answers() -> None:
    journal = Writer()
    journal.move("e", 0, "request")
    journal.move("e", 0, "answered", "B")  # was asked with the same history
    journal.move("e", 1, "answered", "B")
    journal.end("e")
    journal.move("f", 0, "answered", "B")  # says nothing of A
    assert counting(journal.lines) == [1, 4]
    journal.move("f", 1, "answered", "A")
    assert counting(journal.lines) == [0, 1, 2, 3, 4, 5]


def test_an_episode_is_cut_at_its_first_failure_that_no_answer_followed() -> None:
    """Two models behind a gateway that goes down, and only one of them comes back."""
    journal = Writer()
    journal.move("e", 0, "engine", "A")
    journal.move("e", 1, "request", "B")
    journal.move("e", 1, "request", "A")
    journal.move("f", 0, "answered", "A")
    journal.move("e", 2, "answered", "A")
    journal.end("e")
    assert counting(journal.lines) == [0, 2, 3], "failures of A are results"


def test_an_answer_that_was_given_before_the_failure_confirms_nothing() -> None:
    journal = Writer()
    journal.move("e", 0, "request")
    journal.lines.append({**storage.move_line("f", 0, 0, 0, Move("S", "say", "a")), "engine": ["A", 0]})
    assert counting(journal.lines) == [1]


def test_a_later_process_does_not_confirm_what_it_asks_again() -> None:
    journal = Writer()
    journal.move("e", 0, "request")
    journal.end("e")
    journal.restart()
    journal.move("e", 0, "answered")
    assert counting(journal.lines) == [2, 3]


@pytest.mark.parametrize("kind", ["refused", "context_length", "parse"])
def test_what_is_the_requests_own_fault_is_a_result_at_once(kind: str) -> None:
    journal = Writer()
    journal.move("f", 0, "answered")
    journal.move("e", 0, kind)
    journal.end("e")
    assert counting(journal.lines) == [0, 1, 2]


@pytest.mark.parametrize("kind", storage.REFUSALS)
def test_a_refusal_before_any_answer_waits_for_one(kind: str) -> None:
    journal = Writer()
    journal.move("e", 0, kind)
    journal.end("e")
    assert counting(journal.lines) == []
    answered = Writer()
    answered.lines, answered.answered = [*journal.lines], {"A": 0, "B": 0}
    answered.move("f", 0, "answered")
    assert counting(answered.lines) == [0, 1, 2]
    assert counting([*journal.lines, storage.refusals_line("B")]) == [2], "of another engine"
    assert counting([*journal.lines, storage.refusals_line("A")]) == [0, 1, 2], "the run came to its end"


def test_failures_without_a_count_are_results() -> None:
    lines: list[storage.Line] = [storage.move_line("e", 0, 0, 0, Move("S", "say", None, "no", "request"))]
    assert counting(lines) == [0]


def test_a_move_that_failed_half_way_keeps_the_answers_it_had(tmp_path: Path) -> None:
    one = Completion("?")
    part = Move("S", "say", None, None, storage.UNFINISHED, (one,))
    lines = [
        {**storage.move_line("e", 0, 0, 0, part), "asked": [1, 5]},
        {
            **storage.move_line("e", 0, 0, 0, Move("S", "say", None, "no", "request", (one,))),
            "engine": ["A", 1],
            "asked": [1, 0],
        },
    ]
    (tmp_path / "j").write_bytes(sealed(*lines))
    progress = storage.JournalState(tmp_path / "j")
    assert progress.moves == {"e": {("S", 0): part}} and (progress.calls, progress.tokens) == (2, 5)


def answered(journal: Path) -> set[str]:
    """The requests to which a journal holds answers, or failures, that count."""
    values = set()
    for _, line in finished_episodes.confirmed(journal):
        if line["k"] in ("move", "part"):
            calls = len(line.get("calls", ())) + (line.get("error_kind") == "request")
            values |= {f"{line['e']}/{line['s']}/{line['i']}/{attempt}" for attempt in range(calls)}
    return values


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_journals_of_several_workers_read_as_one(tmp_path: Path, order: tuple[int, int]) -> None:
    """A worker is lost in an outage after the end of an episode; another one plays it again from where it was cut."""
    end = {"k": "end", "e": "e", "condition": "c", "labels": {}, "numbers": {}, "error": None, "moves": 2}
    lost, other = Writer(), Writer()
    lost.move("e", 0)
    lost.move("e", 1, "request")
    lost.lines.append({**end, "numbers": {"m": 0.0}})
    other.move("e", 1)
    other.lines.append({**end, "numbers": {"m": 1.0}})
    paths = [tmp_path / f"journal-{i}.jsonl" for i in order]
    for path, writer in zip(paths, (lost, other), strict=True):
        path.write_bytes(sealed(*writer.lines))
    progress = storage.JournalState(*sorted(paths))
    assert [line["numbers"] for line in progress.ends.values()] == [{"m": 1.0}] and not progress.moves
    [(_, batches)] = finished_episodes.batches(*sorted(paths))
    assert [[move.error for move in batch] for batch in batches] == [[None], [None]]
    assert list(storage.JournalState(paths[0]).moves["e"]) == [("agent 0", 0)], (
        "what the lost worker had, up to the failure"
    )


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["e", "f", "g"]),
        st.booleans(),
        st.sampled_from(["answered", "request", "engine", "refused", "policy", storage.UNFINISHED, "end", "restart"]),
        st.sampled_from(["A", "B"]),
    ),
    max_size=30,
)


def journal_of(events: Sequence[Any]) -> list[storage.Line]:
    writer, batch, ended = Writer(), {"e": 0, "f": 0, "g": 0}, set()
    for episode, next_batch, what, engine in events:
        if what == "restart":
            writer.restart()
        elif episode not in ended:
            batch[episode] += next_batch
            if what == "end":
                ended.add(episode)
                writer.end(episode)
            else:
                writer.move(episode, batch[episode], what, engine, calls=what == storage.UNFINISHED)
    return writer.lines


@settings(max_examples=examples(500))
@given(EVENTS)
def test_reading_follows_the_definition(events: Any) -> None:
    lines = journal_of(events)
    assert counting(lines) == by_definition(lines)


@given(EVENTS, st.randoms(use_true_random=False))
def test_a_journal_cut_anywhere_counts_nothing_that_the_whole_one_does_not(events: Any, rng: random.Random) -> None:
    lines = journal_of(events)
    part = lines[: rng.randint(0, len(lines))]
    assert set(counting(part)) <= set(counting(lines)), "what is confirmed stays so"
    more = counting([*part, RESUME, *lines])
    offset = len(part) + 1
    assert more == [*counting(part), len(part), *(number + offset for number in counting(lines))], (
        "what is read stays so"
    )


@pytest.mark.parametrize("numbers", [range(4), pytest.param(range(4, 16), marks=pytest.mark.slow)], ids=["few", "many"])
def test_an_outage_anywhere_and_a_kill_anywhere_leave_the_same_results(tmp_path: Path, numbers: range) -> None:
    """Every failure of a living engine is a result, what failed in the outage is asked again, and nothing
    that counts is asked twice."""
    requests: list[str] = []
    outage = range(0)

    def answer(request: Request) -> str:
        requests.append(request.id)
        if len(requests) in outage or request.seed % 7 == 0:
            raise RequestError("overloaded" if len(requests) in outage else "a fault of this request")
        return "?" if request.seed % 5 == 0 else "ab"[request.seed % 2]

    def run(folder: Path, **more: Any) -> harness.Run:
        return harness.evaluate(
            "toy", Mock(function=answer), project=TOY, repeats=1, output_path=folder, max_concurrency=4, **more
        )

    def results(folder: Path) -> list[bytes]:
        return [(folder / name).read_bytes() for name in ("scores.jsonl", "results.json", "tables.md")]

    run(tmp_path / "calm" / "r")
    assert b"a fault of this request" in (tmp_path / "calm" / "r" / "journal.jsonl").read_bytes()
    total = len(requests)
    for case in numbers:
        rng = random.Random(case)
        folder, requests[:] = tmp_path / f"{case}" / "r", []
        start = rng.randint(2, total)
        outage = range(start, start + 500)
        with pytest.raises(RunStoppedError, match="requests to mock failed"):
            run(folder)
        journal = folder / "journal.jsonl"
        assert b"overloaded" in journal.read_bytes(), "failures are on disk at once"
        if case % 2:  # killed in the middle of it
            journal.write_bytes(journal.read_bytes()[: rng.randint(0, journal.stat().st_size // 2)])
            as_killed(folder)
        recorded = answered(journal)
        requests[:], outage = [], range(0)
        run(folder)
        assert results(folder) == results(tmp_path / "calm" / "r")
        assert not recorded & set(requests) and len(set(requests)) == len(requests)
        assert answered(journal) == answered(tmp_path / "calm" / "r" / "journal.jsonl")
