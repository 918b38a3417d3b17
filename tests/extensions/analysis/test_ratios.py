"""One ratio of all episodes: pooled, with the error of clusters, from the journal to tables, tests and leaderboards."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.api import Episode, Parts, RatioMetric, linearize
from harness.api.errors import DataError
from harness.config.project import find
from harness.evaluation.evaluate import evaluate
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.analysis.leaderboard import RunScores, leaderboard
from harness.extensions.yaml_tasks.conformance import check_metric
from harness.runtime.scoring import score
from harness.tables import EpisodeScore, TableSpec, build, load_scores, stats

TALKER = '''
import random
from harness.api import Action, Policy, Turn, plugin

@plugin
class Talker(Policy):
    """Announces its left fork in every reply and takes it now and then: an episode lasts until all have."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        return {"act": rng.choice(["GRAB_LEFT", "WAIT", "WAIT"]), "message": "I take left"}
'''
PARTS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=2, max_size=30)


class Share(RatioMetric):
    def __init__(self, parts: Parts | None = None) -> None:
        self.found = parts

    def parts(self, episode: Episode) -> Parts | None:
        return self.found


def scored(*parts: Parts | None, **labels: Any) -> list[EpisodeScore]:
    return [
        EpisodeScore(f"c/{i}/0", "c", {"model": "m", "case": i, **labels}, {"share": part})
        for i, part in enumerate(parts)
    ]


def cell(scores: list[EpisodeScore], **entry: Any) -> Any:
    spec = TableSpec.parse({"title": "T", "rows": "model", "metrics": "share", "aggregate": "pooled", **entry})
    return build(spec, scores, {"share": Share()}).rows[0].cells[0]


@given(PARTS)
def test_value_and_error_are_those_of_the_textbook(parts: list[Parts]) -> None:
    """The delta method's variance of a/b from sample variances and covariance: another way to the same number."""
    over, under = numpy.array(parts, dtype=float).T
    statistic = Share().aggregate(parts)
    assert statistic.value is not None and statistic.stderr is not None and statistic.n == len(parts)
    ratio = over.sum() / under.sum()
    (aa, ab), (_, bb) = numpy.cov(over, under, ddof=1)
    variance = (aa + ratio**2 * bb - 2 * ratio * ab) / len(parts) / under.mean() ** 2
    assert statistic.value == pytest.approx(ratio, abs=1e-12)
    assert statistic.stderr == pytest.approx(math.sqrt(max(0.0, variance)), rel=1e-6, abs=1e-6)


@given(st.lists(st.integers(0, 9), min_size=2), st.integers(1, 9))
def test_with_equal_denominators_it_is_the_mean_of_shares(numerators: list[int], denominator: int) -> None:
    statistic = Share().aggregate([(a, denominator) for a in numerators])
    plain = stats.mean([a / denominator for a in numerators])
    assert (statistic.value, statistic.stderr) == (pytest.approx(plain.value), pytest.approx(plain.stderr, abs=1e-12))


def test_the_error_is_that_of_resampled_episodes() -> None:
    draw = numpy.random.default_rng(1)
    sizes = draw.integers(1, 40, 200)
    parts = [(float(draw.binomial(n, 0.2 + 0.6 * (n > 20))), float(n)) for n in sizes]
    picks = draw.integers(0, 200, (4000, 200))
    table = numpy.array(parts)[picks].sum(axis=1)
    assert Share().aggregate(parts).stderr == pytest.approx((table[:, 0] / table[:, 1]).std(), rel=0.05)


def test_a_table_pools_decisions_not_episodes() -> None:
    result = cell(scored((1, 1), (1, 9), None, (0, 0)), uncertainty="interval")
    assert result.value == pytest.approx(2 / 10)  # the mean of shares is .56
    assert (result.n, result.missing) == (2, 2)
    assert result.stderr == pytest.approx(statistics.stdev(linearize([(1, 1), (1, 9)])) / math.sqrt(2))
    by_condition = cell(scored((1, 1), (1, 9)), aggregate="mean_of_conditions")
    assert by_condition.value == pytest.approx(2 / 10)  # one condition: pooled within


def test_the_quotient_of_two_metrics_in_a_table_has_the_same_error() -> None:
    parts: list[Parts] = [(1, 1), (1, 9), (5, 7)]
    scores = [EpisodeScore(f"c/{i}/0", "c", {"model": "m"}, {"a": a, "b": b}) for i, (a, b) in enumerate(parts)]
    metric = Share()
    entry = {
        "title": "T",
        "rows": "model",
        "metrics": "q",
        "ratio": {"q": ["a", "b"]},
        "aggregate": "pooled",
        "uncertainty": "interval",
    }
    result = build(TableSpec.parse(entry), scores, {"a": metric, "b": metric}).rows[0].cells[0]
    same = metric.aggregate(parts)
    assert (result.value, result.stderr) == (same.value, same.stderr)
    assert result.low is None, "three numbers do not rule out that the denominator is 0 on average"


@given(PARTS, PARTS)
def test_a_comparison_tests_the_difference_of_the_pooled_ratios(base: list[Parts], other: list[Parts]) -> None:
    scores = scored(*base, side="base") + scored(*other, side="other")
    entry = {"title": "T", "rows": "model", "metrics": "share"}
    compare = {"label": "side", "base": "base", "with": "other", "paired_by": "case"}
    table = build(TableSpec.parse({**entry, "compare": compare}), scores, {"share": Share()})
    mapping = {column.key["statistic"]: c.value for column, c in zip(table.columns, table.rows[0].cells, strict=True)}
    n = min(len(base), len(other))
    both = [sum(a for a, _ in side[:n]) / sum(b for _, b in side[:n]) for side in (other, base)]
    assert mapping["difference"] == pytest.approx(both[0] - both[1], abs=1e-9)


def test_a_pair_with_several_episodes_is_one_cluster() -> None:
    scores = [
        EpisodeScore(f"{side}{case}/{i}/0", "c", {"model": "m", "case": case, "side": side}, {"share": part})
        for side, cases in (("base", [[(1, 4), (1, 2)], [(2, 2)]]), ("other", [[(6, 6)], [(1, 3), (0, 1)]]))
        for case, parts in enumerate(cases)
        for i, part in enumerate(parts)
    ]
    compare = {"label": "side", "base": "base", "with": "other", "paired_by": "case"}
    spec = TableSpec.parse({"title": "T", "rows": "model", "metrics": "share", "compare": compare})
    table = build(spec, scores, {"share": Share()})
    mapping = {column.key["statistic"]: c.value for column, c in zip(table.columns, table.rows[0].cells, strict=True)}
    assert mapping["pairs"] == 2
    assert mapping["p"] in (0.5, 1.0)  # two clusters have no other
    assert mapping["difference"] == pytest.approx(7 / 10 - 4 / 8)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda p: (min(p), max(p))), min_size=2))
def test_an_interval_of_a_share_stays_within_0_and_1(parts: list[Parts]) -> None:
    assume(any(b for _, b in parts))

    class Bounded(Share):
        bounds = (0, 1)

    spec = TableSpec.parse(
        {"title": "T", "rows": "model", "metrics": "share", "aggregate": "pooled", "uncertainty": "interval"}
    )
    result = build(spec, scored(*parts), {"share": Bounded()}).rows[0].cells[0]
    if result.low is not None and result.high is not None:
        assert 0 <= result.low <= result.value <= result.high <= 1  # type: ignore[operator]


def test_scores_keep_both_parts_and_refuse_what_is_none(tmp_path: Path) -> None:
    episode = Episode("c/x/0", "c", "x", 0, {"model": "m"}, {}, [])
    for given_parts, item in (((3, 7), [3, 7]), (None, None), ((0, 0), None), ((math.nan, 2), None)):
        scores = score(episode, {"share": Share(given_parts)})
        assert scores.error is None and json.loads(json.dumps(scores.to_json()["numbers"])) == {"share": item}
        file = tmp_path / "scores.jsonl"
        file.write_text(json.dumps(scores.to_json()) + "\n", "utf-8")
        assert load_scores(file)[0].number("share") == (3 / 7 if item else None)
    assert "the denominator is -1, below 0" in str(score(episode, {"share": Share((1, -1))}).error)
    for broken in ([1], [1, 0], [1, "2"], [True, 2], {"a": 1}):
        line = {"id": "c/x/0", "condition": "c", "labels": {}, "numbers": {"share": broken}}
        (tmp_path / "scores.jsonl").write_text(json.dumps(line), "utf-8")
        with pytest.raises(DataError, match=r"not a number, \[numerator, denominator\], .* or null"):
            load_scores(tmp_path / "scores.jsonl")


def test_shares_without_their_counts_are_not_averaged() -> None:
    old = [EpisodeScore("c/x/0", "c", {"model": "m"}, {"share": 0.5})]
    with pytest.raises(DataError, match=r"share of c/x/0 is a share without the counts(.|\n)*harness score RUN"):
        cell(old)


def test_conformance_knows_ratios() -> None:
    assert check_metric(Share((1, 2))) == []
    assert check_metric(Share((1, "x"))) == ["measures (1, 'x')"]  # type: ignore[arg-type]


@pytest.mark.slow
def test_from_the_game_to_every_table(tmp_path: Path) -> None:
    """A talker's consistency: counted in the journal by hand, in a run, resumed, scored again, on a board."""
    (tmp_path / "harness.yaml").write_text("parents: [harness_builtin]\n", "utf-8")
    policies = tmp_path / "registry" / "policies"
    policies.mkdir(parents=True)
    (policies / "talker.py").write_text(TALKER, "utf-8")
    project = find(tmp_path)
    overrides = ["baseline=talker", "matrix.condition=[sim5c]"]
    run = evaluate("dpbench", overrides=overrides, repeats=12, output_path=tmp_path / "run", project=project)
    lines = map(json.loads, (run.folder / "journal.jsonl").read_text("utf-8").splitlines())
    acts: dict[str, list[bool]] = {}
    for line in lines:
        if line["k"] == "move":
            acts.setdefault(line["e"], []).append(line["a"]["act"] == "GRAB_LEFT")
    everything = [act for episode in acts.values() for act in episode]
    pooled = sum(everything) / len(everything)
    means = statistics.fmean(statistics.fmean(episode) for episode in acts.values())
    assert abs(pooled - means) > 0.01  # episodes differ in length: the two are told apart

    def consistency(done: Run) -> tuple[float | None, float | None]:
        row = next(row for row in done.rows if row["metric"] == "dpbench/consistency")
        return row["value"], row["stderr"]

    first = consistency(run)
    assert first[0] == pytest.approx(pooled) and first[1] is not None
    again = evaluate("dpbench", overrides=overrides, repeats=12, output_path=tmp_path / "run", project=project)
    loaded = load_run(run.folder, project)
    assert first == consistency(again) == consistency(loaded) == consistency(rescored(run.folder, project))
    board = leaderboard([RunScores(loaded.meta, loaded.scores, loaded.table_specs, loaded.metrics)])
    extended = next(table for table in board if table.title == "Extended results")
    place = [column.metric for column in extended.columns].index("dpbench/consistency")
    assert extended.rows[0].cells[place].value == first[0]
