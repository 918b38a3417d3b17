"""What `harness blame` found, kept beside the run: for the viewer, and for exports."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

from harness import storage
from harness.api import Move, as_text
from harness.api.errors import DataError, Place
from harness.api.printable import clean_name, cut
from harness.storage import finished_episodes
from harness.storage.files import write_atomically
from harness.storage.locks import Lock
from harness.transcripts.view_api import Finding, Transcript, TurnFinding

from .blame_verdict import words_of

FILE = "blame.json"
_FORMAT = 1
_MAX_FILE_BYTES = 256 << 20  # bytes of the file
_LOCK = f".{FILE}.lock"
_TRIES, _PAUSE = 200, 0.05  # of taking the lock; seconds between two of them
_MAX_REFERENCE_CHARS = 100  # characters of a reference with its parameters
_MAX_NAMED_MOVES = 8  # moves that a sentence names
_STRANGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)  # by JSON of someone else


def keep(folder: Path, *found: Mapping[str, Any]) -> None:
    """Add what was found to `blame.json` of the run; it replaces what the same reference, with the same parameters,
    said of the same episodes.

    Args:
        folder: the run's.
        found: as `blame_command.as_json` has it, of each sample; readers that want one verdict take the last.

    Raises:
        OSError: the file cannot be written.
        DataError: another process has been writing it for many seconds; or what is there is not as `keep` writes it,
            and stays.
    """
    names = {one["episode"] for sample in found for one in sample["episodes"]}
    digests = {
        end["e"]: _digest(move for batch in batches for move in batch)
        for end, batches in finished_episodes.batches(*storage.journals(folder), episodes=names)
    }
    lock = _locked(folder)
    try:
        # Read again: the cache goes by the time of the file, within which another process may have replaced it.
        whole = _load(folder / FILE)
        whole = {name: value for name, value in whole.items() if isinstance(value, dict)}
        for sample in found:
            key = _key(sample)
            before = whole.pop(key, {}).get("episodes")  # the reference that was given last stands last
            known = {**before} if isinstance(before, dict) else {}
            for one in sample["episodes"]:
                known[one["episode"]] = {**one, "moves": digests.get(one["episode"])}
            whole[key] = {**{name: sample[name] for name in ("metric", "by", "policy")}, "episodes": known}
        write_atomically(folder / FILE, json.dumps({"format": _FORMAT, "found": whole}, default=str) + "\n")
    finally:
        lock.release()


def _key(found: Mapping[str, Any]) -> str:
    key = f"{found['metric']} by {found['by']}"
    if found["policy"] != {"use": found["by"]}:
        key += f" {json.dumps(found['policy'], sort_keys=True, default=str)}"
    return key


def _locked(folder: Path) -> Lock:
    """The lock of the file, once whoever replaces it now has done so."""
    for _ in range(_TRIES):
        with contextlib.suppress(DataError):
            return Lock(folder, _LOCK)
        sleep(_PAUSE)
    return Lock(folder, _LOCK)


def of_episode(folder: Path, transcript: Transcript) -> Iterator[Finding]:
    """What was found out about an episode, of each reference; nothing where its moves are others now.

    Raises `DataError` where the file is not as `keep` writes it; of an entry that is not, nothing comes.
    """
    digest = None
    for entry in _read(folder).values():
        try:
            one = entry["episodes"].get(transcript.id)
            if one is None:
                continue
            digest = digest or _digest(turn.move for turn in transcript.turns if turn.move is not None)
            if one["moves"] == digest:
                yield _finding(one, str(entry["metric"]), _named(entry), transcript)
        except _STRANGE:
            continue


def _named(entry: Mapping[str, Any]) -> str:
    """The reference: its label, or its name with its parameters, which tell two of the same name apart."""
    by, policy = str(entry["by"]), entry.get("policy") or {}
    parameters = [f"{key}: {as_text(value)}" for key, value in policy.items() if key != "use"]
    return by if "label" in policy or not parameters else cut(f"{by} ({', '.join(parameters)})", _MAX_REFERENCE_CHARS)


def verdicts_of(folder: Path) -> dict[str, list[int]]:
    """Episode → the numbers of the turns each of which alone decides it, in order; none where nobody is blamed, or
    only several moves together; of several references what the one says that was given last.

    Whether the moves are still those is not looked at. Raises as `of_episode`.
    """
    found: dict[str, list[int]] = {}
    for entry in _read(folder).values():
        try:
            for name, one in entry["episodes"].items():
                named = sorted({int(move["turn"]) for move in one["decisive"]})
                found[name] = named if one["finding"] == "blamed" and one["alone"] else []
        except _STRANGE:
            continue
    return found


@dataclass(frozen=True)
class KeptMove:
    """A decisive move: its round, its agent and that agent's own turns before it, the template of its turn, the group
    of its agent, and the model (or policy) that played it."""

    round: int
    agent: str
    index: int
    template: str
    group: str
    model: str


@dataclass(frozen=True)
class KeptVerdict:
    """What was found out about an episode, and its decisive moves, the earliest first."""

    finding: str
    named: tuple[KeptMove, ...]


def kept_of(folder: Path, metric: str, episodes: Collection[str]) -> tuple[str, dict[str, KeptVerdict]]:
    """The reference of this metric that was given last, and what it said of these episodes; "" and nothing where there
    is none. What was found about moves that are others now is left out.

    Raises `DataError` as `of_episode`, and where the journal is damaged.
    """
    by, found, digests = "", dict[str, KeptVerdict](), dict[str, Any]()
    for entry in _read(folder).values():
        try:
            if entry["metric"] == metric:
                own = {name: one for name, one in entry["episodes"].items() if name in episodes}
                by, found, digests = _named(entry), {}, {name: one["moves"] for name, one in own.items()}
                for name, one in own.items():
                    moves = sorted(one["decisive"], key=lambda move: int(move["turn"]))
                    found[name] = KeptVerdict(str(one["finding"]), tuple(map(_kept_move, moves)))
        except _STRANGE:
            continue
    current = {
        end["e"]: _digest(move for batch in batches for move in batch)
        for end, batches in finished_episodes.batches(*storage.journals(folder), episodes={*found})
    }
    return by, {name: one for name, one in found.items() if current.get(name) == digests[name]}


def _kept_move(move: Mapping[str, Any]) -> KeptMove:
    """Raises one of `_STRANGE`."""
    names = (clean_name(str(move.get(key, "unknown"))) for key in ("template", "group", "model"))
    index = int(move["index"])
    if index < 0:
        raise ValueError(f"{index} is no number of a turn")
    return KeptMove(int(move["round"]), str(move["agent"]), index, *names)


def _digest(moves: Iterable[Move]) -> str:
    """A digest of what agents did and said in an episode."""
    lines = [[move.agent, move.turn, move.action, move.text] for move in moves]
    return hashlib.sha256(json.dumps(lines, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _read(folder: Path) -> Mapping[str, Any]:
    """What the file has; nothing where there is none. Raises `DataError` where it is not as `keep` writes it."""
    try:
        stat = (folder / FILE).lstat()
    except OSError:
        return {}
    return _parsed(folder / FILE, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=2)
def _parsed(file: Path, time: int, size: int) -> Mapping[str, Any]:
    return _load(file)


def _load(file: Path) -> Mapping[str, Any]:
    """As `_read`, without a cache."""
    raw = storage.read_own(file, _MAX_FILE_BYTES)
    if raw is None:
        return {}
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        data = None
    found = data.get("found") if isinstance(data, dict) and data.get("format") == _FORMAT else None
    if not isinstance(found, dict):
        hint = "Remove it; the same `harness blame` writes it again."
        raise DataError("not what `harness blame` of this version writes", place=Place(str(file)), hint=hint)
    return found


def _finding(one: Mapping[str, Any], metric: str, by: str, transcript: Transcript) -> Finding:
    """Raises one of `_STRANGE` where it is not as `keep` wrote it."""
    agents = [turn.agent for turn in transcript.turns]
    value, reference = _number(one["value"]), _number(one["reference"])
    decisive = {int(move["turn"]): str(move["agent"]) for move in one["decisive"]}
    effects = {int(move["turn"]): _number(move["effect"]) for move in one["effects"]}
    messages = {int(turn): _number(effect) for turn, effect in one["messages"].items()}
    last = None if one["last_chance"] is None else int(one["last_chance"])
    shares = {str(agent): own for agent, share in one["shares"].items() if (own := _number(share["share"])) is not None}
    turns: dict[int, TurnFinding] = {}
    for number in sorted({*decisive, *effects, *messages, *([] if last is None else [last])}):
        if not 0 <= number < len(agents):  # it comes where another move was made
            continue
        words = [word for word, is_so in (("decisive", number in decisive), ("last chance", number == last)) if is_so]
        facts: dict[str, Any] = {"by": by, "decisive": number in decisive, "last_chance": number == last}
        facts |= {"deviates": number in effects, "effect": effects.get(number)}
        facts |= {"effect_of_message": messages[number]} if number in messages else {}
        turns[number] = TurnFinding(", ".join(words), facts)
    facts = {"metric": metric, "by": by, "finding": str(one["finding"]), "value": value, "reference": reference}
    facts |= {"decisive": [{"turn": turn, "agent": agent} for turn, agent in decisive.items()], "last_chance": last}
    facts |= {"alone": bool(one["alone"]), "shares": shares}
    text = [_sentence(str(one["finding"]), decisive, bool(one["alone"]), by)]
    if value is not None and reference is not None:
        text.append(f"{metric}: {value:.4g}; with “{by}” in all seats: {reference:.4g}.")
    if last is not None and decisive:
        text.append(
            f"Last chance: turn {last}. From there on “{by}” in all seats still saves it; from later turns on not."
        )
    if any(number >= len(agents) for number in decisive):
        text.append(f"Turns from {len(agents)} on come only once an earlier move is another one.")
    title = f"Who made it fail, measured with “{by}”"
    return Finding(title=title, text=" ".join(text), turns=turns, shares=shares, facts=facts)


def _sentence(finding: str, decisive: Mapping[int, str], alone: bool, by: str) -> str:
    named = [f"{agent} at turn {turn}" for turn, agent in decisive.items()]
    who = ", ".join(named[:_MAX_NAMED_MOVES]) + (
        f" and {len(named) - _MAX_NAMED_MOVES} more" if len(named) > _MAX_NAMED_MOVES else ""
    )
    if finding != "blamed" or not named:
        words = words_of(finding)
        return f"{words[0].upper()}{words[1:]}."
    if len(named) == 1:
        return f"{who} decides it: with the move of “{by}” there, and nothing else changed, it does not fail."
    if alone:
        return f"Any one of these moves decides it: {who}. With one of them made by “{by}” it does not fail."
    return f"These {len(named)} moves decide it together: {who}. With all of them made by “{by}” it does not fail."


def _number(value: Any) -> float | None:
    """A finite number, or None. Raises `TypeError` for anything else, `OverflowError` for an integer no float holds."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.40} is no number")
    return float(value) if math.isfinite(value) else None
