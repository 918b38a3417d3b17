"""A disk without locks: in this process every lock of a file is refused, as some network disks refuse them.

    python -m tests.helpers.lockless ENOLCK eval --spec toy …

runs the command line so. The kernel refuses (seccomp), so that SQLite's own locks are refused as well.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

_FCNTL = {"x86_64": 72, "aarch64": 25}
"""Machine → the number of fcntl there."""
_LOCKING = (5, 6, 7, 36, 37, 38)
"""F_GETLK, F_SETLK, F_SETLKW, and those for open files (F_OFD_…)."""
_LOAD, _EQUAL, _RETURN, _ALLOW, _REFUSE = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
_SET_SECCOMP, _FILTER, _NO_NEW_PRIVILEGES = 22, 2, 38


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def without_locks(code: int) -> None:
    """From now on and to its end, this process gets the error `code` for every lock of a file."""
    number = _FCNTL[platform.machine()]
    tests = [(_EQUAL, len(_LOCKING) - n, 0, command) for n, command in enumerate(_LOCKING)]
    steps = [
        (_LOAD, 0, 0, 0),  # the number of the system call
        (_EQUAL, 0, len(_LOCKING) + 1, number),
        (_LOAD, 0, 0, 24),  # its second argument
        *tests,
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE | code),
    ]
    raw = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(steps), raw)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp filter")


if __name__ == "__main__":
    from harness.cli import main

    without_locks(getattr(errno, sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
