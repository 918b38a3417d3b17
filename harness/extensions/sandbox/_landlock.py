"""Which files a confined process reaches, enforced by the kernel: Landlock, Linux 5.13 and later (landlock(7))."""

from __future__ import annotations

import ctypes
import os
import stat
import struct

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1

WRITE_FILE, READ_FILE, READ_DIR, REMOVE_FILE, MAKE_REG, TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 8, 1 << 14
READ = READ_FILE | READ_DIR
SCRATCH = READ | WRITE_FILE | REMOVE_FILE | MAKE_REG | TRUNCATE
_OF_FILES = WRITE_FILE | READ_FILE | TRUNCATE

WRITES_FROM = 3
"""The version that also guards truncation; with an older one nothing at all may be opened for writing."""


def version(libc: ctypes.CDLL) -> int:
    """Landlock's version on this machine, 0 without."""
    return max(0, int(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)))


def confine(libc: ctypes.CDLL, abi: int, rights: dict[str, int]) -> None:
    """Leave this process the `rights` to files and what is below folders, and none to any other, for good.

    Paths that do not exist are left out. `PR_SET_NO_NEW_PRIVS` must be set.

    Raises:
        OSError: if the kernel does not take it.
    """
    handled = 0x1FFF | (0x2000 if abi >= 2 else 0) | (0x4000 if abi >= 3 else 0) | (0x8000 if abi >= 5 else 0)
    ruleset = struct.pack("Q", handled)
    if abi >= 4:
        ruleset += struct.pack("Q", 0b11)  # TCP: bind, connect
    if abi >= 6:
        ruleset += struct.pack("Q", 0b11)  # abstract sockets, signals
    fd = libc.syscall(CREATE_RULESET, ctypes.c_char_p(ruleset), ctypes.c_size_t(len(ruleset)), 0)
    _check(fd)
    try:
        for path, right in rights.items():
            _add(libc, fd, path, right & handled)
        _check(libc.syscall(RESTRICT_SELF, fd, 0))
    finally:
        os.close(fd)


def _add(libc: ctypes.CDLL, ruleset: int, path: str, right: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        right &= -1 if stat.S_ISDIR(os.fstat(fd).st_mode) else _OF_FILES
        rule = struct.pack("=Qi", right, fd)
        _check(libc.syscall(ADD_RULE, ruleset, _PATH_BENEATH, ctypes.c_char_p(rule), 0))
    finally:
        os.close(fd)


def _check(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses the Landlock rules")
