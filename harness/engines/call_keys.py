"""What a call is known by: a digest of everything that decides its answer.

That is the engine (model, revision, every field that can change an answer), the messages, the sampling, the constraint,
the tools and the call's own seed. It is not the spec, its matrix, its tables, the time or the folder. An episode of
models is known by its calls: where the same things are asked of the same engine, the same moves follow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from harness.api import Engine, Request, Thread
from harness.storage.redaction import without_secrets

DIGEST_BYTES = 16


def engine_facts(engine: Engine, *, location: bool) -> dict[str, Any]:
    """What an engine is, as JSON gives it back: its class and every field that can change an answer, without secrets.

    `location`: with the fields that say where it is. Without them it is what run.json has under `identity`.
    """
    facts = {"engine": type(engine).__name__, **without_secrets(engine.identity(location=location))}
    as_read: dict[str, Any] = json.loads(json.dumps(facts, default=str))
    return as_read


class CallKeys:
    """The keys of one engine's calls.

    Args:
        facts: what the engine is (`engine_facts`).
        places: names of its fields that say where it is. Where one is a list of places, a call has a key for every one
            of them: in what order they stand, and whether one is added, does not matter.
    """

    def __init__(self, facts: Mapping[str, Any], places: Iterable[str] = ()) -> None:
        several = {name: facts[name] for name in places if isinstance(facts.get(name), list)}
        each = (dict(zip(several, values, strict=True)) for values in sorted(product(*several.values()), key=repr))
        self._starts = [_canonical([{**facts, **one}])[:-1] + b", " for one in each]

    def of(self, request: Request) -> list[bytes]:
        """The SHA-256 of what decides the answer, one for each place where the engine is."""
        history, call = _history(request.thread), request.key
        if request.prefill or not request.thread.chat:
            call += [request.prefill, request.thread.chat]
        if request.thread.verbatim and request.thread.chat and type(request) is Request:  # others have no reply
            call.append("verbatim")
        if request.tools:
            call += ["tools", request.tools]
        rest = _canonical(call)[1:]
        return [hashlib.sha256(history + start + rest).digest() for start in self._starts]

    def digest(self, request: Request) -> str:
        """The key as journals have it, of the first place."""
        return self.of(request)[0][:DIGEST_BYTES].hex()


class EngineKeys:
    """The keys of an engine's calls, which are others once its weights are (`Engine.weights`).

    Args:
        engine: the engine.
        location, places: as for `engine_facts` and `CallKeys`.
    """

    def __init__(self, engine: Engine, *, location: bool, places: Iterable[str] = ()) -> None:
        self._engine, self._location, self._places = engine, location, tuple(places)
        self._read()

    def _read(self) -> None:
        self._weights = self._engine.weights
        self._keys = CallKeys(engine_facts(self._engine, location=self._location), self._places)

    def of(self, request: Request) -> list[bytes]:
        """As `CallKeys.of`."""
        if self._engine.weights != self._weights:
            self._read()
        return self._keys.of(request)

    def digest(self, request: Request) -> str:
        """As `CallKeys.digest`."""
        return self.of(request)[0][:DIGEST_BYTES].hex()


_encode = json.JSONEncoder(sort_keys=True, default=repr).encode


def _canonical(value: Any) -> bytes:
    """The same bytes for equal JSON values, whatever the order of their keys."""
    return _encode(value).encode()


def _history(thread: Thread) -> bytes:
    """A digest of the thread's messages that only reads those added since the last call."""
    done, running = thread.memo.get("history") or (0, hashlib.sha256())
    if done < len(thread.messages):
        running = running.copy()
        for message in thread.messages[done:]:
            role, content = message["role"], message["content"]
            if len(message) == 2 and type(content) is str:  # nearly all of them
                running.update(f"{role} {len(content)}\n{content}\n".encode("utf-8", "surrogatepass"))
            else:
                running.update(_canonical(message) + b"\n")
        thread.memo["history"] = (len(thread.messages), running)
    return running.digest()
