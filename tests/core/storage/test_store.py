"""The journal: torn lines, damage, full disks, locks, and faithful round trips."""

import errno
import itertools
import json
import os
import re
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import storage
from harness.api import Completion, Episode, Move, Outcome
from harness.api.errors import DataError, StorageError
from harness.storage import finished_episodes
from harness.tables import EpisodeScore
from tests.helpers.disk import full_disk
from tests.helpers.journals import sealed

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
completions = st.builds(
    Completion,
    text=st.text(),
    reasoning=st.none() | st.text(),
    finish_reason=st.none() | st.sampled_from(["stop", "length"]),
    input_tokens=st.none() | st.integers(0, 10**6),
    output_tokens=st.none() | st.integers(0, 10**6),
    latency=st.none() | st.floats(0, 100),
)
no_error = st.tuples(st.none(), st.sampled_from([None, storage.UNFINISHED]))
errors = st.tuples(st.text(), st.sampled_from(["parse", "request"]))
moves = st.builds(
    lambda how, **parts: Move(error=how[0], error_kind=how[1], **parts),
    no_error | errors,
    agent=st.text(),
    turn=st.text(),
    action=json_values,
    calls=st.lists(completions, max_size=3).map(tuple),
    dropped_fields=st.lists(st.text(), max_size=2).map(tuple),
)


@given(moves, st.text(), st.integers(0, 9), st.integers(0, 9))
def test_moves_survive_the_journal(move: Move, episode: str, batch: int, index: int) -> None:
    line = json.loads(json.dumps(storage.move_line(episode, batch, 3, index, move)))
    assert storage.move_of(line) == move
    assert (line["e"], line["b"], line["p"], line["i"]) == (episode, batch, 3, index)
    assert line["k"] == ("part" if move.error_kind == storage.UNFINISHED else "move")
    assert None not in line.values() and [] not in [line.get("calls"), line.get("dropped_fields")], "no empty field"


@given(st.lists(st.lists(moves, max_size=3), max_size=3), json_values, st.none() | st.text())
def test_the_end_of_an_episode_is_all_but_its_moves(batches: list[list[Move]], action: Any, error: str | None) -> None:
    outcome = None if error else Outcome({"a": action})
    episode = Episode("c/x/1", "c", "x", 1, {}, {"a": "liar"}, batches, outcome, {"solved": 1.0}, error)
    line = storage.end_line(episode, {"size": 4}, {"score": 0.5}, error, {"limited": 2, "partial": 0})
    assert line == {
        "k": "end",
        "e": "c/x/1",
        "condition": "c",
        "case": "x",
        "repeat": 1,
        "labels": {"size": 4},
        "roles": {"a": "liar"},
        "moves": sum(len(batch) for batch in batches),
        "outcome": storage.outcome_line(outcome),
        "grade": {"solved": 1.0},
        "numbers": {"score": 0.5},
        "error": error,
        "limited": 2,  # and no mark that says nothing
    }


