"""A register of benchmarks: a folder with one YAML file each, which pins a commit and the card that lies there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import storage
from harness.api.errors import DataError, Place, SetupError, UserError
from harness.api.printable import clean_name
from harness.config import yamls
from harness.plugins.parameters import schema_problems
from harness.storage.files import read_own

from . import card as cards

_PATH = r"(?!.*(^|/)\.{1,2}(/|$))[A-Za-z0-9_.-]{1,100}(/[A-Za-z0-9_.-]{1,100}){0,9}"
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "repository", "commit", "spec", "card_digest"],
    "properties": {
        "name": {"type": "string", "pattern": r"^[a-z0-9][a-z0-9_.-]{0,79}$"},
        "repository": {"type": "string", "pattern": r"^https://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9_.~-]+){1,10}/?$"},
        "commit": {"type": "string", "pattern": r"^[0-9a-f]{40}([0-9a-f]{24})?$"},
        "spec": {"type": "string", "pattern": f"^{_PATH}$"},
        "card": {"type": "string", "pattern": f"^{_PATH}$"},
        "card_digest": {"type": "string", "pattern": r"^sha256:[0-9a-f]{64}$"},
    },
}
"""The JSON Schema of an entry."""
MAX_BYTES: Final = 1 << 16
"""Bytes of an entry."""
_SECONDS: Final = 300
"""Seconds that git may take."""
_EXAMPLES: Final = {
    "name": "a name such as meeting, which is the file's name too",
    "repository": "an address such as https://github.com/ada/meeting",
    "commit": "a whole commit id, 40 characters of 0-9a-f",
    "spec": "a spec's name such as games/meeting",
    "card": "a path within the repository such as harness-card.json",
    "card_digest": "sha256: and 64 characters of 0-9a-f",
}


@dataclass(frozen=True)
class Listing:
    """A benchmark in a register. The fields are those of its file; `card` is a path within the repository."""

    name: str
    repository: str
    commit: str
    spec: str
    card_digest: str
    card: str = cards.CARD

    def as_yaml(self) -> str:
        """Its file."""
        data = {key: getattr(self, key) for key in ("name", "repository", "commit", "spec", "card", "card_digest")}
        return yamls.dump(data)


def read(folder: Path) -> Iterator[Listing | UserError]:
    """The entries of a register in order of names; for a file that is none what is wrong with it, first of all.

    Raises:
        DataError: there is no such folder.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder", hint="A register is a folder with one YAML file a benchmark.")
    for path in sorted(folder.glob("*.yaml")):
        try:
            yield _entry(path)
        except UserError as error:
            yield error


