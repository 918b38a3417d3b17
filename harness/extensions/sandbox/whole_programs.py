"""Whole programs, confined by bubblewrap: an agent from a package, with a home of its own and one way out.

A program sees the system to read (`/usr` and the like), its own installation, its home, and no other file, process or
network. Where it may talk to a server, a port of its own 127.0.0.1 leads to that server's Unix socket.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.api.errors import SetupError

from . import _bwrap

USER = 1000
"""Who the program is, in its own view: some refuse to work for root."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_SETTINGS = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "protocols", "services"),
    *("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust"),
)
"""What is seen of /etc: nothing that names a person, a host or a key."""
_WRITTEN = {
    "passwd": f"agent:x:{USER}:{USER}:agent:/home/agent:/bin/sh\n",
    "group": f"agent:x:{USER}:\n",
    "hosts": "127.0.0.1 localhost\n",
    "resolv.conf": "nameserver 127.0.0.1\noptions timeout:0 attempts:1\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_HELP = "Install bubblewrap (Debian: apt-get install bubblewrap; Fedora: dnf install bubblewrap)"


class Outlet(NamedTuple):
    """The one way out: connections to `port` of 127.0.0.1 in there end at the Unix `socket` out here."""

    port: int
    socket: Path


def require() -> None:
    """Raise `SetupError` if programs cannot be confined here, with what to install."""
    if sys.platform != "linux":
        raise SetupError(f"confine=true needs Linux with bubblewrap, this is {sys.platform}")
    path, why = _bwrap.probe()
    if not path:
        there = shutil.which("bwrap") is not None
        hint = "Allow namespaces to users (kernel.unprivileged_userns_clone=1; in a container, its options)"
        raise SetupError(f"confine=true: programs cannot be confined here: {why}", hint=f"{hint if there else _HELP}.")


def confined(
    command: Sequence[str], folder: Path, home: Path, work: Path, readable: Sequence[Path], outlet: Outlet | None
) -> list[str]:
    """The command line that runs a program confined; its environment is passed on.

    Args:
        command: the program and its arguments.
        folder: what it may write.
        home: where it finds this folder.
        work: where it begins, within `home`.
        readable: files and folders that it may read, at the same path; of a program its installation.
        outlet: the server that it may talk to.

    Raises:
        SetupError: there is no such program.
    """
    program = shutil.which(command[0])
    if program is None:
        raise SetupError(f"there is no program {command[0]}")
    binary, _ = _bwrap.probe()
    line = [binary, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    line += ["--uid", str(USER), "--gid", str(USER), "--hostname", "agent"]
    line += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--dir", "/run", "--dir", "/var/tmp"]
    for top in _SYSTEM:
        line += ["--ro-bind-try", top, top]
    for name in _SETTINGS:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    own = settings(folder.parent)
    for name in _WRITTEN:
        line += ["--ro-bind", str(own / name), f"/etc/{name}"]
    start, seen = installation(Path(program))
    for path in readable:
        seen += installation(path)[1] if path.is_file() else [path]
    for path in dict.fromkeys(seen):
        line += ["--ro-bind-try", str(path), str(path)]
    line += ["--bind", str(folder), str(home)]
    words = [str(start), *command[1:]]
    if outlet is not None:
        words = _through(line, outlet, words)
    return [*line, "--remount-ro", "/proc", "--remount-ro", "/", "--chdir", str(work), "--", *words]


def _through(line: list[str], outlet: Outlet, words: Sequence[str]) -> list[str]:
    """Add the relay, and what it needs, to a command line of bubblewrap; the command that starts it and the program."""
    script, python = Path(__file__).with_name("_relay.py"), Path(sys.executable).resolve()
    for path in (*map(Path, _bwrap.library()), python):
        if not _is_system(path):
            line += ["--ro-bind-try", str(path), str(path)]
    line += ["--ro-bind", str(script), "/run/relay.py", "--ro-bind", str(outlet.socket), "/run/endpoint"]
    return [str(python), "-I", "-S", "/run/relay.py", str(outlet.port), "/run/endpoint", *words]


def settings(folder: Path) -> Path:
    """A folder with the files of /etc that are written for programs, made in `folder` if it is not there."""
    own = folder / "etc"
    if not own.is_dir():
        own.mkdir(mode=0o700)
        for name, text in _WRITTEN.items():
            (own / name).write_text(text)
    return own


def installation(program: Path) -> tuple[Path, list[Path]]:
    """How a program is started, and what it must be able to read beside the system: the environment or the packages
    that it is installed in, or its file alone; and the same of the interpreter that its first line names."""
    seen: list[Path] = []
    start = program
    for path in _chain(program):
        if _is_system(path):
            continue
        environment, modules = path.parent.parent, _modules(path)
        if (environment / "pyvenv.cfg").is_file():
            seen += [environment, *_base(environment)]
        elif modules is not None:
            seen.append(modules)
        else:
            seen.append(path)
    if program.is_symlink() and not (program.parent.parent / "pyvenv.cfg").is_file() and not _is_system(program):
        start = program.resolve()  # a link elsewhere is not seen
    return start, list(dict.fromkeys(seen))


def _chain(program: Path) -> Iterator[Path]:
    """A program, the file behind it, and those of the interpreters that first lines name."""
    for _ in range(5):
        yield program
        real = program.resolve()
        if real != program:
            yield real
        found = _interpreter(real)
        if found is None:
            return
        program = found


def _interpreter(file: Path) -> Path | None:
    try:
        with file.open("rb") as text:
            first = text.readline(300).decode("utf-8", "replace")
    except OSError:
        return None
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if words and Path(words[0]).name == "env":
        words = [found for word in words[1:] if not word.startswith("-") and (found := shutil.which(word))]
    return Path(words[0]) if words else None


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _SYSTEM)


def _modules(path: Path) -> Path | None:
    """The folder of npm's packages that a file lies in."""
    parts = path.parts
    return Path(*parts[: parts.index("node_modules") + 1]) if "node_modules" in parts else None


def _base(environment: Path) -> Iterator[Path]:
    """The installation of Python that a virtual environment is made of, where that is not the system's."""
    for line in (environment / "pyvenv.cfg").read_text(errors="replace").splitlines():
        name, _, value = line.partition("=")
        base = Path(value.strip())
        if name.strip() == "home" and base.name == "bin" and not _is_system(base):
            yield base.parent
            if base.resolve() != base:
                yield base.resolve().parent
