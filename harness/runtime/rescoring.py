"""A finished run graded and measured again from its journal: `harness score`."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from harness import storage
from harness.api import Episode
from harness.api.errors import DataError
from harness.api.run_files import ERRORS
from harness.config.plan import Plan, episode_id, problem_digest
from harness.replies.parse_guard import note_bugs
from harness.runtime.scoring import grade, labels, score, turns_of
from harness.runtime.verification import dispute, refuse, same_readers
from harness.storage import finished_episodes
from harness.storage.error_log import ErrorLog
from harness.storage.errors_on_disk import forget_scoring
from harness.tables import EpisodeScore


def rescore(plan: Plan, folder: Path, provider: str = "process") -> list[EpisodeScore]:
    """Grade and measure a finished run again from its recorded moves: the scores of all played episodes, in plan order.

    Raises `DataError` if the journal contains episodes that the plan does not have, outcomes that do not follow from
    their moves, or moves that are not what their texts say to the forms that read them then.
    """
    forget_scoring(folder)
    errors = ErrorLog(folder / ERRORS)
    episodes = {episode_id(*episode): episode for episode in plan.episodes()}
    scored: dict[str, EpisodeScore] = {}
    disputed: dict[str, str] = {}
    texts = same_readers(plan, folder)  # another version reads otherwise, and its moves are what was played then
    for end, batches in finished_episodes.batches(*storage.journals(folder)):
        name = end["e"]
        note_bugs(functools.partial(errors.record, episode=name))
        if name not in episodes:
            raise DataError(
                f"{folder} holds episode {name!r}, which its spec does not make", hint="Was spec.yaml edited?"
            )
        condition, case, repeat = episodes[name]
        why = dispute(plan, episodes[name], end, batches, texts=texts)
        if why is not None:
            disputed[name] = why
        if disputed:
            continue
        episode = Episode(
            id=name,
            condition=condition.id,
            case=case.id,
            repeat=repeat,
            labels=labels(plan, condition, case),
            roles=case.roles,
            batches=batches,
            outcome=storage.outcome_of(end["outcome"]),
            # What came to an outcome was played well: its error is of grading or measuring, which is done again here.
            error=end["error"] if end["outcome"] is None else None,
        )
        # The journal knows the players: the plan has a model in the baseline's place.
        graded = grade(episode, condition, case, errors, provider)
        ground_truth = end.get("uses_ground_truth", False)
        turns, usage = turns_of(graded, condition, case), end.get("usage", {})
        again = score(graded, plan.metrics, ground_truth, errors, turns, usage)
        scored[name] = replace(again, problem=problem_digest(condition.task, case))
    refuse(plan, folder, disputed)
    return [scored[name] for name in episodes if name in scored]
