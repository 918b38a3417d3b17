"""The lines of a journal about inner calls: what agent programs asked their model, and the answers.

A line is written as a call ends, and is with the operating system before the program gets the answer:

    {"k": "inner", "e": episode, "s": agent, "i": index of the turn, "r": attempt, "n": number of the call in it,
     "try": how often the program had been started for this attempt before, "model": the engine's name in the run,
     "digest": of the request, "ask": {…}, "seed": …, "call": {…}}       or "error" and "error_kind" in place of "call"

`ask` is the request; its `same` is [i, r, n, k]: its first k messages are those of that earlier call, and `messages`
holds the others. What a program did not ask again after a resume is named by a line
{"k": "dropped", "e", "s", "i", "r", "n": [numbers]}.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.api import Completion, InnerRequest, TurnId

from .finished_episodes import read_places
from .journal import Line, lines
from .journal_state import naming
from .token_ids import TOKEN_FIELDS, completion_of, fields_of

INNER, DROPPED = "inner", "dropped"
_FIELDS = ("text", "tool_choice", "constraint")
_RECENT = 8
"""Calls of a seat among which a new one's beginning is looked for."""


@dataclass(frozen=True, slots=True)
class InnerCall:
    """One call that an agent program made of its model.

    Attributes:
        episode, agent, index, attempt: the turn's try in which it was made; `number` counts the calls in it.
        start: how often the program had been started for this attempt before: 0 unless the run was resumed within it.
        model: the engine's name in the run: an entry under `models:`, or the agent's name and ".inner".
        seed: of the call.
        completion: the answer; None where it failed: `error`, `error_kind`.
        is_dropped: whether the program, played again after a resume, went another way before this call.
    """

    episode: str
    agent: str
    index: int
    attempt: int
    number: int
    start: int
    model: str
    request: InnerRequest
    seed: int
    completion: Completion | None
    error: str | None
    error_kind: str | None
    digest: str
    is_dropped: bool = False


class InnerWriter:
    """Makes the lines of one seat's calls, of which each prompt mostly begins like an earlier one."""

    def __init__(self) -> None:
        self._recent: deque[tuple[tuple[int, int, int], InnerRequest]] = deque(maxlen=_RECENT)

    def line(self, call: InnerCall) -> Line:
        """The line of a call. Token ids are left out."""
        line: Line = {"k": INNER, "e": call.episode, "s": call.agent, "i": call.index, "r": call.attempt}
        line["n"] = call.number
        if call.start:
            line["try"] = call.start
        line |= {"model": call.model, "digest": call.digest, "ask": self._ask(call), "seed": call.seed}
        if (answer := call.completion) is not None:
            line["call"] = {name: value for name, value in fields_of(answer).items() if name not in TOKEN_FIELDS}
        else:
            line |= {"error": call.error, "error_kind": call.error_kind}
        return line

    def _ask(self, call: InnerCall) -> dict[str, Any]:
        request = call.request
        ask: dict[str, Any] = {"api": request.api, "model": request.model}
        shared, base = 0, None
        for place, earlier in reversed(self._recent):
            if (count := _common(earlier.messages, request.messages)) > shared:
                shared, base = count, (place, earlier)
                if count == len(earlier.messages):
                    break
        if base is not None:
            ask["same"] = [*base[0], shared]
        if request.messages:
            ask["messages"] = request.messages[shared:]
        ask |= {name: value for name in _FIELDS if (value := getattr(request, name)) is not None}
        if request.sampling:
            ask["sampling"] = request.sampling
        if request.tools and (base is None or request.tools != base[1].tools):
            ask["tools"] = request.tools
        elif base is not None and base[1].tools and not request.tools:
            ask["tools"] = []
        self._recent.append(((call.index, call.attempt, call.number), request))
        return ask


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many messages at the beginning of both are the same."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    return next((i for i in range(most) if one[i] != other[i]), most)


def dropped_line(turn: TurnId, numbers: Iterable[int]) -> Line:
    """The line that names calls which a program did not make again."""
    return {"k": DROPPED, "e": turn.episode, "s": turn.agent, "i": turn.index, "r": turn.attempt, "n": sorted(numbers)}


