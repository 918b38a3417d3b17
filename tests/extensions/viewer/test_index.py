"""The index of a run: the same however the journals grew, and never in the way of reading them."""

import contextlib
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness import storage
from harness.api import Completion, Move
from harness.api.errors import DataError
from harness.engines.mock import Mock
from harness.extensions.viewer.run_index import EpisodeQuery, Goal, RunIndex
from harness.storage import finished_episodes
from harness.transcripts.reader import Transcripts
from tests.helpers.journals import sealed
from tests.helpers.samples import examples
from tests.helpers.toy import TOY, run


def journal_of(seed: int, episodes: Sequence[str]) -> list[storage.Line]:
    """Interleaved episodes of a run whose engine fails at times, and which was killed and resumed once."""
    rng = random.Random(seed)
    lines: list[storage.Line] = []
    left = {name: rng.randrange(1, 6) for name in episodes}
    played = dict.fromkeys(episodes, 0)
    answered, broken = 0, False
    while left:
        if rng.random() < 0.1:
            broken = not broken
        if rng.random() < 0.05:
            lines.append({"k": storage.RESUME})
            answered = 0
        name = rng.choice(list(left))
        calls = (Completion("hello", input_tokens=3, output_tokens=rng.choice([None, 5]), latency=0.5),)
        kind = "request" if broken else rng.choice([None, None, "parse", "limit", storage.UNFINISHED])
        answered += not broken
        move = Move("A", "say", None, kind and "no", kind, () if broken else calls)
        lines.append({**storage.move_line(name, played[name], 0, played[name], move), "engine": ["E", answered]})
        played[name] += kind != storage.UNFINISHED
        left[name] -= kind != storage.UNFINISHED
        if not left[name]:
            del left[name]
            if rng.random() < 0.9:
                lines.append(ending(name, played[name], rng.choice([None, 0.0, 0.5, 1.0])))
    return lines


def ending(name: str, moves: int, solved: float | None = 1.0, **more: Any) -> storage.Line:
    condition, case, repeat = name.split("/")
    line = {"k": "end", "e": name, "condition": condition, "case": case, "repeat": int(repeat), "roles": {}}
    line |= {"labels": {"size": 4, "name": case}, "moves": moves, "grade": {}, "error": None}
    return {**line, "outcome": {"answers": {"A": name}, "group": None, "facts": {}}, "numbers": {"x": solved}, **more}


def content(index: RunIndex) -> dict[str, Any]:
    """All that the index says, by episode, with the lines that its places lead to."""
    total, rows = index.page(EpisodeQuery(limit=200))
    assert total == len(rows) == index.counts()["total"]
    known = {}
    for row in rows:
        there = index.episode(row["id"])
        lines = list(index.lines(there.places))
        known[row["id"]] = (row, sorted((line["b"], line["p"]) for line in lines), there.ending is None)
        assert all(line["e"] == row["id"] and line["k"] == "move" for line in lines)
    return known


def folder_with(folder: Path, *journals: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    names = ["journal.jsonl"] if len(journals) == 1 else [f"journal-{i}.jsonl" for i in range(len(journals))]
    for name, data in zip(names, journals, strict=True):
        (folder / name).write_bytes(data)
    return folder


@contextlib.contextmanager
def at_once(folder: Path) -> Iterator[RunIndex]:
    index = RunIndex(folder)
    index.update()
    yield index
    index.close()


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.floats(0, 1), max_size=5), workers=st.sampled_from([1, 1, 3]))
def test_an_index_that_grew_is_one_made_at_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[float], workers: int
) -> None:
    folder = tmp_path_factory.mktemp("run")
    names = [f"c{i % 2}/case{i}/0" for i in range(6)]
    # What a worker left half played, another one goes on with: an episode may stand in several journals.
    lines, rng = journal_of(seed, names), random.Random(seed)
    files = [rng.randrange(workers) for _ in lines]
    whole = [sealed(*(line for line, file in zip(lines, files, strict=True) if file == i)) for i in range(workers)]
    growing = RunIndex(folder_with(folder / "growing", *([b""] * workers)))
    for cut in sorted(cuts):
        folder_with(folder / "growing", *(data[: int(cut * len(data))] for data in whole))
        growing.update()
    folder_with(folder / "growing", *whole)
    growing.update()
    with at_once(folder_with(folder / "whole", *whole)) as index:
        assert content(growing) == content(index)
        counting = [line for path in storage.journals(index.folder) for _, line in finished_episodes.confirmed(path)]
        assert sum(row["moves"] for row, _, _ in content(index).values()) == sum(
            line["k"] == "move" for line in counting
        )
        assert index.counts()["finished"] == len({line["e"] for line in counting if line["k"] == "end"})
    assert not growing.damage
    growing.close()