def _entry(path: Path) -> Listing:
    raw = read_own(path, MAX_BYTES) or b""
    try:
        document = yamls.parse(raw.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 text (byte {error.start})", place=Place(str(path))) from None
    for at, what in schema_problems(document.data, SCHEMA):
        key = str(at[0]) if at else ""
        expected = f"{key}: expected {_EXAMPLES[key]}, found {document.data[key]!r:.100}" if key in _EXAMPLES else what
        raise DataError(expected, place=document.place(*at))
    entry = Listing(**document.data)
    if entry.name != path.stem:
        raise DataError(f"name: {entry.name!r} is not the file's name", place=document.place("name"))
    return entry


def fetched(entry: Listing) -> dict[str, Any]:
    """The card that an entry pins, from its repository. Nothing of the repository is checked out or run.

    Raises:
        DataError: the repository has no such commit or card, the card is another one, it does not hold the spec, or
            says that the spec is not certified.
        SetupError: git is missing.
    """
    with tempfile.TemporaryDirectory(prefix="harness-register-") as place:
        _git(place, "init", "-q")
        _git(place, "fetch", "-q", "--depth", "1", "--no-tags", "--", entry.repository, entry.commit)
        raw = _blob(place, entry.commit, entry.card, f"{entry.name}: {entry.repository}")
    if cards.digest(raw) != entry.card_digest:
        raise DataError(f"{entry.name}: {entry.card} at that commit has the digest {cards.digest(raw)}")
    data = cards.read(raw, f"{entry.name}: {entry.card}")
    _certified(data, entry.spec, entry.name)
    return data


def entries_of(checkout: Path, specs: Sequence[str] = ()) -> list[Listing]:
    """The entries of a repository that is checked out, at its newest commit, whose card must be in it.

    Args:
        checkout: its folder.
        specs: those of its card to take; () for all.

    Raises:
        DataError: it is no repository, has no remote address, no card, or the card does not certify a spec.
        SetupError: git is missing.
    """
    where, place = str(checkout), str(checkout / cards.CARD)
    commit = _git(where, "rev-parse", "--verify", "HEAD").decode().strip()
    address = _https(_git(where, "remote", "get-url", "origin").decode().strip())
    raw = _blob(where, commit, cards.CARD, where)
    data = cards.read(raw, place)
    names = specs or [one["spec"] for one in data["benchmarks"]]
    for name in names:
        _certified(data, name, place)
    found = [Listing(_name(name), address, commit, name, cards.digest(raw)) for name in names]
    if len({one.name for one in found}) < len(found):
        raise DataError("two specs of the card end in the same name", hint="Name those to add.", place=Place(place))
    return found


def write(entries: Sequence[Listing], folder: Path) -> list[Path]:
    """Write entries into a register, in place of earlier ones of the same repository; returns their files.

    Raises:
        DataError: an entry breaks the schema, or its name is taken by another repository.
    """
    paths = [folder / f"{entry.name}.yaml" for entry in entries]
    for entry, path in zip(entries, paths, strict=True):
        for at, _ in schema_problems(yamls.parse(entry.as_yaml(), str(path)).data, SCHEMA):
            key = str(at[0])
            raise DataError(f"{key}: expected {_EXAMPLES[key]}, found {getattr(entry, key)!r:.100}")
        if path.exists() and (other := _entry(path).repository) != entry.repository:
            raise DataError(f"{path} is of {other}", hint="Give the benchmark another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for entry, path in zip(entries, paths, strict=True):
            storage.write_atomically(path, entry.as_yaml())
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror or error}") from None
    return paths


def _certified(data: Mapping[str, Any], spec: str, place: str) -> None:
    """Raise `DataError` unless a card says that a spec passed."""
    found = next((one for one in data["benchmarks"] if one["spec"] == spec), None)
    if found is None:
        names = ", ".join(clean_name(one["spec"]) for one in data["benchmarks"])
        raise DataError(f"the card is about {names:.200}, not about {clean_name(spec)}", place=Place(place))
    failed = ", ".join(line["name"] for line in found["lines"] if line.get("passed") is not True)
    if not found["passed"] or failed or not found["lines"]:
        failed = failed or "it has no lines"
        raise DataError(f"{clean_name(spec)} did not pass: {clean_name(failed):.200}", place=Place(place))


def _name(spec: str) -> str:
    return re.sub(r"[^a-z0-9_.-]+", "-", Path(spec).name.removesuffix(".yaml").lower())


def _https(address: str) -> str:
    """An address as others can read it: `git@host:owner/name.git` is `https://host/owner/name`."""
    if match := re.fullmatch(r"(?:ssh://)?git@([\w.-]+)[:/](.+)", address):
        address = f"https://{match[1]}/{match[2]}"
    address = re.sub(r"^(https://)[^/@]*@", r"\1", address)  # a user's name and token stay here
    return address.removesuffix(".git")


def _blob(folder: str, commit: str, path: str, where: str) -> bytes:
    try:
        size = int(_git(folder, "cat-file", "-s", f"{commit}:{path}"))
    except DataError:
        hint = "`harness certify` writes it; commit it."
        raise DataError(f"{where} has no {path} at {commit[:12]}", hint=hint) from None
    if size > cards.MAX_BYTES:
        raise DataError(f"{where}: {path} is larger than {cards.MAX_BYTES:,} bytes")
    return _git(folder, "cat-file", "blob", f"{commit}:{path}")


_OF_HOOKS = {
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX"),
}


def _git(folder: str, *words: str) -> bytes:
    """What git prints. Raises `DataError` with the end of what it says where it fails, `SetupError` without git."""
    # In a hook git names the repository that it works on, which is another one.
    own = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
    environment = {**own, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            capture_output=True,
            env=environment,
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise SetupError("registers need git, which is not installed") from None
    except subprocess.TimeoutExpired:
        raise DataError(f"git {words[0]} took longer than {_SECONDS} s") from None
    if done.returncode:
        said = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        what = json.dumps(clean_name(said[-1]))[1:-1] if said else f"exit code {done.returncode}"
        raise DataError(f"git {words[0]} in {folder}: {what:.300}")
    return done.stdout
