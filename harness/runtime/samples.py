"""A file of whole conversations, an episode a line, for those who want to read them without the harness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from harness.api import Case, Episode
from harness.runtime.players import ModelPlayer, Player
from harness.storage import Journal, Line, PromptIds, move_line, outcome_line


class SampleLog:
    """Appends finished episodes to a JSONL file, without the torn line that a crash may have left.

    A line holds the case without its target, the conversation of every agent that a model plays (`threads`), the moves
    as the journal has them, the outcome and the grade.

    Raises:
        StorageError: if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path, lenient=True, seal=False)
        self._inner: dict[str, list[Line]] = {}

    def note(self, line: Line) -> None:
        """Keep a line about inner calls for its episode's line."""
        what = {name: value for name, value in line.items() if name not in ("e", "asked", "engine")}
        self._inner.setdefault(line["e"], []).append(what)

    def write(self, episode: Episode, case: Case, players: Mapping[str, Player]) -> None:
        """Append an episode. `players`: agent → who played it."""
        turns: Counter[str] = Counter()
        moves, prompts = [], PromptIds()
        for b, batch in enumerate(episode.batches):
            moves.append(
                [move_line(episode.id, b, p, turns[move.agent], move, prompts) for p, move in enumerate(batch)]
            )
            turns.update(move.agent for move in batch)
        line: Line = {
            "episode": episode.id,
            "labels": dict(episode.labels),
            "case": {"public": dict(case.public), "topology": case.topology, "roles": dict(case.roles)},
            "threads": {agent: p.thread.messages for agent, p in players.items() if isinstance(p, ModelPlayer)},
            "moves": moves,
            "outcome": outcome_line(episode.outcome),
            "grade": dict(episode.grade),
            "error": episode.error,
        }
        if (inner := self._inner.pop(episode.id, None)) is not None:
            line["inner"] = inner
        self._journal.append(line)

    def close(self) -> None:
        """Close the file."""
        self._journal.close()