def test_a_run_is_read_once_and_shown_in_the_order_of_its_plan(tmp_path: Path) -> None:
    done = run(tmp_path / "r")
    files = {path.name for path in (tmp_path / "r").iterdir()}
    with at_once(tmp_path / "r") as index:
        assert not index.update()
        _, rows = index.page(EpisodeQuery())
        assert [row["id"] for row in rows] == [score.id for score in done.scores]
        assert [row["numbers"] for row in rows] == [dict(score.numbers) for score in done.scores]
        assert [row["labels"] for row in rows] == [dict(score.labels) for score in done.scores]
        first, second = (index.episode(row["id"]) for row in rows[:2])
        assert (first.previous, first.next, second.previous) == (None, second.row["id"], first.row["id"])
        assert index.episode("no such") is None
    assert {path.name for path in (tmp_path / "r").iterdir()} == files, "nothing is written beside a run"


def test_numbers_are_those_of_the_last_scoring(tmp_path: Path) -> None:
    run(tmp_path / "r")
    with at_once(tmp_path / "r") as index:
        path = tmp_path / "r" / "scores.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**line, "numbers": {"solved": 1}}) + "\n" for line in lines))
        assert index.update()
        assert {str(row["numbers"]) for row in index.page(EpisodeQuery())[1]} == {"{'solved': 1}"}
        assert index.counts()["solved"] == len(lines) and index.metrics() == ["solved"]


def test_filters_sorting_and_search(tmp_path: Path) -> None:
    lines = [
        ending("c/a/0", 0, labels={"size": 4, "wide": True, "odd 'name\"": None}, numbers={"solved": 1, "x": 3}),
        ending("c/b/0", 0, labels={"size": 8, "wide": False}, numbers={"solved": [1, 2], "x": None}),
        ending("d/Éclair/0", 0, labels={"size": 8}, numbers={"solved": None, "x": 2}, limited=True),
        ending("d/e/0", 0, error="it BROKE", outcome=None, numbers={}),
        storage.move_line("d/f/0", 0, 0, 0, Move("A", "say", "yes")),
    ]
    with at_once(folder_with(tmp_path / "r", sealed(*lines))) as index:

        def ids(**query: Any) -> list[str]:
            total, rows = index.page(EpisodeQuery(**query))
            assert total == len(rows)
            listed = [row["id"] for row in rows]
            among = [index.episode(name, EpisodeQuery(**query)) for name in listed]
            assert [there.previous for there in among] == [None, *listed][: len(listed)]
            assert [there.next for there in among] == [*listed, None][1:]
            return [name[2] for name in listed]

        assert ids() == ["a", "b", "É", "e", "f"]
        assert ids(outcome="solved") == ["a"] and ids(outcome="partly solved") == ["b"]
        assert ids(outcome="unscored") == ["É"] and ids(outcome="unsolved") == []
        assert ids(outcome="failed") == ["e"] and ids(outcome="unfinished") == ["f"] and ids(outcome="limited") == ["É"]
        assert ids(condition="d") == ["É", "e", "f"] and ids(condition="x' OR 1") == []
        assert ids(labels={"size": "8"}) == ["b", "É"] and ids(labels={"wide": "true", "size": "4"}) == ["a"]
        assert ids(labels={"odd 'name\"": "null"}) == ["a"]
        assert ids(search="éCLAIR") == ["É"] and ids(search="broke") == ["e"] and ids(search="%") == []
        assert ids(sort="numbers.x") == ["É", "a", "b", "e", "f"]
        assert ids(sort="numbers.x", descending=True) == ["a", "É", "b", "e", "f"]
        assert ids(sort="numbers.solved") == ["b", "a", "É", "e", "f"], "a ratio is sorted by its quotient"
        assert ids(sort="case", descending=True)[0] == "É"
        assert ids(descending=True) == ["f", "e", "É", "b", "a"]
        assert ids(sort="labels.size", condition="d") == ["e", "É", "f"]
        broken = index.episode("d/e/0", EpisodeQuery(labels={"size": "8"}, sort="numbers.x", descending=True))
        assert (broken.previous, broken.next) == ("c/b/0", None), "an episode that the list leaves out has a place, too"
        assert index.page(EpisodeQuery(limit=2, offset=1))[0] == 5
        assert len(index.page(EpisodeQuery(limit=2, offset=1))[1]) == 2
        assert index.labels()["size"] == ["4", "8"] and index.labels()["wide"] == ["true", "false"]
        assert len(index.labels(most=1)["size"]) == 1
        with pytest.raises(DataError, match="Did you mean error"):
            index.page(EpisodeQuery(sort="eror"))
        with pytest.raises(DataError, match="Did you mean solved"):
            index.page(EpisodeQuery(outcome="solvd"))


