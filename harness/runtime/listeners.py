"""Who hears what happens in a run while it happens (`[listeners]` of manifests), such as a sender of traces.

    [listeners.diary]
    run = "diary:from_arguments"              # a function of the parameters that returns the listener
    parameters = ["diary"]                    # of `harness.evaluate`, and options of the command line
    eval = "diary_options:of_eval"            # adds the options to `harness eval`

A listener decides nothing, and is no part of what a run is. It hears what counts: no failure of an outage, after which
the turn is asked again. One that raises is dropped with a warning, and the run goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.api import Facts, Move
from harness.config.plan import Condition, Job, Plan, episode_id
from harness.tables import EpisodeScore

if TYPE_CHECKING:
    from harness.runtime.players import Player
    from harness.runtime.seats import Seat
    from harness.runtime.steps import Recorded
    from harness.storage import Line
    from harness.storage.inner_calls import InnerCall

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class HeardEpisode:
    """An episode that is being played, as listeners hear of it.

    Attributes:
        id: `condition/case/repeat`, unique in its run.
        condition, case, repeat: the parts of the id.
        seats: agent → who plays it, and with what.
        players: agent → its player. A model's has the conversation so far (`thread`).
        recorded: (agent, index of its turn) → a move from before the run was resumed; it is not heard again.
        recorded_inner: the journal's lines of inner calls from before (`harness.storage.inner_calls`), likewise.
    """

    id: str
    condition: Condition
    case: str
    repeat: int
    seats: Mapping[str, Seat]
    players: Mapping[str, Player]
    recorded: Recorded
    recorded_inner: Sequence[Line] = ()


class RunListener:
    """Hears a run. Each method returns at once: what takes long belongs into a thread of the listener's own.

    The methods are called in the process that plays, by one thread.
    """

    def run_began(self, plan: Plan, folder: Path, meta: Facts) -> None:
        """The run begins, or goes on. `meta`: run.json."""

    def episode_began(self, episode: HeardEpisode) -> None:
        """An episode begins, or goes on with what is recorded of it."""

    def move(self, episode: HeardEpisode, round_number: int, index: int, move: Move) -> None:
        """An agent has moved. `round_number`: of the batch, from 0; `index`: the agent's own turns before this one."""

    def inner_call(self, episode: HeardEpisode, call: InnerCall) -> None:
        """An agent program has asked its model, and is about to hear the answer; its move follows."""

    def episode_ended(self, episode: HeardEpisode, score: EpisodeScore) -> None:
        """An episode has ended, and is scored."""

    def run_ended(self, finished: bool) -> Iterable[str]:
        """Nothing more is played; `finished`: nor will be. Returns what the user is to know, as lines. It may take
        seconds."""
        return ()


class Listeners:
    """The listeners of a run, each until it raises.

    Args:
        every: the listeners, each by its name.

    Attributes:
        finished: whether all is played; until then the run stops where `run_ended` is called.
    """

    def __init__(self, every: Mapping[str, RunListener]) -> None:
        self._every = dict(every)
        self._open: dict[str, HeardEpisode] = {}
        self.finished = False

    def run_began(self, plan: Plan, folder: Path, meta: Facts) -> None:
        self._each(lambda one: one.run_began(plan, folder, meta))

    def episode_began(
        self,
        job: Job,
        seats: Mapping[str, Seat],
        players: Mapping[str, Player],
        recorded: Recorded,
        inner: Sequence[Line] = (),
    ) -> None:
        condition, case, repeat = job
        known: dict[str, Any] = {
            "id": (name := episode_id(*job)),
            "condition": condition,
            "case": case.id,
            "repeat": repeat,
        }
        known |= {"seats": seats, "players": players, "recorded": recorded, "recorded_inner": inner}
        self._open[name] = episode = HeardEpisode(**known)
        self._each(lambda one: one.episode_began(episode))

    def on_move(self, episode: str, round_number: int, index: int, move: Move) -> Callable[[], None]:
        """What lets them hear a move of an episode that has begun."""
        heard = self._open[episode]
        return lambda: self._each(lambda one: one.move(heard, round_number, index, move))

    def inner_call(self, call: InnerCall) -> None:
        if (episode := self._open.get(call.episode)) is not None:
            self._each(lambda one: one.inner_call(episode, call))

    def episode_ended(self, score: EpisodeScore) -> None:
        if (episode := self._open.pop(score.id, None)) is not None:  # else it failed before any player was made
            self._each(lambda one: one.episode_ended(episode, score))

    def run_ended(self) -> None:
        """Let them end, and log what they say."""
        said: list[str] = []
        self._each(lambda one: said.extend(one.run_ended(self.finished)))
        for line in said:
            _log.warning("%s", line)

    def _each(self, tell: Callable[[RunListener], object]) -> None:
        for name, one in list(self._every.items()):
            try:
                tell(one)
            except Exception as error:  # whatever it is: no run ends for who listens to it
                del self._every[name]
                _log.warning("--%s listens no more: %s: %s", name, type(error).__name__, error)
