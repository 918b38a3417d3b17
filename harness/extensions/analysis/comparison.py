"""Two runs, or two parts of one, case by case: what differs between them, and whether their numbers do."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.api.errors import DataError
from harness.api.printable import cut
from harness.config.spec import DISPLAY_KEYS
from harness.extensions.analysis import paired
from harness.report.provenance import baseline_of, mapping, of_run
from harness.tables import Cell, Column, EpisodeScore, HeadlineSpec, Row, Table, text
from harness.tables.headline import marked
from harness.tables.notes import clusters_in_words
from harness.tables.scores import bounds_of

from .amount import Amount
from .paired_table import PairedRow, cells, columns, equivalence_in_words, in_words, is_clustered
from .run_pair import RunPart

Key = tuple[str, ...]
"""What makes a pair: the values of the labels that both sides sweep, and the case."""
Digest = Mapping[tuple[str, str], str]
"""(condition, case) → a digest of what the case asks."""

MAX_CASES: Final = 10
"""How many cases that differ are listed."""
_MAX_VALUE_CHARS: Final = 60
"""Characters of a value that differs."""
_NOTHING_DIFFERS: Final = (
    "Nothing differs of what is compared: who played (models with their engines and addresses, policies with their "
    "parameters), spec, prompts, sampling, code and versions."
)
_UNNAMED: Final = (*DISPLAY_KEYS, "models", "generation_kwargs", "executor", "baseline", "calibrate")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Episodes of the same case on both sides.

    Attributes:
        both: (episode of A, episode of B) of a repeat; all repeats of the case where the sides have other repeats.
        alone: how many episodes of A and of B have no counterpart.
        unlike: how many pairs of one id were left out because their cases are not the same.
        repeats: how many repeats of a case the sides have, where that differs; else None.
        apart: label → its value on each side, where the sides' conditions differ.
    """

    both: Sequence[tuple[paired.Group, paired.Group]]
    alone: tuple[int, int]
    unlike: int = 0
    repeats: tuple[int, int] | None = None
    apart: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def pair(a: RunPart, b: RunPart, digests: tuple[Digest, Digest] | None = None) -> Pairs:
    """The episodes that played the same case.

    Args:
        a, b: the sides.
        digests: what the cases of both ask, where it is not certain that cases of one id are the same.

    Raises:
        DataError: if a side has several episodes for one of the other's, or no case is common.
    """
    first, second = a.swept(), b.swept()
    if not {score.case for score in a.scores} & {score.case for score in b.scores}:
        raise DataError(_nothing_common(a, b), hint=_hint(a))
    common = [label for label in first if label in second and {*first[label].values()} & {*second[label].values()}]
    apart: dict[str, tuple[str, str]] = {}
    for label in dict.fromkeys([*first, *second]):
        if label not in common:
            one, other = (sorted({*side.get(label, {}).values()}) for side in (first, second))
            for side, values in ((a, one), (b, other)):
                if len(values) > 1:
                    hint = f"Choose one: --where {label}={values[0]}"
                    raise DataError(f"{side.name} has several values of {label}: {', '.join(values)}", hint=hint)
            apart[label] = (one[0] if one else "–", other[0] if other else "–")
    mine, theirs = _grouped(a, first, common), _grouped(b, second, common)
    matching = [key for key in mine if key in theirs]
    same = [key for key in matching if not digests or _same(mine[key][0], theirs[key][0], digests)]
    if not same:
        raise DataError(_nothing_common(a, b, [mine[key][0].case for key in matching]), hint=_hint(a))
    most = max(len(mine[key]) for key in same), max(len(theirs[key]) for key in same)
    both: list[tuple[paired.Group, paired.Group]] = []
    for key in same:
        if most[0] != most[1]:
            both.append((mine[key], theirs[key]))
            continue
        repeats = {_repeat(score): score for score in theirs[key]}
        both += [((score,), (repeats[_repeat(score)],)) for score in mine[key] if _repeat(score) in repeats]
    alone = [len(side.scores) - sum(len(sides[i]) for sides in both) for i, side in enumerate((a, b))]
    unlike = sum(max(len(mine[key]), len(theirs[key])) for key in matching if key not in {*same})
    return Pairs(both, (alone[0], alone[1]), unlike, most if most[0] != most[1] else None, apart)


