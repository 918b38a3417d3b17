"""Standings of tournaments that are not finished, and of several that have the game in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harness.config.building import policy_name
from harness.config.plan import Job, Plan, case_digest
from harness.tables import CorpusRecord, EpisodeScore

from .results import VERSUS, game_of

if TYPE_CHECKING:
    from .tournament import Tournament

MODEL: Final = "model"
"""How specs call the model under test."""
_LISTED: Final = 20


def planned(tournament: Tournament, plan: Plan, episodes: Sequence[Job]) -> dict[str, Any]:
    """`games`: contestant → how many it is to play, empty where rounds are still to be drawn. `models`: contestant →
    the model that plays for it, of those that models play. `cases`: case → digest."""
    games: Counter[str] = Counter()
    cases: dict[str, str] = {}
    looked: set[str] = set()
    for condition, case, _ in episodes:  # seatings have the same cases
        if condition.drawn is None:
            if (name := f"{condition.origin}/{case.id}") not in cases:
                cases[name] = case_digest(case)
        elif condition.origin not in looked:
            cases |= {f"{condition.origin}/{one.id}": case_digest(one) for one, _ in plan.all_cases(condition)}
            looked.add(condition.origin)
    if tournament.rounds is None:
        for condition, _, _ in episodes:
            games.update({group.name for group in condition.groups[1:]})
    models = {one.name: str(one.body["model"]) for one in tournament.contestants if "model" in one.body}
    return {"games": dict(games), "models": models, "cases": cases}


def interim(planned: Mapping[str, Any], stopped: Mapping[str, Any], scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """Notes on a tournament of which these games are finished. Arguments as of `SpecKey.so_far`."""
    played = Counter(name for score in scores for name in {*str(score.labels.get("pairing", "")).split(VERSUS)} - {""})
    games: Mapping[str, int] = planned.get("games", {})
    labels = {score.model for score in scores}
    title = labels.pop() if len(labels) == 1 else MODEL

    def called(name: str) -> str:
        return title if name == MODEL else name

    names = sorted(games or played)
    if not names:
        return
    listed = [f"{called(name)} {played[name]}{f' of {games[name]}' if name in games else ''}" for name in names]
    more = f" and {len(listed) - _LISTED} more contestants" if len(listed) > _LISTED else ""
    yield f"Interim standings, after these games of each: {', '.join(listed[:_LISTED])}{more}."
    down = stopped.get("engines", {})
    for name, model in planned.get("models", {}).items():
        if model in down:
            void = f"its {games[name] - played[name]} unplayed games are" if name in games else "its unplayed games are"
            yield f"{called(name)} has dropped out, since its engine is down: {void} void until it is back."


def compared(spec: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """As `SpecKey.compared`: tournaments whose pools differ have the game in common, and contestants by their names.
    How many cases there are may differ too."""
    entry, models = spec["tournament"], spec.get("models", {})
    sampling = spec.get("generation_kwargs", {})
    pool: dict[str, Any] = {}
    for one in entry["pool"]:
        body = {"model": one} if isinstance(one, str) else dict(one)
        model, label = body.get("model"), body.pop("label", None)
        if model != MODEL or label is not None:
            engine = [models.get(model), sampling] if model is not None else None
            pool[str(label or model or policy_name(body["policy"]))] = [body, engine]
    rest = {key: value for key, value in spec.items() if key not in _OF_A_POOL}
    if isinstance(task := rest.get("task"), Mapping):
        rest["task"] = {key: value for key, value in task.items() if key != "instances"}
    return {**rest, "teams": entry.get("teams")}, pool


_OF_A_POOL: Final = (
    *("tournament", "models", "generation_kwargs", "metrics", "headline", "baseline"),
    *("limit", "repeats"),
)
"""Keys of a spec that say who plays and how often, or that a task proposes by who plays."""


def together(scores: Iterable[EpisodeScore], metric: str) -> tuple[list[EpisodeScore], list[str]]:
    """(Games of several tournaments as those of one, notes): the model under test of each has its own name there, and
    an episode that several have counts once, as in the first of them that has a result."""
    kept: dict[tuple[Any, ...], EpisodeScore] = {}
    shared = others = 0
    for score in scores:
        one = _named(score, metric)
        labels = one.labels
        name = (
            game_of(score),
            labels.get("round"),
            labels.get("pairing"),
            labels.get("first"),
            one.id[len(one.condition) :],
        )
        before = kept.setdefault(name, one)
        if before is not one:
            shared += 1
            known, here = before.record(metric), one.record(metric)
            others += known is not None and here is not None and known != here
            if known is None and here is not None:
                kept[name] = one
    return [*kept.values()], [*_in_common(shared, others), *_unbalanced(kept.values(), metric)]


def _in_common(shared: int, others: int) -> Iterable[str]:
    if shared:
        more = f" {others} of them have another result in another run: that of the run that began first counts."
        yield f"{shared} episodes are in several runs, and count once.{more if others else ''}"


def _unbalanced(scores: Iterable[EpisodeScore], metric: str) -> Iterable[str]:
    rated = [one for one in scores if one.record(metric) is not None]
    games = Counter((game_of(one), pairing) for one in rated if len({*(pairing := _pairing(one))}) > 1)
    if games and (least := min(games.values())) < (most := max(games.values())):
        yield f"The runs have other numbers of games: {least} to {most} of each pairing, all of which count."


def _pairing(score: EpisodeScore) -> tuple[str, ...]:
    return tuple(str(score.labels["pairing"]).split(VERSUS))


def _named(score: EpisodeScore, metric: str) -> EpisodeScore:
    """With the name of its model for `model`."""
    record, labels, name = score.record(metric), dict(score.labels), score.model
    labels["pairing"] = VERSUS.join(name if one == MODEL else one for one in _pairing(score))
    labels["first"] = name if labels["first"] == MODEL else labels["first"]
    if record is None or not isinstance(record.value, list):
        return replace(score, labels=labels)
    seats = [[name, *seat[1:]] if isinstance(seat, list) and seat[:1] == [MODEL] else seat for seat in record.value]
    return replace(score, labels=labels, numbers={**score.numbers, metric: CorpusRecord(seats)})
