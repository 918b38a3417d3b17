"""Files of a run's folder are files themselves: what a symbolic link there points to is not ours to write."""

from __future__ import annotations

import errno
import os


def no_link(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `os.open` does, and as `opener` of `open`; a new one may be read and written as the umask says.

    Raises:
        OSError: a symbolic link stands under its name; and for what `os.open` does.
    """
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link", str(path)) from None
        raise