def _hint(side: RunPart) -> str:
    if side.label is None:
        return "Only runs that played the same cases can be compared case by case; `harness leaderboard` ranks others."
    return (
        "Only the same cases can be compared case by case. In a table of the spec, "
        f"`compare: {{label: {side.label}, …, paired_by: …}}` names the labels by which other cases are pairs."
    )


def _grouped(
    side: RunPart, swept: Mapping[str, Mapping[str, str]], common: Sequence[str]
) -> dict[Key, list[EpisodeScore]]:
    """What makes a pair → its episodes, a repeat each."""
    groups: dict[Key, list[EpisodeScore]] = {}
    for score in side.scores:
        key = (*(swept[label].get(score.condition, "–") for label in common), score.case)
        groups.setdefault(key, []).append(score)
    return groups


def _repeat(score: EpisodeScore) -> str:
    return score.id.rpartition("/")[2]


def _same(a: EpisodeScore, b: EpisodeScore, digests: tuple[Digest, Digest]) -> bool:
    one, other = digests[0].get((a.condition, a.case)), digests[1].get((b.condition, b.case))
    return one is not None and one == other


def _nothing_common(a: RunPart, b: RunPart, matching: Sequence[str] = ()) -> str:
    if matching:
        return (
            f"{a.name} and {b.name} have no case in common: cases with the same id ask other questions ({matching[0]})"
        )
    example = ", ".join(next(iter(s.case for s in side.scores), "none") for side in (a, b))
    if a.run.spec.name != b.run.spec.name:
        return f"{a.name} and {b.name} have no case in common: they played {a.run.spec.name} and {b.run.spec.name}"
    return f"{a.name} and {b.name} have no case in common (the first of each: {example})"


