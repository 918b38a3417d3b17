"""Whole programs in bubblewrap: what they see, the one server that they reach, and that nothing of them is left."""

import functools
import json
import os
import re
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import SetupError
from harness.extensions.sandbox import _bwrap
from harness.extensions.sandbox.whole_programs import Outlet, confined, installation, require
from tests.helpers.agents import all_end

HOME = Path("/home/agent")
LOOK = r"""
import json, os, socket, sys

def tried(act):
    try:
        return act()
    except OSError as error:
        return f"{type(error).__name__}"

def says(port):
    with socket.create_connection(("127.0.0.1", port), 5) as line:
        line.sendall(b"hello")
        line.shutdown(socket.SHUT_WR)
        return line.makefile().read()

def status(name):
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name))

job = json.loads(sys.stdin.read())
print(json.dumps({
    "reads": {path: tried(lambda: open(path).read()) for path in job["reads"]},
    "writes": {path: tried(lambda: open(path, "w").write("x")) for path in job["writes"]},
    "ports": {port: tried(lambda: says(port)) for port in job["ports"]},
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "user": [os.getuid(), os.geteuid(), os.environ.get("HOME"), os.getcwd(), status("CapEff"), status("CapBnd")],
}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A home with a working folder."""
    (tmp_path / "seats" / "ann" / "work").mkdir(parents=True)
    return tmp_path / "seats" / "ann"


def confining(test: Callable[..., None]) -> Callable[..., None]:
    """A test of what is confined, where this machine can; elsewhere, that it is refused, with what to install."""

    @functools.wraps(test)
    def either(*arguments: Any, **named: Any) -> None:
        if _bwrap.probe()[0]:
            test(*arguments, **named)
            return
        with pytest.raises(SetupError, match="programs cannot be confined here") as caught:
            require()
        assert re.search("Install bubblewrap|Allow namespaces", caught.value.hint or "")

    return either


def line(command: list[str], folder: Path, *readable: Path, outlet: Outlet | None = None) -> list[str]:
    return confined(command, folder, HOME, HOME / "work", readable, outlet)


def look(folder: Path, *readable: Path, outlet: Outlet | None = None, **job: Any) -> dict[str, Any]:
    """What a confined program finds."""
    command = line([sys.executable, "-I", "-c", LOOK], folder, *readable, outlet=outlet)
    given = json.dumps({"reads": [], "writes": [], "ports": [], **job})
    environment = {"HOME": str(HOME), "PATH": "/usr/bin"}
    done = subprocess.run(command, env=environment, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    """A Unix socket that answers each connection with what it has heard, in capitals."""
    path = tmp_path / "model.sock"

    def answer(near: socket.socket) -> None:
        with near:
            near.sendall(near.makefile().read().upper().encode())

    def serve() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(near,), daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@confining
def test_it_sees_its_home_and_what_it_may_read_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "data").write_text("data")
    (folder / "mine").write_text("mine")
    secret, data, mine = str(tmp_path / "secret"), str(tmp_path / "data"), f"{HOME}/mine"
    others = [secret, "/etc/shadow", "/root/.bashrc", f"{folder}/mine", "/etc/machine-id", "/proc/1/environ"]
    found = look(
        folder,
        tmp_path / "data",
        reads=[mine, data, *others],
        writes=[mine, data, secret, "/usr/x", "/x", "/etc/passwd"],
    )
    assert found["reads"][mine] == "mine" and found["reads"][data] == "data"
    assert {found["reads"][path] for path in others[:-1]} == {"FileNotFoundError"}
    assert "SECRET" not in found["reads"]["/proc/1/environ"]
    assert found["writes"][mine] == 1 and (folder / "mine").read_text() == "x"
    assert all(isinstance(found["writes"][path], str) for path in (data, "/usr/x", "/x", "/etc/passwd"))
    assert (tmp_path / "data").read_text() == "data" and (tmp_path / "secret").read_text() == "secret"


@confining
def test_it_cannot_write_to_the_kernel(folder: Path) -> None:
    kernel = ["/proc/sys/vm/swappiness", "/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj"]
    attempt = 'for path; do [ -e "$path" ] && { (: >> "$path") 2>/dev/null && echo "$path"; }; done; echo end'
    done = subprocess.run(
        line(["/bin/sh", "-c", attempt, "sh", *kernel], folder), capture_output=True, text=True, check=True
    )
    assert done.stdout == "end\n"  # opened for appending: nothing would be written


