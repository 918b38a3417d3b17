"""Planted faults of `who_broke_it` are plausible: readers that know nothing of the tasks do not find them."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case, Move, Turn
from harness.config.project import find
from harness.extensions.blame.who_broke_it.planted_move import plausible
from harness.extensions.blame.who_broke_it.surface import FORMATS, ODD, given_away, suspects, turns_of
from harness.replies import Choice, FreeText
from tests.helpers.samples import examples

TASK = find().load("tasks", "who_broke_it", None)  # type: ignore[arg-type]
TEAMS = [("agentsnet_quick", [f"matrix.size=[{n}]", "task.source=seeded"]) for n in (4, 8, 16)]
TEAMS += [("silo_quick", [f"matrix.agents=[{n}]"]) for n in (5, 10)]
Texts = list[tuple[int, str, str]]
"""(round, agent, text) of each turn."""


def cases(faults: Sequence[str], each: int, seed: int = 7) -> Iterator[Case]:
    for spec, changes in TEAMS:
        yield from TASK(spec=spec, set=changes, faults=[*faults], episodes=each).cases(None, seed)


def read(case: Case) -> Texts:
    """The transcript, by an expression of its own."""
    said = case.public["question"].split("== What they did")[1]
    found = re.findall(r"(?ms)^Turn \d+ \(round (\d+)\): (\S+)\n  did: (.*?)(?=^Turn |\Z)", said)
    return [(int(number), agent, text.strip()) for number, agent, text in found]


def fewest(texts: Texts, key: Callable[[str], object]) -> list[int]:
    """The turns whose key is the rarest."""
    counts = Counter(key(text) for *_, text in texts)
    return [i for i, (*_, text) in enumerate(texts) if counts[key(text)] == min(counts.values())]


def matching(texts: Texts, expression: str) -> list[int]:
    return [i for i, (*_, text) in enumerate(texts) if re.search(expression, text)]


def outliers(texts: Texts) -> list[int]:
    """Of each round the turns that share no word with any other one."""
    found = []
    for _, group in groupby(enumerate(texts), lambda one: one[1][0]):
        words = {i: {*re.findall(r"[a-z]+|[0-9]+", text)} for i, (*_, text) in group}
        found += [
            i for i, own in words.items() if len(words) > 2 and not any(own & o for j, o in words.items() if j != i)
        ]
    return found


def extreme(texts: Texts, key: Callable[[str], float]) -> list[int]:
    return [i for i, (*_, text) in enumerate(texts) if key(text) == max(key(one) for *_, one in texts)]


READERS: dict[str, Callable[[Texts], list[int]]] = {
    "backwards": lambda texts: matching(texts, r"\b(rebmun|tnednepedni|nekat|koot|hctam|yrt|on|sey)\b"),
    "zero": lambda texts: matching(texts, r"(?<!\d)0\d"),
    "letters": lambda texts: fewest(texts, lambda text: re.sub(r"[^a-z]", "", text)),
    "punctuation": lambda texts: fewest(texts, lambda text: re.sub(r"[\w ]+", "", text)),
    "length": lambda texts: fewest(texts, len),
    "longest": lambda texts: extreme(texts, len),
    "shortest": lambda texts: extreme(texts, lambda text: -len(text)),
    "greatest number": lambda texts: extreme(texts, lambda text: max(map(int, re.findall(r"\d+", text)), default=0)),
    "outlier": outliers,
    "last round": lambda texts: [i for i, (number, *_) in enumerate(texts) if number == texts[-1][0]],
}


def right(found: Sequence[int], case: Case) -> float:
    """The chance of one who names one of these turns; of nobody, of any turn."""
    turn = case.target["turn"] if isinstance(case.target, dict) else -1
    return (turn in found) / len(found) if found else 1 / len(case.public["turns"])


@pytest.mark.slow
def test_no_reader_of_surfaces_is_right_in_more_than_a_fifth() -> None:
    drawn = [*cases(["plausible"], 20)]
    assert len(drawn) == 100
    for name, reader in READERS.items():
        assert sum(right(reader(read(case)), case) for case in drawn) / len(drawn) <= 0.2, name
    for cues in (FORMATS, ODD, {**FORMATS, **ODD}):
        assert sum(right(suspects(case.public["question"], cues), case) for case in drawn) / len(drawn) <= 0.2


@pytest.mark.slow
def test_such_readers_find_faults_that_garble_texts() -> None:
    drawn = [*cases(["wrong"], 12)]
    assert sum(right(suspects(case.public["question"], FORMATS), case) for case in drawn) / len(drawn) > 0.25


def test_a_planted_fault_is_not_given_away_and_its_transcript_is_read_whole() -> None:
    [case] = TASK(spec=TEAMS[0][0], set=TEAMS[0][1], episodes=1).cases(None, 3)
    question, turn = case.public["question"], case.target["turn"]
    assert [one.agent for one in turns_of(question)] == case.public["turns"] == [agent for _, agent, _ in read(case)]
    assert case.labels["fault"] == "plausible" and not given_away(question, turn, 4)
    garbled = re.sub(rf"(?m)^(Turn {turn} .*\n  did: ).*$", r"\1rebmun 0123", question)
    assert given_away(garbled, turn, 4)


SAYS = st.dictionaries(
    st.sampled_from(["Ann", "Ben"]),
    st.sampled_from(["took 3", "took 41", "number 12345678", "taken", "yes", '{"shards": {"1": "[3, 14, 15]"}}']),
    max_size=2,
)


@given(SAYS, st.lists(SAYS, max_size=4), st.integers(0, 99))
@settings(max_examples=examples(20))
def test_a_plausible_move_has_the_same_format(action: dict[str, str], others: list[dict[str, str]], seed: int) -> None:
    moves = [Move("Ben", "send", one) for one in others]
    turn = Turn("Ann", "send", {}, FreeText())
    made = plausible(turn, action, moves, random.Random(seed))
    assert isinstance(made, dict) and (made.keys() == action.keys() or not action)
    for name, text in made.items():
        old = action.get(name, text)
        if re.search(r"\d", old):
            assert re.sub(r"\d+", "0", text) == re.sub(r"\d+", "0", old), "only numbers differ"
            assert not re.search(r"(?<!\d)0\d", text) and text.count('"1"') == old.count('"1"'), "and no key does"
            assert [*map(len, re.findall(r"\d+", text))] == [*map(len, re.findall(r"\d+", old))]
        else:
            assert text == old or any(text in one.values() for one in others)
    assert plausible(Turn("Ann", "send", {}, Choice(("a", "b"))), "a", moves, random.Random(seed)) == "b"
