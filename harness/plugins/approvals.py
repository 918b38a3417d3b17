"""What may run here, and which keys may go where: with no approval, approved once by digest, or for one command.

A spec, a recorded run and a parent project are data, perhaps from a stranger. Each thing that they would run or send
is a `NeededApproval`. What is your own needs none: the project around the working directory (but not the runs that it
keeps), installed packages, the command line. `harness trust` approves the rest by digest,
`--allow_code_execution` for one command. docs/how-to/trust.md says it for users.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Set
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harness.api.errors import Place, SetupError
from harness.api.run_files import META
from harness.plugins.needed_approval import NeededApproval

MARKER: Final = "harness.yaml"
BUILTIN: Final = "harness_builtin"
DIGEST: Final = "__harness_digest__"
"""The attribute of such a module that holds the SHA-256 of its source."""
COMMAND_LINE: Final = "--"
"""What the place of a value that the command line gave begins with."""
_RESULTS: Final = "results"


class NeedsApproval(ABC):
    """A plugin that may run code which is neither its own nor the project's, or send a key to an address of the spec.

    Before an engine starts, and before a task or a metric is used in a run, the harness asks for its approvals and
    refuses the run where one is lacking.
    """

    @abstractmethod
    def approvals(self) -> Iterable[NeededApproval]:
        """What it would run or send, as it is configured. Nothing of that may run here."""


class NotApprovedError(SetupError):
    """Something would run, or be sent, that is not approved.

    Attributes:
        needed: what.
    """

    def __init__(self, needed: Iterable[NeededApproval], place: Place | None = None) -> None:
        from harness.plugins.refusals import advice, listing

        self.needed = tuple(dict.fromkeys(needed))
        super().__init__(listing(self.needed), place=place, hint=advice(self.needed, place))

    def line(self) -> str:
        """It in one line."""
        from harness.plugins.refusals import in_one_line

        return in_one_line(self.needed, self.place)

    def __reduce__(self) -> tuple[type[NotApprovedError], tuple[Any, ...]]:
        return type(self), (self.needed, self.place)


# ------------------------------------------------------------------------------------------ one's own


def standing_in(start: Path | None = None) -> Path | None:
    """The root of the project around a folder (default: the working directory), with links resolved; None without.

    A run is no project of one's own, nor is what lies among the results of one: runs travel, whatever they contain.
    """
    here = (start or Path.cwd()).resolve()
    folders = (here, *here.parents)
    marked = (folder for folder in folders if (folder / MARKER).is_file())
    return next((folder for folder in marked if not _travels(folder)), None)


def _travels(root: Path) -> bool:
    """Whether a folder is, or lies in, a run or the results of a project."""
    return any((folder / META).is_file() for folder in (root, *root.parents)) or any(
        folder.name == _RESULTS and (folder.parent / MARKER).is_file() for folder in (root, *root.parents)
    )


@functools.cache
def installed_roots() -> tuple[Path, ...]:
    """Where installed packages lie, and the built-in project."""
    package = Path(__file__).resolve().parents[1]
    builtin = next((f for f in (package.with_name(BUILTIN), package.parent) if (f / MARKER).is_file()), package)
    paths = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    paths |= {path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    return tuple(dict.fromkeys((builtin, *(Path(path).resolve() for path in sorted(filter(None, paths))))))


def is_own(path: Path | str, *roots: Path) -> bool:
    """Whether a file may run, or a document may say what runs, with no approval; links are followed first.

    What is in the folder of a run, or among the results of a project, never is: runs travel.

    Args:
        path: the file.
        roots: further folders whose content is the user's own.
    """
    there = Path(path).expanduser().resolve()
    if any(there.is_relative_to(root) for root in roots):
        return True
    standing = standing_in()
    return _is_in(there, (*([standing] if standing is not None else []), *installed_roots()))


def is_installed(path: Path) -> bool:
    """Whether a file is part of an installed package or of the built-in project; links are followed first."""
    return _is_in(path.resolve(), installed_roots())


def _is_in(there: Path, roots: Iterable[Path]) -> bool:
    root = next(filter(there.is_relative_to, roots), None)
    if root is None:
        return False
    between = [folder for folder in there.parents if folder.is_relative_to(root)]
    return root / _RESULTS not in between and not any((folder / META).is_file() for folder in between)


def may_read(path: Path, document: str) -> bool:
    """Whether a document's spec may read a file or folder with no approval; links are followed first.

    One's own document may read everything, and so may data that Python gave: that code has named the path. A foreign
    one may read what lies below its own folder, in the project that it is part of, or in an installed package; a run
    that lies in one's own project was played there, and may read that project.
    """
    if may_read_all(document):
        return True
    there, by = path.resolve(), Path(document).resolve()
    standing = standing_in()
    played_here = standing is not None and by.is_relative_to(standing) and there.is_relative_to(standing)
    its = standing_in(by.parent)
    of_its_project = its is not None and _is_in(by, (its,)) and _is_in(there, (its,))
    return played_here or of_its_project or there.is_relative_to(by.parent) or is_installed(there)


def may_read_all(document: str) -> bool:
    """Whether a document's spec may read every file with no approval: one's own, or data that Python gave."""
    return document.startswith("<") or is_own_document(document)


def is_own_document(name: str) -> bool:
    """`is_own` of where a value was written: a file, or the command line. Data that Python gave come from anywhere."""
    if name.startswith(COMMAND_LINE):
        return True
    return not name.startswith("<") and is_own(name)


# ------------------------------------------------------------------------------------------ asking

Lacking = Callable[[list[NeededApproval]], list[NeededApproval]]
"""Of needed approvals, those that are not given."""


def recorded() -> frozenset[str]:
    """The digests that the user has approved."""
    from harness.plugins.approval_record import approved

    return frozenset(approved())


def _beyond(known: Set[str], needed: list[NeededApproval]) -> list[NeededApproval]:
    unknown = (one for one in needed if one.digest not in known)
    return [one for one in unknown if not one.variable or os.environ.get(one.variable)]


def _unrecorded(needed: list[NeededApproval]) -> list[NeededApproval]:
    return _beyond(recorded(), needed)


_allowed: ContextVar[bool] = ContextVar("allowed", default=False)
_lacking: ContextVar[Lacking] = ContextVar("lacking", default=_unrecorded)
_refused: ContextVar[list[NotApprovedError] | None] = ContextVar("refused", default=None)


@contextlib.contextmanager
def allowing(allowed: bool = True) -> Iterator[None]:
    """Within it all may run, if `allowed`; what an outer one allowed stays so."""
    token = _allowed.set(allowed or _allowed.get())
    try:
        yield
    finally:
        _allowed.reset(token)


@contextlib.contextmanager
def deciding(lacking: Lacking, allowed: bool = False) -> Iterator[None]:
    """Within this context, `lacking` decides in place of what the user has approved; if `allowed`, all may run."""
    tokens = _allowed.set(allowed), _lacking.set(lacking)
    try:
        yield
    finally:
        _allowed.reset(tokens[0])
        _lacking.reset(tokens[1])


Permissions = tuple[bool, frozenset[str]]
"""Whether all may run, and the digests of what is approved."""


def permissions() -> Permissions:
    """Return what may run here, so that another process can work `under` the same permissions."""
    return _allowed.get(), recorded()


def under(granted: Permissions) -> contextlib.AbstractContextManager[None]:
    """Within this context, only what another process granted may run: that process has asked."""
    return deciding(functools.partial(_beyond, granted[1]), granted[0])


@contextlib.contextmanager
def refusals() -> Iterator[list[NotApprovedError]]:
    """Within it the list gets what was refused, even if a reader went on without it."""
    found: list[NotApprovedError] = []
    token = _refused.set(found)
    try:
        yield found
    finally:
        _refused.reset(token)


@contextlib.contextmanager
def listing(going_on: bool = False) -> Iterator[list[NeededApproval]]:
    """Within it nothing is approved: all that is asked for is refused, and kept in the list.

    `going_on`: it is kept and not refused, where only data are read.
    """
    found: list[NeededApproval] = []

    def keep(needed: list[NeededApproval]) -> list[NeededApproval]:
        found.extend(needed)
        return [] if going_on else needed

    with deciding(keep), refusals():
        yield found


def require(needed: Iterable[NeededApproval], place: Place | None = None) -> None:
    """Go on only if all of this may run. Raises `NotApprovedError`, which lists what lacks approval."""
    if _allowed.get():
        return
    lacking = [one for one in needed if one.file is None or not is_own(one.file)]
    if lacking and (lacking := _lacking.get()(lacking)):
        error = NotApprovedError(lacking, place)
        if (refused := _refused.get()) is not None:
            refused.append(error)
        raise error


def foreign(
    needed: Iterable[NeededApproval], documents: Callable[..., Iterable[str]], why: str = ""
) -> Iterator[NeededApproval]:
    """Those of a plugin's approvals that the user's own documents do not give.

    `documents`: path of a parameter → the files that wrote something at or below it.
    """
    for one in needed:
        own = one.fields is not None and all(is_own_document(name) for path in one.fields for name in documents(*path))
        if not own:
            yield one if one.why else replace(one, why=why)


def of(thing: object) -> Iterable[NeededApproval]:
    """What a plugin would run or send; nothing where it is no `NeedsApproval`."""
    return thing.approvals() if isinstance(thing, NeedsApproval) else ()


def source(path: Path, why: str = "") -> bytes:
    """The content of a file of code, once that content may run. Raises `NotApprovedError`, `OSError`."""
    content = path.read_bytes()
    require([NeededApproval.of_file(path, content, why)])
    return content