def in_order(own: Iterable[Line]) -> list[Line]:
    """The lines of both kinds, calls first: which of several journals is read first does not matter then."""
    return sorted(own, key=lambda line: line["k"] == DROPPED)


class RecordedAttempt:
    """What is recorded of the calls in one attempt at a reply.

    Attributes:
        by_seed: seed of a call → its last line: a call that failed, and was made again after a resume, has several.
        next: the number of the next call.
        starts: how often the program was started for it.
    """

    def __init__(self) -> None:
        self.by_seed: dict[int, Line] = {}
        self.next = self.starts = 0

    def add(self, line: Line) -> None:
        """Take a line of a call."""
        number = int(line["n"])
        self.next, self.starts = max(self.next, number + 1), max(self.starts, line.get("try", 0) + 1)
        earlier = self.by_seed.get(line["seed"])
        if earlier is None or earlier["n"] < number:
            self.by_seed[line["seed"]] = line

    def drop(self, numbers: Container[int]) -> None:
        """Forget the calls with these numbers, which the program did not make again. No other gets their numbers."""
        self.by_seed = {seed: line for seed, line in self.by_seed.items() if line["n"] not in numbers}


def restored(own: Iterable[Line]) -> list[InnerCall]:
    """The inner calls of an episode from its lines of both kinds, in the order of the turns.

    Raises `KeyError`, `TypeError` or `ValueError` for a line of a strange shape.
    """
    calls: dict[tuple[str, int, int, int], InnerCall] = {}
    for line in in_order(own):
        place = line["s"], line["i"], line["r"]
        if line["k"] == DROPPED:
            for number in line["n"]:
                calls[*place, number] = replace(calls[*place, number], is_dropped=True)
            continue
        ask = line["ask"]
        base: InnerRequest | None = None
        messages, tools = list(ask.get("messages", ())), ask.get("tools")
        if "same" in ask:
            *at, count = ask["same"]
            base = calls[line["s"], *at].request
            messages = [*base.messages[:count], *messages]
        request = InnerRequest(
            ask["api"], ask["model"], messages, tools=tools if tools is not None else base.tools if base else (),
            sampling=ask.get("sampling", {}), **{name: ask.get(name) for name in _FIELDS},
        )  # fmt: skip
        calls[*place, line["n"]] = InnerCall(
            episode=line["e"],
            agent=line["s"],
            index=line["i"],
            attempt=line["r"],
            number=line["n"],
            start=line.get("try", 0),
            model=line["model"],
            request=request,
            seed=line["seed"],
            completion=completion_of(line["call"]) if "call" in line else None,
            error=line.get("error"),
            error_kind=line.get("error_kind"),
            digest=line["digest"],
        )
    return sorted(calls.values(), key=lambda call: (call.index, call.agent, call.attempt, call.number))


class InnerCallIndex:
    """Where the inner calls of each episode stand in a run's journals; it reads them one episode at a time.

    Raises `DataError` for a journal that is damaged.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [path for path in paths if path.exists()]
        self._places: dict[str, array[int]] = {}
        for file, path in enumerate(self._paths):
            for offset, line in lines(path):
                if line.get("k") in (INNER, DROPPED):
                    places = self._places.setdefault(line["e"], array("Q"))
                    places.append(offset * len(self._paths) + file)

    def __bool__(self) -> bool:
        return bool(self._places)

    def episodes(self) -> Iterator[str]:
        """The episodes that have any."""
        return iter(self._places)

    def of(self, episode: str) -> list[InnerCall]:
        """Those of an episode, in the order of its turns."""
        places = self._places.get(episode, ())
        with naming(self._paths[0] if self._paths else Path(), 0):
            return restored(read_places(self._paths, places))


def by_turn(calls: Iterable[InnerCall]) -> Mapping[tuple[str, int], tuple[InnerCall, ...]]:
    """(agent, index of its turn) → the calls made in it, all attempts together."""
    turns: dict[tuple[str, int], list[InnerCall]] = {}
    for call in calls:
        turns.setdefault((call.agent, call.index), []).append(call)
    return {turn: tuple(own) for turn, own in turns.items()}