def test_lone_surrogates_and_nul_are_written_and_read(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j")
    journal.append({"k": "x", "text": "\ud800 \x00 \u2028 é"})
    journal.close()
    assert [line["text"] for _, line in storage.lines(tmp_path / "j")] == ["\ud800 \x00 \u2028 é"]


def test_outcomes_survive() -> None:
    outcome = Outcome({"a": 1}, group=[1], facts={"rounds": 2})
    assert storage.outcome_of(json.loads(json.dumps(storage.outcome_line(outcome)))) == outcome
    assert storage.outcome_of(storage.outcome_line(None)) is None


@pytest.mark.parametrize("tail", [b"", b"{", b'{"k":"mo', b'{"k":"move"}', b"\x00" * 9, b"x" * 200_000])
def test_a_torn_last_line_is_cut_and_the_journal_goes_on(tmp_path: Path, tail: bytes) -> None:
    file = tmp_path / "j"
    file.write_bytes(sealed({"k": 1}, {"k": 2}) + tail)
    assert [line["k"] for _, line in storage.lines(file)] == [1, 2]
    journal = storage.Journal(file)
    journal.append({"k": 3})
    journal.close()
    assert file.read_bytes() == sealed({"k": 1}, {"k": 2}, {"k": 3})


def test_a_file_that_is_one_torn_line_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(b"x" * 100_000)
    storage.Journal(tmp_path / "j").close()
    assert (tmp_path / "j").read_bytes() == b""


@pytest.mark.parametrize("bad", [b"garbage\n", b"[1]\n", b"\n", b"[" * 100_000 + b"\n", b"\xff\xfe\n"])
def test_damage_in_the_middle_is_reported_with_its_line(tmp_path: Path, bad: bytes) -> None:
    (tmp_path / "j").write_bytes(sealed({"k": 1}) + bad + sealed({"k": 2}))
    with pytest.raises(DataError, match=r"j:2:1: not a JSON object"):
        list(storage.lines(tmp_path / "j"))


def test_lines_reach_the_file_without_anybody_waiting_for_them(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j")
    journal.append({"k": 1})
    while (tmp_path / "j").read_bytes() != sealed({"k": 1}):
        pass
    journal.append({"k": 2})
    journal.flush()
    assert (tmp_path / "j").read_bytes() == sealed({"k": 1}, {"k": 2})
    journal.close()


@given(st.lists(st.lists(st.text(max_size=50), max_size=20), max_size=20))
def test_every_line_is_written_once_and_in_order(said: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j"
        for part in said:
            journal = storage.Journal(path)
            for text in part:
                journal.append({"text": text})
            journal.close()
        written = [line["text"] for _, line in storage.lines(path)] if said else []
    assert written == [text for part in said for text in part]


def test_a_reader_sees_whole_lines_while_they_are_written(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j")
    seen = 0
    for number in range(3000):
        journal.append({"number": number, "text": "x" * (number % 700)})
        if number % 100 == 0:
            numbers = [line["number"] for _, line in storage.lines(tmp_path / "j")]
            assert numbers == list(range(len(numbers))) and len(numbers) >= seen
            seen = len(numbers)
    journal.close()
    assert len(list(storage.lines(tmp_path / "j"))) == 3000


def test_more_than_a_disk_takes_at_once_is_waited_for(tmp_path: Path) -> None:
    """Lines of 1 MB come faster than they are written: no more than some of them wait in memory, all arrive."""
    journal = storage.Journal(tmp_path / "j")
    for number in range(40):
        journal.append({"number": number, "text": "x" * 10**6})
    journal.close()
    assert [line["number"] for _, line in storage.lines(tmp_path / "j")] == list(range(40))


def test_a_full_disk_is_a_storage_error_that_says_what_to_do() -> None:
    journal = storage.Journal(Path("/dev/full"))
    journal.append({"k": 1})
    with pytest.raises(StorageError, match=r"No space left(.|\n)*Make room"):
        journal.flush()
    with pytest.raises(StorageError, match="No space left"):
        journal.append({"k": 2})
    journal.close()  # told already


def test_a_failure_not_yet_reported_is_reported_at_the_end() -> None:
    journal = storage.Journal(Path("/dev/full"))
    journal.append({"k": 1})
    with pytest.raises(StorageError, match="No space left"):
        journal.close()


def test_a_full_disk_leaves_no_caller_waiting() -> None:
    """More than may wait in memory, for a disk that takes nothing."""
    journal = storage.Journal(Path("/dev/full"))
    with pytest.raises(StorageError, match="No space left"):
        while True:
            journal.append({"text": "x"})
    journal.close()


def test_a_journal_that_is_removed_is_not_written_into_nowhere(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j")
    journal.append({"k": 1})
    journal.flush()
    (tmp_path / "j").unlink()
    journal.append({"k": 2})
    with pytest.raises(StorageError, match="removed"):
        journal.close()


@given(
    st.lists(st.dictionaries(st.text(), st.integers() | st.text()), min_size=1, max_size=4), st.integers(0), st.data()
)
def test_a_flipped_bit_is_never_read_as_something_else(
    lines: list[dict[str, Any]], place: int, data: st.DataObject
) -> None:
    """It is an error that names the line, or it made the last line a torn one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j"
        content = bytearray(sealed(*({"k": "x", **line} for line in lines)))
        content[place % len(content)] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        torn = not content.endswith(b"\n")
        try:
            read = [line for _, line in storage.lines(path)]
        except DataError as error:
            assert re.search(r"j:\d:1: (not a JSON object|.*checksum differs)", str(error)) and "copy" in str(error)
        else:
            assert torn and len(read) == len(lines) - 1


@pytest.mark.parametrize("what", ["cut", "written into"])
def test_a_file_that_others_change_meanwhile_is_noticed(tmp_path: Path, what: str) -> None:
    journal = storage.Journal(tmp_path / "j")
    journal.append({"k": 1})
    journal.flush()
    if what == "cut":
        os.truncate(tmp_path / "j", 0)
    else:
        with (tmp_path / "j").open("ab") as other:
            other.write(sealed({"k": 2}))
    journal.append({"k": 3})
    expected = rf"something else has {what.split()[0]}.*bytes are there, not 50(.|\n)*Restore the missing part"
    with pytest.raises(StorageError, match=expected):
        journal.close()


def test_files_without_checksums_may_have_other_writers(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j", seal=False)
    (tmp_path / "j").write_bytes(b'{"other":1}\n')
    journal.append({"k": 1})
    journal.close()
    assert [line for _, line in storage.lines(tmp_path / "j", sealed=False)] == [{"other": 1}, {"k": 1}]
    with pytest.raises(DataError, match="checksum differs"):
        list(storage.lines(tmp_path / "j"))


class Disk:
    """A clock that goes on by half a second at each look, and what the disk says when it is waited for."""

    def __init__(self, patch: pytest.MonkeyPatch, code: int | None = None) -> None:
        self.now, self.waits, self.code = 0.0, 0, code
        patch.setattr(time, "monotonic", self.look)
        patch.setattr(os, "fsync", self.sync)

    def look(self) -> float:
        self.now += 0.5
        return self.now

    def sync(self, descriptor: int) -> None:
        self.waits += 1
        if self.code is not None:
            raise OSError(self.code, os.strerror(self.code))


def test_the_disk_is_waited_for_once_a_second_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    journal = storage.Journal(tmp_path / "j")  # looks at the clock at 0.5 s
    waits = []
    for number in range(5):
        journal.append({"k": number})
        journal.flush()
        waits.append(disk.waits)
    journal.close()
    assert waits == [0, 1, 1, 2, 2] and disk.waits == 3  # at 1.0, 1.5 (done at 2.0), 2.5, 3.0 (done at 3.5), 4.0


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_device_that_cannot_be_waited_for_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    Disk(monkeypatch, code)
    journal = storage.Journal(tmp_path / "j")
    journal.append({"k": 1})
    journal.close()
    assert (tmp_path / "j").read_bytes() == sealed({"k": 1})


def test_a_failure_that_shows_when_the_disk_is_waited_for_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch, errno.EIO)
    journal = storage.Journal(tmp_path / "j")
    journal.append({"k": 1})
    with pytest.raises(StorageError, match=r"Input/output error(.|\n)*Make room"):
        journal.close()


def test_a_program_may_end_with_a_journal_open(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j")
    assert [t.daemon for t in threading.enumerate() if str(tmp_path / "j") in t.name] == [True]
    journal.close()


def test_texts_stand_for_what_json_does_not_know_where_nothing_is_read_back(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j", lenient=True)
    journal.append({"k": Path("there")})
    journal.close()
    assert (tmp_path / "j").read_bytes() == sealed({"k": "there"})


def test_offsets_are_where_lines_begin(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(sealed({"k": 1}, {"k": "22"}, {"k": 3}))
    content = (tmp_path / "j").read_bytes()
    found = [(content[offset:].splitlines()[0], line["k"]) for offset, line in storage.lines(tmp_path / "j")]
    assert found == [(sealed({"k": k}).rstrip(), k) for k in (1, "22", 3)]
    with pytest.raises(DataError, match=r"cannot read .*none: No such file"):
        list(storage.lines(tmp_path / "none"))


def test_nothing_is_written_after_half_a_line(tmp_path: Path) -> None:
    """A move that comes in after the disk was full would be glued to it, and both be lost."""
    journal = storage.Journal(tmp_path / "j")
    journal.append({"k": "first"})
    journal.flush()
    journal.append({"k": "x" * 100})
    with full_disk(50), pytest.raises(StorageError):
        journal.flush()
    with pytest.raises(StorageError):
        journal.append({"k": "third"})
    journal.close()
    assert [line["k"] for _, line in storage.lines(tmp_path / "j")] == ["first"]
    storage.Journal(tmp_path / "j").close()
    assert (tmp_path / "j").read_bytes() == sealed({"k": "first"})


@pytest.mark.parametrize(
    "bad", ['{"k":"move"}', '{"k":"end","e":"x"}', '{"k":"move","e":"x","s":"S","i":0,"t":"t","calls":3}']
)
def test_lines_of_a_strange_shape_are_reported_with_their_line(tmp_path: Path, bad: str) -> None:
    (tmp_path / "j").write_bytes(sealed({"k": "note"}, json.loads(bad)))
    with pytest.raises(DataError, match=r"j:2:1: not a line of a journal"):
        storage.JournalState(tmp_path / "j")


def test_no_failure_of_any_kind_leaves_a_caller_waiting(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j")
    journal._file.close()  # what is written then raises no OSError
    journal.append({"k": 1})
    with pytest.raises(StorageError, match=r"cannot write .*j: .*closed file"):
        journal.flush()
    with pytest.raises(StorageError):
        journal.append({"k": 2})
    journal.close()


def test_what_is_not_json_is_not_written(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j")
    with pytest.raises(TypeError):
        journal.append({"k": {1}})
    journal.close()
    assert (tmp_path / "j").read_bytes() == b""


def test_an_unwritable_place(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write .*j: No such file or directory"):
        storage.Journal(tmp_path / "no such folder" / "j")
    with pytest.raises(StorageError, match="cannot write"):
        storage.write_atomically(tmp_path / "no such folder" / "f", "x")


def test_progress_keeps_moves_of_unfinished_episodes_only(tmp_path: Path) -> None:
    journal = storage.Journal(tmp_path / "j")
    for episode in ("one", "two"):
        journal.append(storage.move_line(episode, 0, 0, 0, Move("S", "say", "a")))
    end = {
        "k": "end",
        "e": "one",
        "condition": "c",
        "labels": {},
        "numbers": {"m": 1.0},
        "error": None,
        "outcome": None,
    }
    journal.append(end)
    journal.close()
    progress = storage.JournalState(tmp_path / "j")
    assert list(progress.ends) == ["one"]
    assert progress.moves == {"two": {("S", 0): Move("S", "say", "a")}}
    assert storage.JournalState(tmp_path / "none").ends == {}
    [(line, batches)] = list(finished_episodes.batches(tmp_path / "j"))
    assert line["e"] == "one" and batches == [[Move("S", "say", "a")]]


def test_an_end_has_all_that_makes_its_score(tmp_path: Path) -> None:
    turns = {"model": {"asked": 2, "answered": 1, "parse": 1}}
    score = EpisodeScore("c/k/0", "c", {"model": "m"}, {"x": 1.0}, None, True, True, turns, {"reason": 2})
    marks = {mark: getattr(score, mark) for mark in storage.MARKS}
    journal = storage.Journal(tmp_path / "j")
    journal.append(storage.end_line(Episode("c/k/0", "c", "k", 0, {}, {}, ()), score.labels, {"x": 1.0}, None, marks))
    journal.close()
    [(name, end)] = storage.JournalState(tmp_path / "j").ends.items()
    assert EpisodeScore.from_json({"id": name, **end}) == score


def test_the_order_in_which_journals_are_read_does_not_matter(tmp_path: Path) -> None:
    one, two = Completion("?"), Completion("??")
    moves = [
        Move("A", "say", None, None, storage.UNFINISHED, (one,)),
        Move("A", "say", None, None, storage.UNFINISHED, (one, two)),
        Move("A", "say", "a", None, None, (one, two, Completion("a"))),
    ]
    paths = [tmp_path / f"journal-{i}.jsonl" for i in range(3)]
    for path, move in zip(paths, moves, strict=True):
        path.write_bytes(sealed({**storage.move_line("e", 0, 0, 0, move), "asked": [1, 5]}))
    for order in itertools.permutations(range(3)):
        progress = storage.JournalState(*(paths[i] for i in order))
        assert progress.moves == {"e": {("A", 0): moves[2]}} and (progress.calls, progress.tokens) == (3, 15)
        assert storage.JournalState(*(paths[i] for i in order if i < 2)).moves == {"e": {("A", 0): moves[1]}}
    assert storage.JournalState(*paths, only={"f"}).moves == {}


@pytest.mark.parametrize("order", [1, -1])
def test_an_episode_that_has_ended_has_no_open_inner_calls_in_any_journal(tmp_path: Path, order: int) -> None:
    paths = [tmp_path / "journal-0.jsonl", tmp_path / "journal-1.jsonl"]
    end = storage.end_line(Episode("e", "c", "k", 0, {}, {}, ()), {}, {}, None, {})
    call = {"k": "inner", "s": "A", "i": 0, "r": 0, "n": 0, "try": 0, "model": "m", "call": {"text": "x"}}
    paths[0].write_bytes(sealed(end))
    paths[1].write_bytes(sealed({**call, "e": "e"}, {**call, "e": "f"}, {**call, "k": "dropped", "e": "e", "n": [0]}))
    progress = storage.JournalState(*paths[::order])
    assert (progress.ends.keys(), progress.inner.keys()) == ({"e"}, {"f"})


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b"", None),
        (sealed({"k": 1}, {"k": 2}), None),
        (sealed({"k": 1}) + b'{"k":2', None),  # torn, not damaged
        (sealed({"k": 1}) + b'{"k":2}\n' + sealed({"k": 3}), 2),
        (b"x\n" + sealed({"k": 2}), 1),
    ],
)
def test_the_first_damaged_line_is_found(tmp_path: Path, content: bytes, number: int | None) -> None:
    (tmp_path / "j").write_bytes(content)
    assert storage.first_damaged(tmp_path / "j") == number


@pytest.mark.parametrize(("content", "resumes"), [(b"", False), (b"torn", False), (b"\n", True), (b"\ntorn", True)])
def test_a_journal_knows_whether_it_goes_on(tmp_path: Path, content: bytes, resumes: bool) -> None:
    (tmp_path / "j").write_bytes(content)
    journal = storage.Journal(tmp_path / "j")
    assert journal.resumes == resumes
    journal.close()
    assert (tmp_path / "j").read_bytes() == content.removesuffix(b"torn")


@pytest.mark.parametrize(
    ("there", "read"),
    [
        ((), ("journal.jsonl",)),
        (("journal.jsonl",), ("journal.jsonl",)),
        (("journal-1.jsonl", "journal-0.jsonl"), ("journal-0.jsonl", "journal-1.jsonl")),
        (
            ("journal.jsonl", "journal-10.jsonl", "journal-9.jsonl"),
            ("journal.jsonl", "journal-9.jsonl", "journal-10.jsonl"),
        ),
        (("journal-old.jsonl", "journal-0.jsonl"), ("journal-0.jsonl",)),
    ],
)
def test_which_journals_a_run_has(tmp_path: Path, there: tuple[str, ...], read: tuple[str, ...]) -> None:
    for name in there:
        (tmp_path / name).touch()
    assert storage.journals(tmp_path) == [tmp_path / name for name in read]