def case_digest(parts: Hashable) -> str:
    """A digest of what a case asks."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


# ------------------------------------------------------------------------------------ what differs


def differences(a: RunPart, b: RunPart, pairs: Pairs) -> Table:
    """What differs between the sides, by their run.json and their specs: a row each."""
    lines: dict[str, tuple[str, str]] = dict(pairs.apart)
    if a.label is None or a.run is not b.run:
        lines |= _recorded(a, b)
    elif a.label is not None:
        lines = {a.label: (a.name, b.name), **lines}
    rows = [
        Row({"what": what}, (what, cut(one, _MAX_VALUE_CHARS), cut(other, _MAX_VALUE_CHARS)), ())
        for what, (one, other) in lines.items()
    ]
    notes = () if rows else (_NOTHING_DIFFERS,)
    names = ("", f"A: {a.name}", f"B: {b.name}")
    return Table("What differs", ("what", "a", "b"), (), (), tuple(rows), row_names=names, notes=notes)


def _recorded(a: RunPart, b: RunPart) -> dict[str, tuple[str, str]]:
    lines: dict[str, tuple[str, str]] = {}

    def compare(what: str, one: Any, other: Any) -> None:
        if one != other:
            lines[what] = ("–" if one is None else text(one), "–" if other is None else text(other))

    compare("model", a.run.meta.get("model"), b.run.meta.get("model"))
    facts = [side.run.meta.get("identity") or {} for side in (a, b)]
    for path, values in spec_changes(a.run.spec.data, b.run.spec.data).items():
        compare(path, *values)
    sampling = [_flat(side.run.meta.get("generation_kwargs") or {}) for side in (a, b)]
    for path in dict.fromkeys([*sampling[0], *sampling[1]]):
        compare(f"generation_kwargs.{path}", sampling[0].get(path), sampling[1].get(path))
    policies = [_flat(baseline_of(side.run.meta)) for side in (a, b)]
    for path in dict.fromkeys([*policies[0], *policies[1]]):
        compare(f"baseline.{path}", policies[0].get(path), policies[1].get(path))
    engines = [_engines(side.run.meta) for side in (a, b)]
    for name in dict.fromkeys(["model", *engines[0], *engines[1]]):
        own = [_flat(of.get(name) or {}) for of in engines]
        what = "engine" if name == "model" else f"models.{name}"
        if all(own):
            alike = own[0].get("engine") == own[1].get("engine")  # engines of other kinds have fields of their own
            for path in dict.fromkeys([*own[0], *own[1]]):
                if (name, path) != ("model", "model") and (alike or all(path in one for one in own)):
                    compare(what if path == "engine" else f"{what}.{path}", own[0].get(path), own[1].get(path))
        else:
            absent = "none: policies play" if name == "model" else None
            compare(what, *(one.get("engine" if name == "model" else "model", absent) for one in own))
    words = [fact.get("prompts") or {} for fact in facts]
    for name in words[0]:
        if name in words[1] and words[0][name] != words[1][name]:
            compare(f"words of the prompts {name}", words[0][name][:12], words[1][name][:12])
    judges = [side.run.meta.get("judges") or {} for side in (a, b)]
    for name, one in judges[0].items():
        if name in judges[1] and one.get("digest") != judges[1][name].get("digest"):
            compare(f"judge of {name}", *(f"{j[name].get('judge')}, {str(j[name].get('digest'))[:12]}" for j in judges))
    for part in ("play", "task", "metrics"):
        code = [(side.run.meta.get("code") or {}).get(part) or {} for side in (a, b)]
        for name in code[0]:
            if name in code[1] and code[0][name] != code[1][name]:
                compare(f"code of {name}", code[0][name][:12], code[1][name][:12])
    versions = [side.run.meta.get("versions") or {} for side in (a, b)]
    for name in dict.fromkeys([*versions[0], *versions[1]]):
        compare(f"version of {name}", versions[0].get(name), versions[1].get(name))
    return lines


def _engines(meta: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Name of each model of a run → what its engine is, and where."""
    arguments, types = mapping(meta, "engine_args"), mapping(meta, "engine_types")
    found: dict[str, Mapping[str, Any]] = {
        name: {"engine": types.get(name), **mapping(arguments, name)} for name in arguments
    }
    if own := mapping(mapping(meta, "identity"), "engine"):
        found["model"] = {**found.get("model", {}), **own}
    return found


