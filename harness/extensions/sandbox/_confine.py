"""A process gives up, for good, all that a program does not need. Runs in the new process, before the program does.

A program finds nothing of value in its own process. What it must not reach is in others: the checker's memory, the
environment of the process that started both. The kernel closes those of processes that are not dumpable
(PR_SET_DUMPABLE in prctl(2), ptrace(2)) even to the same user, whatever else this machine lacks.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from . import _landlock, _seccomp

if TYPE_CHECKING:
    from collections.abc import Mapping

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
NOBODY = 65534
OPEN_FILES = 32

# What modules of the standard library load or read: shared libraries, time zones, harmless devices.
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store")
READ = (*_LIBRARIES, "/etc/ld.so.cache", "/etc/ssl/openssl.cnf", "/usr/share/zoneinfo", "/dev/urandom", "/dev/zero")


def confine(limits: Mapping[str, Any], using: Mapping[str, Any], parent: int) -> None:
    """Bound what this process may use, and leave it this folder, the standard library and its open files.

    Args:
        limits: `cpu` in seconds; `memory` and `file` in bytes.
        using: the processor (`machine`), whether system calls are filtered (`seccomp`), the version of Landlock or 0
            (`landlock`), whether files may be written (`writes`), whether bubblewrap hides all others (`bwrap`).
        parent: the process that started it, with which it ends; 0 where that one cannot be seen.

    Raises:
        OSError, ValueError: if the machine does not let it.
    """
    _bound(limits)
    library = [path for path in sys.path if path] + [os.path.join(sys.base_exec_prefix, "lib")]  # noqa: PTH118
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        _drop_root(libc)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after the change of user, which clears it
    if parent and os.getppid() != parent:
        os._exit(1)
    close_memory(libc)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs is refused")
    here = os.getcwd()  # noqa: PTH109
    if landlock := using["landlock"]:
        rights = dict.fromkeys([*library, *READ], _landlock.READ)
        rights |= {"/dev/null": _landlock.READ | _landlock.WRITE_FILE, here: _landlock.SCRATCH}
        _landlock.confine(libc, landlock, rights)
    if using["seccomp"]:
        _seccomp.confine(libc, using["machine"], os.getpid(), using["writes"])
    files = () if landlock or using["bwrap"] else (*library, *READ, "/dev/null", here)
    if files or not using["seccomp"]:
        sys.addaudithook(_guard(files, using["seccomp"]))


def close_memory(libc: ctypes.CDLL) -> None:
    """Close this process's memory, environment and open files in /proc, and tracing, to others of the same user.

    Raises:
        OSError: if the kernel does not.
    """
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the process stays open to others of this user")


def _bound(limits: Mapping[str, Any]) -> None:
    import resource

    for kind, most in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_NPROC, 0),  # a second line: the filter already refuses new processes and threads
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (value, value))
    # At the soft limit the kernel sends SIGXCPU, which says why; at the hard one SIGKILL, which could be anything.
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    last = limits["cpu"] + 1 if hard == resource.RLIM_INFINITY else min(limits["cpu"] + 1, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (max(1, last - 1), last))


def _drop_root(libc: ctypes.CDLL) -> None:
    """Become the user `nobody` if that user can read the standard library, else stay root without capabilities."""
    try:
        os.chown(".", NOBODY, NOBODY)
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        readable = os.access(os.__file__, os.R_OK, effective_ids=True)
        os.seteuid(0)
        if readable:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            return
        os.setegid(0)
        os.chown(".", 0, 0)
    except OSError:  # a user namespace without the user `nobody`
        pass
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
    if libc.capset(head, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "root's capabilities cannot be given up")


_DOORS = {"open", "os.listdir", "os.scandir", "sqlite3.connect"}
_CLOSED = {"readline", "_dbm", "_gdbm"}
"""Modules that reach files without asking Python."""
_CALLS = (
    "socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.kill", "pty.",
    "_thread.", "signal.pthread_kill", "syslog.", "resource.", "os.remove", "os.rename", "os.rmdir", "os.mkdir",
    "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.setxattr",
)  # fmt: skip
"""How the names of events begin that a filter of system calls would refuse."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def _guard(roots: tuple[str, ...], filtered: bool) -> Any:
    """An audit hook: what Python alone can do, where the kernel does not. A determined program gets around it.

    Args:
        roots: what may be opened; empty if the kernel guards that.
        filtered: whether the kernel filters system calls.
    """
    folders = tuple(root.rstrip("/") + "/" for root in roots)
    refused = ("ctypes.",) if filtered else ("ctypes.", *_CALLS)
    realpath, fspath, fsdecode = os.path.realpath, os.fspath, os.fsdecode

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(refused) or (event == "import" and arguments[0] in _CLOSED):
            raise PermissionError(1, "closed to confined programs on this machine", event)
        if event == "open" and folders and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            raise PermissionError(1, "nothing can be written on this machine", str(arguments[0]))
        if folders and event in _DOORS and arguments and not isinstance(arguments[0], int):
            path = fsdecode(fspath("." if arguments[0] is None else arguments[0]))
            if not (realpath(path) + "/").startswith(folders):
                raise PermissionError(1, "outside of what a confined program may read", path)

    return hook
