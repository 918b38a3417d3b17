"""What this machine offers to confine a program with."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from functools import lru_cache

from harness.errors import SetupError

from . import _landlock, _seccomp


@dataclass(frozen=True, slots=True)
class Protections:
    """What stands between a program and this machine.

    Attributes:
        system: `sys.platform`.
        machine: the processor, as `os.uname` names it.
        seccomp: whether the kernel filters system calls.
        landlock: the version of Landlock, 0 where the kernel has none (or has it switched off).
        root: whether this process is root; programs then run as nobody, or, where nobody cannot read Python's
            library, as a root without any of root's powers.
    """

    system: str
    machine: str
    seccomp: bool
    landlock: int
    root: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """What is essential and not there; programs run only where this is empty."""
        if self.system != "linux":
            return (f"Linux (this is {self.system})",)
        lacking = []
        if self.machine not in _seccomp.ARCHITECTURES:
            lacking.append(f"a processor whose system calls are known, {' or '.join(_seccomp.ARCHITECTURES)} "
                           f"(this is {self.machine})")  # fmt: skip
        elif not self.seccomp:
            lacking.append("seccomp filters (CONFIG_SECCOMP_FILTER)")
        return tuple(lacking)

    @property
    def writes(self) -> bool:
        """Whether programs may write files, in their own folder: only where the kernel keeps them in it."""
        return self.landlock >= _landlock.WRITES_FROM

    def require(self) -> None:
        """Raises SetupError if something essential is missing."""
        if self.missing:
            raise SetupError(
                f"generated programs cannot be confined here: there is no {'; no '.join(self.missing)}",
                hint="run on Linux, for example in a container or a virtual machine",
            )

    def __str__(self) -> str:
        files = {
            True: "the kernel (Landlock) leaves a program its own folder, and Python's library to read",
            False: "no file is opened for writing; what is read is guarded by Python only, which a determined program "
            "gets around (Linux 5.13 or later has Landlock)",
        }[self.landlock > 0]
        if self.landlock and not self.writes:
            files += "; nothing can be written (Linux 6.2 or later: a few small files)"
        return "\n".join(
            [
                f"missing: {'; '.join(self.missing) or 'nothing essential'}",
                "processes, threads, network, signals, tracing: " + ("refused by seccomp" if self.seccomp else "open"),
                f"files: {files}; names, sizes and dates of others can be seen",
                "time, memory, size and number of open files: bounded by the kernel's resource limits",
                "user: " + ("nobody, or root without powers" if self.root else "the one who runs this"),
            ]
        )


@lru_cache(maxsize=1)
def report() -> Protections:
    """What this machine offers; looked at once."""
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
