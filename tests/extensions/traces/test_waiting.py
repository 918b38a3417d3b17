"""What a live trace keeps while its collector takes nothing: little, and nothing of the run's own."""

import gc
import weakref
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion
from harness.engines.mock import Mock
from harness.extensions.traces.sender import Make
from harness.extensions.traces.span import RunSpans, Span
from harness.extensions.traces.trace_listener import TraceListener
from harness.runtime.listeners import HeardEpisode
from tests.extensions.traces.test_live import played

SAID = "what the model said, at some length. " * 100


class Waiting:
    """Takes a run's spans in the place of a sender, up to `most` characters, and sends none."""

    def __init__(self, endpoint: str, run: RunSpans, most: int = 1 << 40) -> None:
        self.most, self.size, self.sent, self.lost = most, 0, 0, 0
        self.kept: list[tuple[Make, int, bool]] = []

    def put(self, make: Make, size: int, needed: bool = False) -> bool:
        if self.size + size > self.most and not needed:
            self.lost += 1
            return False
        self.size += size
        self.kept.append((make, size, needed))
        return True

    def drop(self) -> None:
        self.lost += 1

    def close(self) -> None:
        pass


class Watcher(TraceListener):
    """Knows the players of a run, and keeps none."""

    def __init__(self, sender: Any, content: bool = False) -> None:
        super().__init__("nowhere", content, sender)
        self.players_of_run: list[weakref.ref[Any]] = []
        self.episodes = 0

    def episode_began(self, episode: HeardEpisode) -> None:
        self.episodes += 1
        self.players_of_run += map(weakref.ref, episode.players.values())
        super().episode_began(episode)


def held(roots: Iterable[object]) -> int:
    """Characters of all texts that these objects hold, each text once."""
    seen: set[int] = set()
    left, total = [*roots], 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | Waiting | TraceListener):
            continue
        seen.add(id(one))
        if isinstance(one, str):
            total += len(one)
        else:
            left += gc.get_referents(one)
    return total


@pytest.mark.parametrize("content", [False, True], ids=["bare", "content"])
def test_what_waits_holds_no_player_and_is_as_large_as_it_says(tmp_path: Path, content: bool) -> None:
    heard = Watcher(Waiting, content)
    played(tmp_path / "r", heard, Mock(function=lambda request: Completion(SAID, SAID, latency=0.0)))
    gc.collect()
    assert len(heard.players_of_run) > 10 and not [one for one in heard.players_of_run if one() is not None]
    waiting: Any = heard.sender
    data = [part for make, _, _ in waiting.kept if isinstance(make, partial) for part in make.args]
    assert held(data) <= waiting.size
    if not content:
        assert waiting.size < len(waiting.kept) * 10_000, "replies are not kept where no span shows them"
    spans: list[Span] = [span for make, _, _ in waiting.kept for span in make()]
    assert any("gen_ai.output.messages" in span.attributes for span in spans) == content


def test_an_episode_whose_beginning_was_dropped_leaves_nothing(tmp_path: Path) -> None:
    heard = Watcher(partial(Waiting, most=6_000))
    played(tmp_path / "r", heard, max_concurrency=1)
    waiting: Any = heard.sender
    began = [make for make, _, _ in waiting.kept if make.func == heard._began]  # type: ignore[attr-defined]
    ended = [make for make, _, needed in waiting.kept if needed]
    assert 0 < len(began) < heard.episodes and len(ended) == len(began) + 1, "one is the run's own"
    assert waiting.lost > heard.episodes - len(began) and not heard._dropped
    for make, _, _ in waiting.kept:
        [*make()]  # none of them belongs to an episode that was dropped
    assert not heard._open
