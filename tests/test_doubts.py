"""What follows from failed requests is journaled once their engine has answered again."""

from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.api import Completion, Move
from harness.errors import EngineFatalError
from harness.runtime.doubts import Doubts


class Engine:
    model = "m"

    def __init__(self) -> None:
        self.answered, self.lenient = 0, False


class Book:
    """A journal behind doubts, and what it holds: (episode, batch, seat, kind of error) of moves, episodes of ends."""

    def __init__(self, folder: Path) -> None:
        self.engine, self.other = Engine(), Engine()
        self.file = storage.Journal(folder / "j")
        self.doubts = Doubts(self.file)
        self.ended: list[str] = []

    def move(self, episode: str, batch: int, seat: str, what: str, calls: int = 0, other: bool = False) -> None:
        """`what` is "answered", "policy", or the kind of an error."""
        engine = self.other if other else self.engine
        kind = None if what in ("answered", "policy") else what
        error = "no" if kind not in (None, storage.UNFINISHED) else None
        if what == "answered":
            engine.answered += 1
        made = tuple(Completion(f"{i}") for i in range(calls + (what == "answered")))
        move = Move(seat, "say", None, error, kind, made)
        self.doubts.move(storage.move_line(episode, batch, 0, batch, move), engine if error else None)

    def end(self, episode: str) -> None:
        self.doubts.end({"k": "end", "e": episode}, lambda: self.ended.append(episode))

    def written(self) -> list[Any]:
        self.file.flush()
        lines = [line for _, line in storage.lines(self.file.path)]
        return [
            line["e"] if line["k"] == "end" else (line["e"], line["b"], line["s"], storage.move_of(line).error_kind)
            for line in lines
        ]


@pytest.fixture
def book(tmp_path: Path) -> Any:
    made = Book(tmp_path)
    yield made
    made.file.close()


def test_without_failures_everything_is_written_as_it_comes(book: Book) -> None:
    book.move("e", 0, "A", "answered")
    book.move("e", 0, "B", "parse", calls=2)
    book.move("e", 0, "C", "context_length")
    book.move("e", 1, "P", "policy")
    book.end("e")
    assert book.written() == [
        ("e", 0, "A", None), ("e", 0, "B", "parse"), ("e", 0, "C", "context_length"), ("e", 1, "P", None), "e",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["request", "engine"])
def test_a_failure_and_what_follows_from_it_wait_for_the_next_answer(book: Book, kind: str) -> None:
    book.move("e", 0, "A", kind)
    book.move("e", 1, "A", kind)
    book.move("e", 1, "P", "policy")
    book.end("e")
    book.move("f", 0, "P", "policy")
    assert book.written() == [("f", 0, "P", None)] and book.ended == []
    book.move("f", 1, "A", "answered", other=True)  # another engine's answer says nothing of this one
    assert len(book.written()) == 2
    book.move("f", 1, "B", "answered")
    assert book.written()[2:] == [
        ("e", 0, "A", kind), ("e", 1, "A", kind), ("e", 1, "P", None), "e", ("f", 1, "B", None),
    ]  # fmt: skip
    assert book.ended == ["e"]


def test_answers_beside_a_failure_are_written_at_once(book: Book) -> None:
    book.move("e", 0, "A", "request")
    book.move("e", 0, "B", "answered", other=True)
    assert book.written() == [("e", 0, "B", None)]


def test_another_engines_answer_confirms_no_failure(book: Book) -> None:
    book.move("e", 0, "A", "request")
    book.move("e", 1, "B", "answered", other=True)
    book.move("e", 2, "B", storage.UNFINISHED, calls=1)
    assert book.written() == []
    book.move("f", 0, "A", "answered")
    assert book.written() == [
        ("e", 0, "A", "request"), ("e", 1, "B", None), ("e", 2, "B", storage.UNFINISHED), ("f", 0, "A", None),
    ]  # fmt: skip
    book.end("e")
    assert book.written()[-1] == "e"


def test_every_engine_that_failed_in_an_episode_has_to_answer(book: Book) -> None:
    """Two models behind a gateway that goes down, and only one of them comes back."""
    book.move("e", 0, "A", "request")
    book.move("e", 0, "B", "request", other=True)
    book.end("e")
    book.move("f", 0, "A", "answered")
    assert book.written() == [("f", 0, "A", None)]
    with pytest.raises(EngineFatalError, match=r"[12] failures"):
        book.doubts.settle()
    book.move("f", 1, "B", "answered", other=True)
    assert book.written()[1:] == [("e", 0, "A", "request"), ("e", 0, "B", "request"), "e", ("f", 1, "B", None)]


def test_a_move_that_failed_half_way_keeps_what_is_paid(book: Book) -> None:
    book.move("e", 0, "A", storage.UNFINISHED, calls=1)
    book.move("e", 0, "A", "request", calls=1)
    assert book.written() == [("e", 0, "A", storage.UNFINISHED)]
    [move] = storage.Progress(book.file.path).moves["e"].values()
    assert [call.text for call in move.calls] == ["0"]
    book.engine.answered += 1
    book.doubts.settle()
    assert book.written()[1:] == [("e", 0, "A", "request")]
    [move] = storage.Progress(book.file.path).moves["e"].values()
    assert move.error_kind == "request"


def test_a_re_ask_of_an_episode_in_doubt_is_written_at_once(book: Book) -> None:
    book.move("e", 0, "A", "request")
    book.move("e", 0, "B", storage.UNFINISHED, calls=1)
    assert book.written() == [("e", 0, "B", storage.UNFINISHED)]


def test_what_was_asked_is_written_whatever_is_believed(book: Book) -> None:
    line = storage.move_line("e", 0, 0, 0, Move("A", "say", None, "no", "request"))
    book.doubts.move({**line, "asked": [1, 0]}, book.engine)
    book.doubts.asked([2, 30])
    book.file.flush()
    progress = storage.Progress(book.file.path)
    assert (progress.calls, progress.tokens) == (3, 30) and progress.moves == {}


def test_at_the_end_of_a_run_what_no_answer_has_cleared_stops_it(book: Book) -> None:
    book.move("e", 0, "A", "request")
    book.end("e")
    book.other.answered += 1
    book.engine.answered += 1
    book.move("f", 0, "A", "engine", other=True)
    book.end("f")
    book.move("g", 0, "A", "request", other=True)
    with pytest.raises(
        EngineFatalError, match="to m failed, and nothing was answered since: 2 failures, the last with"
    ):
        book.doubts.settle()
    assert book.written() == [("e", 0, "A", "request"), "e"] and book.ended == ["e"]


def test_nothing_is_held_of_an_engine_whose_failures_are_results(book: Book) -> None:
    book.engine.lenient = True
    book.move("e", 0, "A", "request")
    book.end("e")
    assert book.written() == [("e", 0, "A", "request"), "e"] and book.ended == ["e"]
    book.doubts.settle()


def test_a_refusal_is_the_requests_own_and_never_in_doubt(book: Book) -> None:
    book.move("e", 0, "A", "refused")
    book.end("e")
    book.doubts.settle()
    assert book.written() == [("e", 0, "A", "refused"), "e"]