def test_the_headline_says_what_is_solved(tmp_path: Path) -> None:
    numbers = [{"solved": 1, "deadlock": x} for x in (0, 1, 0.5, [1, 4], [0, 3], 7, None)]
    folder = folder_with(tmp_path / "r", sealed(*(ending(f"c/{i}/0", 0, numbers=n) for i, n in enumerate(numbers))))
    with at_once(folder) as index:
        assert index.counts()["solved"] == len(numbers)
    index = RunIndex(folder, goal=Goal("deadlock", higher_is_better=False))
    index.update()
    outcomes = [row["outcome"] for row in index.page(EpisodeQuery())[1]]
    partly = "partly solved"
    assert outcomes == ["solved", "unsolved", partly, partly, "solved", "unscored", "unscored"]
    assert [index.counts()[name] for name in ("solved", partly, "unsolved", "unscored")] == [2, 2, 1, 2]
    index.close()


def test_what_was_said_is_found_with_the_number_of_its_turn(tmp_path: Path) -> None:
    texts = iter(range(10**6))
    harness.evaluate(
        "agentsnet_quick",
        Mock(function=lambda request: f"Müller's number is {next(texts)}.\n<b>"),
        output_path=tmp_path / "r",
        limit=1,
        overrides=["matrix.size=[4]"],
    )
    with at_once(tmp_path / "r") as index:
        hits, complete = index.search("MÜLLER", most=10_000, seconds=60)
        assert complete and len(hits) == sum(row["moves"] for row in index.page(EpisodeQuery(limit=200))[1])
        turns = {t.id: t.turns for t in Transcripts(tmp_path / "r")}
        for hit in hits:
            turn = turns[hit.episode][hit.turn]
            assert turn.agent == hit.agent and hit.snippet in turn.move.calls[0].text
        assert len({(hit.episode, hit.turn) for hit in hits}) == len(hits)
        assert index.search("number", most=3, seconds=60) == (index.search("number", seconds=60)[0][:3], False)
        assert index.search("calls") == ([], True), "names of keys are not what was said"
        assert index.search("number", seconds=-1) == ([], False)
        assert index.search(".\n<B>", most=1)[0] and index.search("") == ([], True)


def test_a_damaged_line_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    run(tmp_path / "r")
    journal = tmp_path / "r" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    with at_once(tmp_path / "r") as index:
        before = {name: row for name, (row, _, _) in content(index).items()}
    broken = json.loads(lines[4])
    damaged = [lines[4].replace(b'"crc"', b'"CRC"'), b"\xff\x00 {\n", b"[]\n", b'{"k":"move"}\n', sealed({"k": "move"})]
    journal.write_bytes(b"".join([*lines[:4], *damaged, *lines[5:]]))
    with at_once(tmp_path / "r") as index:
        assert [damage.line for damage in index.damage] == [5, 6, 7, 8, 9]
        assert str(index.damage[0]).startswith("journal.jsonl:5: the line is not as it was written")
        after = {name: row for name, (row, _, _) in content(index).items()}
        assert after.pop(broken["e"])["moves"] == before.pop(broken["e"])["moves"] - 1
        assert after == before
    journal.write_bytes(b"".join(lines))
    with at_once(tmp_path / "r") as index:
        assert not index.damage and content(index)[broken["e"]][0]["moves"] == len(
            [line for line in map(json.loads, lines) if line["k"] == "move" and line["e"] == broken["e"]]
        )


def test_numbers_that_no_file_holds_are_damage_or_nothing(tmp_path: Path) -> None:
    call = {"text": "x", "input_tokens": 10**30, "latency": float("nan")}
    lines = [
        {"k": "move", "e": "c/a/0", "b": 0, "p": 0, "s": "A", "i": 0, "t": "say", "calls": [call]},
        {"k": "move", "e": "c/\ud800/0", "b": 0, "p": 0, "s": "A", "i": 0, "t": "say"},
        ending("c/a/0", 1, repeat=10**30, error="\ud800", outcome=None),
    ]
    with at_once(folder_with(tmp_path / "r", sealed(*lines))) as index:
        assert [damage.line for damage in index.damage] == [2]
        [row] = index.page(EpisodeQuery())[1]
        assert (row["input_tokens"], row["latency"], row["repeat"], row["error"]) == (None, None, 0, "\\ud800")


def test_another_run_under_the_same_name_is_another_index(tmp_path: Path) -> None:
    run(tmp_path / "r")
    index = RunIndex(tmp_path / "r")
    index.update()
    run(tmp_path / "r", overrides=("task.cases_made=2",), overwrite=True)
    index.update()
    assert index.counts()["total"] == 4
    index.close()
    assert harness.load_run(tmp_path / "r", TOY).scores
