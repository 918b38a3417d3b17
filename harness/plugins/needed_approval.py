"""One thing that needs approval: what would run, or be sent, and the digest by which it is approved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class NeededApproval:
    """One thing that would run, or be sent.

    Attributes:
        what: in words: the file that would run; "OPENAI_API_KEY to https://…".
        digest: SHA-256 of what would run, or of the pair, as hexadecimal digits; "" if it cannot be approved by
            digest, because it is another one every time: a program that a model writes.
        why: which part of a spec asks for it.
        file: the file that would run. Your own file (`is_own`) needs no approval.
        fields: paths of the parameters that ask for it, where no file of its own does. It needs no approval if your
            own documents, or the command line, set these. None: only an approval permits it.
        variable: the environment variable that would be sent, of a key and its address; "" of all else. One that is
            not set is not sent, and needs no approval.
        does: what happens with it: it "run"s, is "sent", or is "read" and may be sent with prompts.
    """

    what: str
    digest: str
    why: str = ""
    file: Path | None = None
    fields: tuple[tuple[str, ...], ...] | None = None
    variable: str = ""
    does: Literal["run", "sent", "read"] = "run"

    @classmethod
    def of_file(cls, path: Path, content: bytes, why: str = "") -> NeededApproval:
        """A file that would run."""
        return cls(str(path), hashlib.sha256(content).hexdigest(), why, file=path)

    @classmethod
    def declared(cls, what: str, facts: Any, fields: Iterable[str] = ("",), why: str = "") -> NeededApproval:
        """What parameters of a plugin ask for, such as a command; `facts`: all that decides what runs.

        `fields`: names of the parameters; "" stands for all of them.
        """
        return cls(what, _digest("declared", facts), why, fields=tuple((f,) if f else () for f in fields))

    @classmethod
    def pair(cls, variable: str, address: str, fields: Iterable[str], why: str = "") -> NeededApproval:
        """An environment variable that would be sent to an address. The same pair of another spec is the same."""
        digest = _digest("pair", variable, address)
        paths = tuple((field,) for field in fields)
        return cls(f"{variable} to {address}", digest, why, fields=paths, variable=variable, does="sent")

    @classmethod
    def prompts_to(cls, address: str, fields: Iterable[str], why: str = "") -> NeededApproval:
        """An address that gets prompts, and what they quote, even if it gets no key."""
        paths = tuple((field,) for field in fields)
        return cls(f"prompts to {address}", _digest("address", address), why, fields=paths, does="sent")

    @classmethod
    def reading(cls, path: Path, why: str = "") -> NeededApproval:
        """A file or folder whose content a spec puts into prompts. Approved is the place, not the content."""
        return cls(str(path), _digest("read", str(path)), why, does="read")

    def __str__(self) -> str:
        return f"{self.what} ({self.why})" if self.why else self.what


def _digest(*facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
