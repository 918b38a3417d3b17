"""Whether variance components, planned numbers of cases, tests of equivalence and corrected means keep their promise.

python benchmarks/run.py components sample_sizes equivalence corrected
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable

import numpy
from numpy.random import Generator

from harness.extensions.analysis import paired
from harness.extensions.judges.corrected import corrected
from harness.extensions.statistics.components import Components, components
from harness.extensions.statistics.sample_size import of_scores, units_needed
from harness.tables import EpisodeScore

Row = dict[str, object]
TRUTH = {"case": 1.0, "case × model": 0.25, "seat": 0.16, "rest": 0.49}


def components_covered(samples: int) -> list[Row]:
    """Crossed effects of cases, seats and models: mean estimates of known variances, and the share of intervals that
    cover them. `missing`: the share of episodes that failed."""
    rows: list[Row] = []
    for cases, seats, repeats, missing in ((20, 4, 2, 0.0), (60, 4, 2, 0.0), (60, 4, 2, 0.3), (60, 12, 1, 0.3)):
        generator = numpy.random.default_rng(0)
        sums, hits = dict.fromkeys(TRUTH, 0.0), dict.fromkeys(TRUTH, 0)
        for _ in range(samples):
            found = _crossed(generator, cases, seats, repeats, missing)
            assert found is not None
            for name, part in {**found.parts, "rest": found.rest}.items():
                sums[name] += part.variance / samples
                hits[name] += part.interval is not None and part.interval[0] <= TRUTH[name] <= part.interval[1]
        row: Row = {"cases": cases, "seats": seats, "repeats": repeats, "missing": missing}
        for name, truth in TRUTH.items():
            row[f"{name} ({truth})"] = round(sums[name], 3)
            row |= {f"{name} covered": f"{hits[name] / samples:.3f}"} if name != "seat" else {}
        rows.append(row)
    return rows


def _crossed(generator: Generator, cases: int, seats: int, repeats: int, missing: float) -> Components | None:
    ease = generator.normal(0, TRUTH["case"] ** 0.5, cases)
    own = generator.normal(0, TRUTH["case × model"] ** 0.5, (cases, 2))
    seat = generator.normal(0, TRUTH["seat"] ** 0.5, seats)
    values, levels = list[float](), list[tuple[Hashable, ...]]()
    for case, model, place, _ in itertools.product(range(cases), range(2), range(seats), range(repeats)):
        if generator.random() >= missing:
            noise = generator.normal(0, TRUTH["rest"] ** 0.5)
            values.append(5.0 * model + ease[case] + own[case, model] + seat[place] + noise)
            levels.append((model, case, place))
    models, of_case, of_seat = zip(*levels, strict=True)
    both = list(zip(of_case, models, strict=True))
    return components(values, models, {"case": of_case, "case × model": both, "seat": of_seat}, of_case)


def power(samples: int) -> list[Row]:
    """How often the exact test finds a difference, with as many cases as `harness plan --detect` asks for: by the known
    variances, and by those that a pilot run of 30 cases shows (the numbers of cases that it asks for differ)."""
    rows: list[Row] = []
    for repeats, difference in ((1, 0.05), (3, 0.05), (1, 0.1), (3, 0.1)):
        generator = numpy.random.default_rng(1)
        asked, found = list[int](), 0
        known = units_needed(
            difference, 2 * 0.02 + 2 * 0.22 / repeats, step=1 / repeats
        )  # the mean of p(1 − p) is 0.22
        for _ in range(samples):
            found += _differs(generator, known, repeats, difference)
            pilot = of_scores(_pilot(generator, 30), "score")
            assert pilot is not None
            asked.append(units_needed(difference, pilot.variance(repeats), step=1 / repeats))
        row: Row = {"difference": difference, "repeats": repeats, "cases": known, "power": f"{found / samples:.3f}"}
        low, middle, high = numpy.quantile(asked, [0.1, 0.5, 0.9])
        rows.append({**row, "by a pilot (10 %, 50 %, 90 %)": f"{low:.0f}, {middle:.0f}, {high:.0f}"})
    return rows


def _drawn(generator: Generator, cases: int, repeats: int, difference: float) -> numpy.ndarray:
    """cases × models × repeats: zeros and ones, whose probabilities differ by case and by model."""
    ease = generator.uniform(0.3, 0.6, cases)
    own = generator.choice([-(0.02**0.5), 0.02**0.5], (cases, 2))
    chances = numpy.clip(ease[:, None] + own + numpy.array([0.0, difference]), 0, 1)
    numbers: numpy.ndarray = (generator.random((cases, 2, repeats)) < chances[:, :, None]).astype(float)
    return numbers


def _differs(generator: Generator, cases: int, repeats: int, difference: float) -> bool:
    numbers = _drawn(generator, cases, repeats, difference).mean(axis=2)
    pvalue = paired.sign_flip([[(i, float(x)) for i, x in enumerate(numbers[:, 1] - numbers[:, 0])]])
    return pvalue is not None and pvalue < 0.05


def _pilot(generator: Generator, cases: int, repeats: int = 3) -> list[EpisodeScore]:
    numbers = _drawn(generator, cases, repeats, 0.0)
    return [
        EpisodeScore(f"c/{i}/{k}", "c", {"model": f"m{m}"}, {"score": float(numbers[i, m, k])})
        for i, m, k in itertools.product(range(cases), range(2), range(repeats))
    ]


def level(samples: int) -> list[Row]:
    """How often two models are called equivalent that differ by the margin (at most 0.05), and that do not differ."""
    rows: list[Row] = []
    for first, margin in ((0.5, 0.1), (0.9, 0.05), (0.97, 0.03)):
        for cases in (20, 50, 200, 800):
            generator = numpy.random.default_rng(2)
            shares = []
            for second in (first + margin, first):
                same = 0
                for _ in range(samples):
                    difference = (generator.random(cases) < second).astype(float) - (generator.random(cases) < first)
                    strata = [[(i, float(x)) for i, x in enumerate(difference)]]
                    tested = paired.paired(strata, 1.0, binary=True, margin=margin).equivalence
                    same += tested is not None and tested.verdict == "same"
                shares.append(f"{same / samples:.3f}")
            row: Row = {"share right": first, "margin": margin, "cases": cases}
            rows.append({**row, "at the margin": shares[0], "no difference": shares[1]})
    return rows


def corrected_covered(samples: int) -> list[Row]:
    """Coverage of corrected means of zeros and ones, and their width beside that of people's labels alone. A judge errs
    one way more often than the other."""
    rows: list[Row] = []
    for right, labelled, others in itertools.product((0.95, 0.85, 0.5), (20, 50, 200), (1000,)):
        generator = numpy.random.default_rng(3)
        hits, judge_hits, width, alone = 0, 0, 0.0, 0.0
        for _ in range(samples):
            people = generator.random(labelled + others) < 0.6
            agrees = generator.random(labelled + others) < numpy.where(people, right, right - 0.15)
            judge = numpy.where(agrees, people, ~people).astype(float)
            names = [str(i) for i in range(labelled + others)]
            rated = dict(zip(names, judge.tolist(), strict=True))
            labels = dict(zip(names, people[:labelled].astype(float).tolist(), strict=False))
            found = corrected(rated, labels, {name: name for name in names}, (0.0, 1.0))
            if found is None:
                continue
            low, high = found.interval
            hits += low <= 0.6 <= high
            width += (high - low) / samples
            share = float(people[:labelled].mean())
            alone += 2 * 1.96 * (share * (1 - share) / labelled) ** 0.5 / samples
            error = float(judge.std()) / (labelled + others) ** 0.5
            judge_hits += abs(float(judge.mean()) - 0.6) <= 1.96 * error
        rows.append(
            {
                "judge is right": f"{right}, {right - 0.15:.2f}",
                "labelled": labelled,
                "others": others,
                "covered": f"{hits / samples:.3f}",
                "covered (judge alone)": f"{judge_hits / samples:.3f}",
                "width": round(width, 3),
                "width (labels alone)": round(alone, 3),
            }
        )
    return rows
