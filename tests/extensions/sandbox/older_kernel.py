"""A real door to machines that we do not have: a process without powers, whose kernel refuses some system calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# Root becomes a root without capabilities, which is to /proc what any user is; then the filter, which children inherit.
_BOOT = """
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
if sys.argv.pop(1) == "powerless" and os.geteuid() == 0:
    assert libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
refused = eval(sys.argv.pop(1))
assert libc.prctl(38, 1, 0, 0, 0) == 0
steps = [(0x20, 0, 0, 0)]
for number in refused:
    steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno.ENOSYS)]
program = b"".join(struct.pack("HBBI", *step) for step in [*steps, (0x06, 0, 0, 0x7FFF0000)])
code = ctypes.create_string_buffer(program, len(program))
head = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
assert libc.prctl(22, 2, ctypes.c_char_p(head), 0, 0) == 0
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
LANDLOCK = (444, 445, 446)
SECCOMP = (317, 277)  # x86_64, aarch64; on neither is the other's number one that Python needs


def on_older_kernel(
    arguments: list[str],
    refused: tuple[int, ...],
    environment: Mapping[str, str],
    folder: Path | None = None,
    powerless: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` where the system calls `refused` do not exist.

    Root's powers are left only where not `powerless`: bubblewrap takes a user 0 for one who has them.
    """
    way = ["powerless" if powerless else "as it is", repr(refused)]
    return subprocess.run(
        [sys.executable, "-c", _BOOT, *way, *arguments],
        env=dict(environment), cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
