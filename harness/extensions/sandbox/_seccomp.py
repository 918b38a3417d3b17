"""The system calls a confined process may make, as a seccomp filter; every other call fails with EPERM.

A list of what is allowed, so that what a newer kernel adds is refused. Not on it: making processes or threads, running
programs, sockets, tracing, signals to others, mounting, namespaces, io_uring, changing modes, owners or limits.
Numbers are those of the kernel's own headers for the two architectures; see seccomp(2) and bpf(2).
"""

from __future__ import annotations

import ctypes
import errno
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Machine, as `os.uname` names it → what the kernel calls it when it asks the filter."""

# name: (number on x86_64, number on aarch64); None if the architecture does not have it
_ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68),
    "lseek": (8, 62), "close": (3, 57), "close_range": (436, 436), "dup": (32, 23), "dup2": (33, None),
    "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59), "poll": (7, None), "ppoll": (271, 73),
    "select": (23, None), "pselect6": (270, 72), "stat": (4, None), "fstat": (5, 80), "lstat": (6, None),
    "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78), "getcwd": (79, 17),
    "getdents64": (217, 61), "chdir": (80, 49), "umask": (95, 166), "mmap": (9, 222), "munmap": (11, 215),
    "mprotect": (10, 226), "mremap": (25, 216), "brk": (12, 214), "madvise": (28, 233), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136), "rt_sigtimedwait": (128, 137),
    "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132), "pause": (34, None), "alarm": (37, None),
    "setitimer": (38, 103), "getitimer": (36, 102), "restart_syscall": (219, 128), "futex": (202, 98),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "nanosleep": (35, 101), "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None),
    "times": (100, 153), "getrusage": (98, 165), "getrlimit": (97, 163), "sysinfo": (99, 179), "uname": (63, 160),
    "getrandom": (318, 278), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getpgid": (121, 155), "getpgrp": (111, None),
    "getgroups": (115, 158),
    "exit": (60, 93), "exit_group": (231, 94), "wait4": (61, 260),
}  # fmt: skip
_OPENING = {"open": (2, None), "openat": (257, 56)}
_CHANGING_FILES = {
    "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "truncate": (76, 45), "ftruncate": (77, 46),
}  # fmt: skip
_CONDITIONAL = {"fcntl": (72, 25), "ioctl": (16, 29), "kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261)}

# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC; F_SETOWN would send signals to others
_FCNTL = (0, 1, 2, 3, 4, 1030)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_TMPFILE without O_DIRECTORY
_WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

Step = tuple[int, int, int, int]
"""Operation, how far to jump if it holds and if it does not, operand."""


def _argument(index: int, high: bool = False) -> int:
    return 16 + 8 * index + (4 if high else 0)


def _one_of(offset: int, values: tuple[int, ...]) -> list[Step]:
    """Go on if the word at `offset` is one of `values`, else refuse."""
    tests = [(_EQUAL, len(values) - n, 0, value) for n, value in enumerate(values)]
    return [(_LOAD, 0, 0, offset), *tests, (_RETURN, 0, 0, _REFUSE)]


def _without_bits(offset: int, bits: int) -> list[Step]:
    """Go on if the word at `offset` has none of `bits`, else refuse."""
    return [(_LOAD, 0, 0, offset), (_ANY_BIT, 0, 1, bits), (_RETURN, 0, 0, _REFUSE)]


def steps(machine: str, pid: int, writes: bool) -> list[Step]:
    """The filter for process `pid`: signals go to itself only, files are opened for writing only if `writes`."""
    column = list(ARCHITECTURES).index(machine)
    conditions: dict[str, list[Step]] = {
        "fcntl": _one_of(_argument(1), _FCNTL),
        "ioctl": _one_of(_argument(1), _IOCTL),
        "kill": _one_of(_argument(0), (pid,)),
        "tgkill": _one_of(_argument(0), (pid,)),
        # Limits of its own may be read; the pointer to new ones must be null.
        "prlimit64": [step for offset in (_argument(0), _argument(2), _argument(2, True))
                      for step in _one_of(offset, (0,))],
    }  # fmt: skip
    calls = {**_ALLOWED, **_OPENING, **_CONDITIONAL}
    if writes:
        calls |= _CHANGING_FILES
    else:
        conditions |= {
            "open": _without_bits(_argument(1), _WRITING),
            "openat": _without_bits(_argument(2), _WRITING),
        }
    program: list[Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for name, numbers in calls.items():
        number = numbers[column]
        if number is not None:
            body = [*conditions.get(name, []), (_RETURN, 0, 0, _ALLOW)]
            program += [(_EQUAL, 0, len(body), number), *body]
    return [*program, (_RETURN, 0, 0, _REFUSE)]


def available(libc: ctypes.CDLL, machine: str) -> bool:
    """Whether the kernel knows filters that make calls fail (`SECCOMP_GET_ACTION_AVAIL`)."""
    number = {"x86_64": 317, "aarch64": 277}.get(machine)
    if number is None:
        return False
    action = ctypes.c_uint32(0x00050000)
    return bool(libc.syscall(number, 2, 0, ctypes.byref(action)) == 0)


def confine(libc: ctypes.CDLL, machine: str, pid: int, writes: bool) -> None:
    """Install the filter on this process for good. `PR_SET_NO_NEW_PRIVS` must be set.

    Raises:
        OSError: if the kernel does not take it.
    """
    program = b"".join(struct.pack("HBBI", *step) for step in steps(machine, pid, writes))
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(head), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refuses the seccomp filter")
