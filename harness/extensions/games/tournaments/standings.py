"""Standings of tournaments that are not finished, and of several that have the game in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harness.config.building import policy_name
from harness.config.plan import Job, Plan
from harness.tables import CorpusRecord, EpisodeScore

if TYPE_CHECKING:
    from .tournament import Tournament

MODEL: Final = "model"
"""How specs call the model under test."""
_LISTED: Final = 20


def planned(tournament: Tournament, plan: Plan, episodes: Iterable[Job]) -> dict[str, Any]:
    """`games`: contestant → how many it is to play, empty where rounds are still to be drawn. `models`: contestant →
    the model that plays for it, of those that models play."""
    games: Counter[str] = Counter()
    if tournament.rounds is None:
        for condition, _, _ in episodes:
            games.update({group.name for group in condition.groups[1:]})
    models = {one.name: str(one.body["model"]) for one in tournament.contestants if "model" in one.body}
    return {"games": dict(games), "models": models}


def interim(planned: Mapping[str, Any], stopped: Mapping[str, Any], scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """Notes on a tournament of which these games are finished. Arguments as of `SpecKey.so_far`."""
    played = Counter(name for score in scores for name in {*str(score.labels.get("pairing", "")).split(" vs ")} - {""})
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
    """As `SpecKey.compared`: tournaments whose pools differ have the game in common, and contestants by their names."""
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
    return {**rest, "teams": entry.get("teams")}, pool


_OF_A_POOL: Final = ("tournament", "models", "generation_kwargs", "metrics", "headline", "baseline")
"""Keys of a spec that say who plays, or that a task proposes by who plays."""


def together(scores: Iterable[EpisodeScore], metric: str) -> list[EpisodeScore]:
    """Games of several tournaments as those of one: the model under test of each has its own name there."""
    return [_named(score, metric) for score in scores]


def _named(score: EpisodeScore, metric: str) -> EpisodeScore:
    record, labels = score.record(metric), dict(score.labels)
    if record is None or "pairing" not in labels or not isinstance(record.value, list):
        return score
    name = score.model
    seats = [[name, *seat[1:]] if isinstance(seat, list) and seat[:1] == [MODEL] else seat for seat in record.value]
    if labels.get("first") == MODEL:
        labels["first"] = name
    return replace(score, labels=labels, numbers={**score.numbers, metric: CorpusRecord(seats)})
