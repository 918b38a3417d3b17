"""Graph-of-Agents' arithmetic and the forms of its own replies, as properties."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.yaml_tasks import conformance
from tests.extensions.panels.goa_kit import graph, replies


@st.composite
def rows(draw: st.DrawFn) -> list[dict[int, float] | None]:
    """What two to six judges say: shares of 1 among the others, or nothing."""
    count = draw(st.integers(2, 6))
    results: list[dict[int, float] | None] = []
    for judge in range(count):
        others = [slot for slot in range(count) if slot != judge]
        weights = draw(st.lists(st.integers(0, 20), min_size=len(others), max_size=len(others)))
        silent = not sum(weights) or draw(st.booleans() if draw(st.booleans()) else st.just(False))
        shares = [weight / sum(weights) for weight in weights] if not silent else []
        results.append(None if silent else dict(zip(others, shares, strict=True)))
    return results


@given(rows())
def test_shares_sum_to_1_unless_no_agent_judged(given_rows: list[Any]) -> None:
    shares = graph.shares(graph.means(given_rows))
    assert all(share >= 0 for share in shares)
    assert math.isclose(sum(shares), 1 if any(row is not None for row in given_rows) else 0, abs_tol=1e-9)


@given(rows(), st.floats(0, 0.99))
def test_the_graph_has_no_circle_and_keeps_who_is_above_the_threshold(given_rows: list[Any], threshold: float) -> None:
    result = graph.graph_of(graph.means(given_rows), threshold, [0] * len(given_rows))
    stay = {slot for slot, share in enumerate(result.shares) if round(share, 9) > threshold}
    assert {*result.ranks} == stay and len(result.ranks) == len(stay)
    assert result.top == (result.ranks[0] if stay else None)
    place = {slot: rank for rank, slot in enumerate(result.ranks)}
    for slot in result.ranks:
        assert all(place[other] < place[slot] for other in result.above(slot))
        assert all(place[other] > place[slot] for other in result.below(slot))
        assert {*result.above(slot), slot, *result.below(slot)} == stay, "everybody is joined to everybody"
        assert all(result.shares[other] >= result.shares[slot] - 1e-9 for other in result.above(slot))


@given(rows(), st.randoms())
def test_which_number_a_node_has_does_not_matter(given_rows: list[Any], rng: Any) -> None:
    new = [*range(len(given_rows))]
    rng.shuffle(new)
    moved: list[Any] = [None] * len(new)
    for judge, row in enumerate(given_rows):
        moved[new[judge]] = None if row is None else {new[slot]: score for slot, score in row.items()}
    one, two = graph.shares(graph.means(given_rows)), graph.shares(graph.means(moved))
    assert all(math.isclose(one[slot], two[new[slot]], abs_tol=1e-9) for slot in range(len(new)))


def test_a_graph_by_hand() -> None:
    given_rows = [{1: 0.6, 2: 0.4}, {0: 0.9, 2: 0.1}, {0: 0.5, 1: 0.5}]
    assert graph.means(given_rows) == pytest.approx([0.7, 0.55, 0.25])
    result = graph.graph_of(graph.means(given_rows), 0.2, [0, 0, 0])
    assert result.shares == pytest.approx([0.7 / 1.5, 0.55 / 1.5, 0.25 / 1.5]) and result.ranks == (0, 1)
    assert result.relevance(result.ranks) == {0: "moderate", 1: "moderate"}, "0.56 and 0.44 of those who are left"
    assert graph.means([{1: 1.0}, None]) == [None, 1.0] and graph.shares([None, 1.0]) == [0.5, 0.5]


@pytest.mark.parametrize(
    ("share", "word"),
    [(0, "low"), (0.4, "low"), (0.1 + 0.3, "low"), (0.401, "moderate"), (0.7, "moderate"), (0.1 * 7, "moderate"),
     (0.701, "high"), (1, "high")],
)  # fmt: skip
def test_every_threshold_of_relevance(share: float, word: str) -> None:
    assert graph.label(share) == word


@given(st.lists(st.integers(1, 100), min_size=1, max_size=6))
def test_relevance_is_of_the_readers_neighbors(weights: list[int]) -> None:
    total = sum(weights)
    instance = graph.Graph(tuple(weight / total for weight in weights), tuple(range(len(weights))))
    relevance = instance.relevance(instance.ranks)
    assert [relevance[slot] for slot in instance.ranks] == [graph.label(weight / total) for weight in weights]
    assert list(relevance.values()).count("high") <= 1 and (len(weights) > 1 or relevance == {0: "high"})


@given(st.lists(st.sampled_from("ABC"), max_size=12))
def test_waves_hold_every_agent_once_and_every_slot_once(agents: list[str]) -> None:
    batches = graph.waves([*enumerate(agents)])
    assert sorted(slot for batch in batches for slot in batch) == [*range(len(agents))]
    for batch in batches:
        assert len({agents[slot] for slot in batch}) == len(batch) > 0
    assert len(batches) == max((agents.count(agent) for agent in agents), default=0)


# ---------------------------------------------------------------------------------------------- replies

FORMS = [replies.Indices(3, 3), replies.Indices(3, 3, "reference"), replies.Level(), replies.Scores(("1", "3"))]


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_forms_keep_their_promises(form: Any) -> None:
    assert conformance.check_reply(form) == []
    assert form.allows(form.noop)


@given(st.text(), st.sampled_from(FORMS))
def test_what_is_read_is_legal_whatever_the_text(text: str, form: Any) -> None:
    parsed = form.parse(text)
    assert (parsed.error is None) == (parsed.action is not None)
    assert parsed.action is None or form.allows(parsed.action)


@given(
    st.integers(1, 9), st.lists(st.integers(0, 8), min_size=1, max_size=6), st.sampled_from([",", ", ", " ", " and "])
)
def test_lists_are_read_with_labels_and_marks(pool: int, picks: list[int], between: str) -> None:
    form = replies.Indices(pool, len(picks))
    expected = picks if max(picks) < pool else None
    output = between.join(map(str, picks))
    words = ("{}", "**Agents:** {}.", "[{}]", "The first 2 are weak.\n\n`{}`\n", '```json\n"picks": [{}]\n```')
    for text in (around.replace("{}", output) for around in words):
        assert form.parse(text).action == expected, text
    assert replies.Indices(pool, len(picks), "reference").parse(output).action == (
        expected if between == "," or len(picks) == 1 else None
    )


@pytest.mark.parametrize(
    "text",
    ["", "Agents 0 and 2, 1", "0, 1", "0, 1, 2, 0", "0, 1, 3", "0, 1, -2", "0, 1, 2.5", "0 or 1 or 2",
     "0,1,2\nI am sure", "0,1,²", "a" * 100 + ": 0,1,2"],
)  # fmt: skip
def test_a_list_is_never_guessed(text: str) -> None:
    parsed = replies.Indices(3, 3).parse(text)
    assert parsed.action is None and "exactly 3 numbers from 0 to 2, written like this: N,N,N" in str(parsed.error)


def test_the_reference_reading_of_lists() -> None:
    form = replies.Indices(3, 3, "reference")
    mapping = {
        " 0,1,2\n": [0, 1, 2],
        "Label: 1,2": [1],
        "label: 7": None,
        "0,1": None,
        "[0,1,2]": None,
        "I: 0,1,2": None,
    }
    assert {text: form.parse(text).action for text in mapping} == mapping
    assert "nothing but exactly 3 numbers" in str(form.parse("0, 1, 2").error)


def test_levels() -> None:
    form = replies.Level()
    assert [form.parse(text).action for text in ("4", "It is hard.\nDifficulty: **5**", "0", "7", "4/6", "3 or 4")] == [
        4, 5, None, None, None, None,
    ]  # fmt: skip


@given(st.lists(st.integers(0, 100), min_size=1, max_size=6))
def test_scores_count_where_they_add_up(hundredths: list[int]) -> None:
    names = tuple(str(slot + 1) for slot in range(len(hundredths)))
    form, scores = replies.Scores(names), [x / 100 for x in hundredths]
    parsed = form.parse(f"I think\n```json\n{json.dumps(dict(zip(names, scores, strict=True)))}\n```")
    if 90 < sum(hundredths) <= 100:
        assert parsed.action == dict(zip(names, scores, strict=True))
    else:
        assert parsed.action is None and "must add up to 1; these add up to" in str(parsed.error)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"1": "60%", "3": "40%"}', {"1": 0.6, "3": 0.4}),
        ('{"1": 60, "3": 40}', {"1": 0.6, "3": 0.4}),
        ('{"1": 0.6, "3": 0.4, "2": 0.9}', {"1": 0.6, "3": 0.4}),
        ('{"1": 1.0}', None),
        ('{"1": -0.5, "3": 1.5}', None),
        ('{"1": NaN, "3": 0.5}', None),
        ('{"1": true, "3": 0}', None),
        ("1: 0.6, 3: 0.4", None),
    ],
)
def test_scores_as_models_write_them(text: str, action: Any) -> None:
    assert replies.Scores(("1", "3")).parse(text).action == action


def test_scores_can_be_had_by_constrained_decoding() -> None:
    assert replies.Scores(("1", "3")).constraint()["json"]["required"] == ["1", "3"]
