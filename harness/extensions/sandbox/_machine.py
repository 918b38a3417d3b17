"""What this machine offers to confine a program with, and how much of that a provider needs."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, cast, get_args

from harness.api.errors import SetupError, near

from . import _bwrap, _landlock, _seccomp

Provider = Literal["process", "bwrap", "weaker"]
"""Who builds the fence.

    process  the kernel alone: seccomp and Landlock; the default
    bwrap    bubblewrap, for a machine whose kernel has no Landlock; seccomp inside
    weaker   whatever of this there is, on the word of the person who gives the command
"""
LANDLOCK = "Landlock (Linux 5.13 or later, where it is switched on)"
SECCOMP = "seccomp (CONFIG_SECCOMP_FILTER)"


@dataclass(frozen=True, slots=True)
class Protections:
    """What protects this machine from a program.

    Attributes:
        system: `sys.platform`.
        machine: the processor, as `os.uname` names it.
        seccomp: whether the kernel filters system calls.
        landlock: the version of Landlock, 0 where the kernel has none (or has it switched off).
        root: whether this process is root; programs then run as the user `nobody`, or, if that user cannot read
            Python's library, as root without capabilities.
        provider: what confines programs.
        bwrap: the path of a bubblewrap that works here, empty if none does; looked for only if it is needed.
    """

    system: str
    machine: str
    seccomp: bool
    landlock: int
    root: bool
    provider: Provider = "process"
    bwrap: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """What the provider needs and is not there; programs run only where this is empty."""
        if self.system != "linux":
            return (f"Linux (this is {self.system})",)
        return () if self.provider == "weaker" else self.lacking

    @property
    def lacking(self) -> tuple[str, ...]:
        """The protections of full confinement on Linux that are missing here."""
        missing = []
        if self.machine not in _seccomp.ARCHITECTURES:
            missing.append(f"a processor whose system calls are known, {' or '.join(_seccomp.ARCHITECTURES)} "
                         f"(this is {self.machine})")  # fmt: skip
        elif not self.seccomp:
            missing.append(SECCOMP)
        if self.provider == "bwrap" and not self.bwrap:
            missing.append(f"bubblewrap that works ({_bwrap.probe()[1]})")
        elif self.provider != "bwrap" and not self.landlock:
            missing.append(LANDLOCK)
        return tuple(missing)

    @property
    def writes(self) -> bool:
        """Whether programs may write files, in their own folder: only where the kernel keeps them in it."""
        return bool(self.provider == "bwrap") or self.landlock >= _landlock.WRITES_FROM

    @property
    def job(self) -> dict[str, Any]:
        """What a process needs to know to confine itself (`_confine.confine`)."""
        return {
            "machine": self.machine,
            "seccomp": self.seccomp and self.machine in _seccomp.ARCHITECTURES,
            "landlock": self.landlock,
            "writes": self.writes,
            "bwrap": self.provider == "bwrap",
        }

    def require(self) -> None:
        """Raises SetupError if something is missing that the provider needs."""
        if not self.missing:
            return
        hint = "Run on Linux, for example in a container or a virtual machine."
        if self.system == "linux":
            hint = "--sandbox weaker runs them anyway: only for programs that you would run without a sandbox."
            if self.provider == "process":
                works = bool(_bwrap.probe()[0])
                there = "Bubblewrap works here: give --sandbox bwrap." if works else "--sandbox bwrap needs bubblewrap."
                hint = f"{there} {hint}"
        raise SetupError(
            f"generated programs cannot be confined here (--sandbox {self.provider}): there is no "
            f"{'; no '.join(self.missing)}",
            hint=hint,
        )

    @property
    def warning(self) -> str:
        """What to say before programs run behind a fence with holes; empty if it has none."""
        if self.missing or not self.lacking:
            return ""
        open_now = []
        if not self.seccomp:
            open_now.append("the network, and new processes")
        if not self.landlock:
            open_now.append("every file that this user may read, and the environments of this user's other processes")
        return (
            f"--sandbox {self.provider}: there is no {'; no '.join(self.lacking)}. A program that tries to can reach "
            f"{'; '.join(open_now)}"
        )

    def __str__(self) -> str:
        walled = self.provider == "bwrap" and self.bwrap
        if walled or self.landlock:
            guard = "bubblewrap" if walled else "the kernel (Landlock)"
            files = f"{guard} leaves a program its own folder, and Python's library to read"
            if not self.writes:
                files += "; nothing can be written (Linux 6.2 or later: a few small files)"
        else:
            files = "guarded by Python only, which a determined program gets around; nothing is opened for writing"
        seen = "no others can be seen" if walled else "names, sizes and dates of others can be seen"
        return "\n".join(
            [
                f"provider: {self.provider}",
                f"missing: {'; '.join(self.missing) or 'nothing essential'}",
                "processes, threads, network, signals, tracing: "
                + ("refused by seccomp" if self.seccomp else "guarded by Python only"),
                f"files: {files}; {seen}",
                "memory and environment of the checker: closed to programs (not dumpable)",
                "time, memory, size and number of open files: bounded by the kernel's resource limits",
                "user: " + ("nobody, or root without powers" if self.root else "the one who runs this"),
            ]
        )


def report(provider: str = "process") -> Protections:
    """What this machine offers to a provider; looked at once.

    Raises:
        SetupError: if no provider is called so.
    """
    names = get_args(Provider)
    if provider not in names:
        raise SetupError(f"there is no sandbox {provider!r}", hint=near(provider, names))
    bwrap = _bwrap.probe()[0] if provider == "bwrap" else ""
    return replace(_machine(), provider=cast("Provider", provider), bwrap=bwrap)


@lru_cache(maxsize=1)
def _machine() -> Protections:
    machine = os.uname().machine if hasattr(os, "uname") else ""
    if sys.platform != "linux":
        return Protections(sys.platform, machine, False, 0, False)
    libc = ctypes.CDLL(None, use_errno=True)
    return Protections(
        system=sys.platform,
        machine=machine,
        seccomp=_seccomp.available(libc, machine),
        landlock=_landlock.version(libc),
        root=os.geteuid() == 0,
    )