@confining
def test_it_is_a_user_without_powers_alone_on_its_machine(folder: Path) -> None:
    found = look(folder)
    assert found["user"] == [1000, 1000, str(HOME), f"{HOME}/work", "0" * 16, "0" * 16]
    assert len(found["processes"]) <= 3 and str(os.getpid()) not in found["processes"]


@confining
def test_of_all_ports_it_reaches_the_one_that_leads_to_its_server(folder: Path, server: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        [_, port] = other.getsockname()
        free = port - 1 if port > 1025 else port + 1
        found = look(folder, outlet=Outlet(free, server), ports=[free, free, port])
        assert found["ports"] == {str(free): "HELLO", str(port): "ConnectionRefusedError"}
        assert look(folder, ports=[port])["ports"] == {str(port): "ConnectionRefusedError"}


@confining
def test_many_connections_at_once_and_long_answers_pass(folder: Path, server: Path) -> None:
    program = r"""
import socket, threading
found = []
def ask(i):
    with socket.create_connection(("127.0.0.1", 4000)) as line:
        text = f"{i}:" + "a" * 300_000
        threading.Thread(target=lambda: (line.sendall(text.encode()), line.shutdown(socket.SHUT_WR))).start()
        found.append(line.makefile().read() == text.upper())
threads = [threading.Thread(target=ask, args=(i,)) for i in range(150)]
[one.start() for one in threads]
[one.join() for one in threads]
print(sum(found))
"""
    command = line([sys.executable, "-I", "-c", program], folder, outlet=Outlet(4000, server))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "150\n", done.stderr


def with_word(word: str) -> list[int]:
    """The processes of this machine that have a word on their command line."""
    found = []
    for one in Path("/proc").iterdir():
        try:
            line = (one / "cmdline").read_bytes() if one.name.isdigit() else b""
        except OSError:
            continue
        if word.encode() in line and int(one.name) != os.getpid():
            found.append(int(one.name))
    return found


CHILD = r"""
import subprocess, sys, time
new = [subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(1000)", sys.argv[1]],
                        stdout=subprocess.PIPE, start_new_session=True) for _ in range(3)]
[one.stdout.readline() for one in new]
print("started", flush=True)
if sys.argv[2] == "stay":
    time.sleep(1000)
"""


@pytest.mark.parametrize("end", ["leave", "stay"])
@confining
def test_what_it_has_started_ends_with_it(folder: Path, server: Path, end: str) -> None:
    word = uuid.uuid4().hex
    command = line([sys.executable, "-I", "-c", CHILD, word, end], folder, outlet=Outlet(4000, server))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"started\n"
        left = with_word(word)
        if end == "stay":
            assert len(left) >= 4
            process.kill()
        process.wait()
    assert all_end(left)


@confining
def test_its_exit_status_is_the_programs(folder: Path, server: Path) -> None:
    for outlet in (None, Outlet(4000, server)):
        assert subprocess.run(line(["sh", "-c", "exit 7"], folder, outlet=outlet), check=False).returncode == 7
    with pytest.raises(SetupError, match="there is no program no-such"):
        line(["no-such"], folder)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_of_an_installation_the_environment_or_the_packages_are_seen(tmp_path: Path) -> None:
    cli = write(tmp_path / "node_modules" / "agent" / "cli.js", "#!/usr/bin/env node\n")
    (tmp_path / "node_modules" / ".bin").mkdir()
    link = tmp_path / "node_modules" / ".bin" / "agent"
    link.symlink_to("../agent/cli.js")
    assert installation(link)[1] == [tmp_path / "node_modules"]
    write(tmp_path / "venv" / "pyvenv.cfg", f"home = {tmp_path / 'python' / 'bin'}\n")
    python = write(tmp_path / "python" / "bin" / "python3", "")
    (tmp_path / "venv" / "bin").mkdir()
    (tmp_path / "venv" / "bin" / "python").symlink_to(python)
    tool = write(tmp_path / "venv" / "bin" / "tool", f"#!{tmp_path / 'venv' / 'bin' / 'python'} -I\n")
    assert installation(tool)[0] == tool
    assert set(installation(tool)[1]) == {tmp_path / "venv", tmp_path / "python", python}
    (tmp_path / "tool").symlink_to(tool)  # as pipx does
    assert installation(tmp_path / "tool")[0] == tool
    assert tmp_path / "venv" in installation(tmp_path / "tool")[1]
    alone = write(tmp_path / "mine.sh", "#!/bin/sh\n")
    assert installation(alone) == (alone, [alone]) and installation(Path("/bin/sh")) == (Path("/bin/sh"), [])
    assert cli.is_file()