def spec_changes(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Dotted path → its values in the two specs' data, where what they ask or how they play it differs."""
    flat = [_flat({key: value for key, value in data.items() if key not in _UNNAMED}) for data in (one, other)]
    both = {path: (flat[0].get(path), flat[1].get(path)) for path in dict.fromkeys([*flat[0], *flat[1]])}
    return {path: values for path, values in both.items() if values[0] != values[1]}


def changes_in_words(changes: Mapping[str, tuple[Any, Any]], most: int = 4) -> str:
    """`task.size 25 → 1; limit – → 3`; of many the first."""
    words = [
        f"{path} {cut(text(one), _MAX_VALUE_CHARS)} → {cut(text(other), _MAX_VALUE_CHARS)}"
        for path, (one, other) in changes.items()
    ]
    return "; ".join(words[:most]) + (f"; {len(words) - most} more" if len(words) > most else "")


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Dotted path → value of a nested mapping; lists are values."""
    if not isinstance(value, Mapping) or not value:
        return {path: value} if path else {}
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= _flat(item, f"{path}.{key}" if path else str(key))
    return found


# --------------------------------------------------------------------------------------- the tests


def compared(
    a: RunPart,
    b: RunPart,
    pairs: Pairs,
    headline: HeadlineSpec,
    metrics: Sequence[str],
    titles: Mapping[str, str],
    margin: Amount | None = None,
) -> Table:
    """A row a metric: both means over the pairs, their difference with a 95 % interval, and the test of it.

    Tests and intervals are those of `paired_table`, as in the spec's own tables. The headline is over the episodes
    that it selects. A metric that has no pair of numbers is left out. `margin`: the largest difference that does not
    matter; a share of the range of each metric that has bounds, or a number in the unit of the headline.
    """
    unread = _unread(a, b, headline)
    tests = {
        name: _tested(
            selected(pairs, headline, name) if name != headline.metric or not unread else (), headline, name, margin
        )
        for name in metrics
    }
    tests = {name: row for name, row in tests.items() if row.test.n or name == headline.metric}
    lacking = [name for name in metrics if name not in tests]
    rows = [
        Row({"metric": name}, (headline.title if name == headline.metric else titles.get(name, name),), filled, name)
        for name, filled in zip(tests, cells([*tests.values()], margin=margin is not None), strict=True)
    ]
    table = Table(
        title=f"{b.name} against {a.name}, paired by case",
        row_labels=("metric",),
        column_labels=("statistic",),
        columns=columns(("a", "A"), ("b", "B"), "B − A", margin=margin is not None),
        rows=tuple(rows),
        row_names=("Metric",),
        error="interval",
        digits={name: _digits(row) for name, row in tests.items()},
        notes=(*_notes(a, b, pairs, headline, tests, lacking), *_equivalent(headline, tests, titles, margin)),
    )
    if not unread:
        return table
    table = marked(replace(headline.table, where={}), table, (*a.scores, *b.scores), unread)
    return replace(table, notes=(*table.notes, *unread.values()))


def _unread(a: RunPart, b: RunPart, headline: HeadlineSpec) -> dict[str, str]:
    """Why the sides cannot be compared by the headline: model of which too few turns were parsed → the reason."""
    return {name: why for side in (a, b) for name, why in headline.unread(side.scores).items()}


def selected(pairs: Pairs, headline: HeadlineSpec, metric: str) -> Sequence[tuple[paired.Group, paired.Group]]:
    """The pairs that a metric is about: of the headline those that its `where:` lets through."""
    if metric != headline.metric or not headline.table.where:
        return pairs.both
    chosen = ((headline.selected(x), headline.selected(y)) for x, y in pairs.both)
    return [(x, y) for x, y in chosen if x and y]


def _equivalent(
    headline: HeadlineSpec, tests: Mapping[str, PairedRow], titles: Mapping[str, str], margin: Amount | None
) -> Iterable[str]:
    """Which metrics are the same within the margin."""
    if margin is not None:
        names = {name: headline.name if name == headline.metric else titles.get(name, name) for name in tests}
        yield from equivalence_in_words({names[x]: row.test.equivalence for x, row in tests.items()}, str(margin))


def _tested(
    both: Sequence[tuple[paired.Group, paired.Group]], headline: HeadlineSpec, metric: str, margin: Amount | None
) -> PairedRow:
    conditions = metric == headline.metric and headline.table.aggregate == "mean_of_conditions"
    every = (score for pair in both for group in pair for score in group)
    bounds = bounds_of(headline.metrics[metric], every, metric)
    width, largest = bounds[1] - bounds[0], None
    if margin is not None and (math.isfinite(width) if margin.is_share else metric == headline.metric):
        largest = margin.of(width, metric)
    return PairedRow.of(both, metric, headline.table.cluster, bounds, conditions=conditions, margin=largest)


def _digits(row: PairedRow) -> int:
    largest = max(abs(row.first or 0), abs(row.second or 0))
    return 0 if largest >= 1000 else 1 if largest >= 100 else 3


def _notes(
    a: RunPart,
    b: RunPart,
    pairs: Pairs,
    headline: HeadlineSpec,
    named: Mapping[str, PairedRow],
    lacking: Sequence[str],
) -> Iterable[str]:
    yield from in_words([*named.values()])
    if lacking:
        yield f"No pair has numbers for {', '.join(lacking)}."
    if headline.metric in named and headline.table.where:
        yield f"{headline.title}: only pairs with {headline.where}."
    if headline.metric in named and headline.table.aggregate == "mean_of_conditions":
        yield f"{headline.title}: the mean of the conditions' means."
    if is_clustered(named.values()):
        ours = [score for first, _ in pairs.both for score in first]
        yield f"Standard errors treat {clusters_in_words(headline.table, ours)} as one observation (clustered)."
    if pairs.repeats:
        most = f"up to {pairs.repeats[0]} of A and {pairs.repeats[1]} of B"
        yield f"A pair is a case, with the means of its repeats: {most}."
    if any(pairs.alone):
        yield f"{pairs.alone[0]} episodes of {a.name} and {pairs.alone[1]} of {b.name} are in no pair."
    if pairs.unlike:
        yield f"{pairs.unlike} pairs of equal case ids are left out: their cases are not the same."
    for of, run in {"A: ": a.run, "B: ": b.run}.items() if a.run is not b.run else (("", a.run),):
        yield from (f"{of}{note}" for note in of_run(run.meta))
    for index, side in enumerate((a, b)):
        episodes = [score for sides in pairs.both for score in sides[index]]
        if failed := sum(score.error is not None for score in episodes):
            yield f"{failed} of {len(episodes)} episodes of {side.name} failed or were not run: in no number."


@dataclass(frozen=True, slots=True)
class Differing:
    """A pair in which a number differs: the episodes of both sides, the number of each, second − first."""

    a: paired.Group
    b: paired.Group
    first: float
    second: float
    difference: float


def differing(a: RunPart, b: RunPart, pairs: Pairs, headline: HeadlineSpec, metric: str) -> tuple[list[Differing], int]:
    """(the pairs in which a metric differs, the largest difference first; among how many pairs)."""
    both = selected(pairs, headline, metric)
    both = () if metric == headline.metric and _unread(a, b, headline) else both
    found = list[Differing]()
    for x, y in both:
        one, other = (_quotient(paired.number(side, metric)) for side in (x, y))
        if one is not None and other is not None and (difference := paired.minus(other, one)):
            found.append(Differing(x, y, one, other, difference))
    found.sort(key=lambda pair: (-abs(pair.difference), _id(pair.a)))
    return found, len(both)


def most_different(a: RunPart, b: RunPart, pairs: Pairs, headline: HeadlineSpec) -> Table:
    """The pairs in which the headline differs most, with the ids of both sides."""
    metric = headline.metric
    found, count = differing(a, b, pairs, headline, metric)
    ids = [(_id(one.a), _id(one.b)) for one in found]
    one_id = all(x == y for x, y in ids)
    names = ("Episode",) if one_id else ("Episode of A", "Episode of B")
    numbers = [(one.first, one.second, one.difference) for one in found]
    rows = [
        Row({"a": x, "b": y}, (x,) if one_id else (x, y), tuple(Cell(value, n=1) for value in values))
        for (x, y), values in zip(ids[:MAX_CASES], numbers, strict=False)
    ]
    notes = [f"{len(found)} of {count} pairs differ in {headline.table.title}; these differ most."]
    folders = {"A": a.run.folder, "B": b.run.folder} if a.run.folder != b.run.folder else {"A and B": a.run.folder}
    notes += [f"Look at them: `harness view {folder}` ({sides})." for sides, folder in folders.items()]
    return Table(
        title="Cases that differ most",
        row_labels=("a",) if one_id else ("a", "b"),
        column_labels=("side",),
        columns=tuple(Column({"side": name}, (name,), metric) for name in ("A", "B", "B − A")),
        rows=tuple(rows),
        row_names=names,
        digits=3,
        notes=tuple(notes if found else [f"No pair differs in {headline.table.title}."]),
    )


def _id(group: paired.Group) -> str:
    """An episode's id; of several repeats what they share."""
    return group[0].id if len(group) == 1 else group[0].id.rpartition("/")[0]


def _quotient(value: paired.Number | None) -> float | None:
    return value[0] / value[1] if isinstance(value, tuple) else value
