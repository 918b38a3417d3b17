"""Plain programs: what they may do, what the fence keeps from them, and that nothing of them stays."""

import os
import select
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.api.errors import SetupError
from harness.extensions.sandbox import ProgramLimits, Protections, execute, report

SHORT = ProgramLimits(wall=3.0, cpu=1, memory=1 << 28)
BARE = replace(report("weaker"), landlock=0)
"""This machine as if its kernel had no Landlock."""
OPEN = replace(BARE, seccomp=False)
"""Neither that nor seccomp: Python's own guard is all there is."""


def refusals(attempts: list[str], **how: object) -> dict[str, str]:
    """Attempt → what came of it, each tried in the same program."""
    program = (
        "import os, sys, socket, signal, resource\n" + f"for text in {attempts!r}:\n"
        "    try:\n        exec(text)\n        came = 'done'\n"
        "    except BaseException as error:\n        came = type(error).__name__\n"
        "    print(came, text)\n"
    )
    done = execute(program, **how)  # type: ignore[arg-type]
    assert done.status == "ok", done
    return {text: item for item, _, text in (line.partition(" ") for line in done.output.splitlines())}


FORBIDDEN = [
    "socket.socket()", "socket.socket(socket.AF_UNIX)", "socket.socketpair()",
    "socket.create_connection(('127.0.0.1', 9))",
    "os.fork()", "os.posix_spawn('/bin/true', ['true'], {})", "os.system('true') and sys.exit()",
    "os.execv('/bin/true', ['x'])",
    "os.kill(os.getppid(), 0)", "os.kill(-1, 0)", "os.kill(1, 0)", "os.setsid()", "os.setpgid(0, 0)", "os.nice(1)",
    "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))", "os.sched_setaffinity(0, {0})", "os.memfd_create('x')",
    "open('/etc/passwd').read()", "open('/proc/self/environ').read()", "os.listdir('/')", "os.listdir('/tmp')",
    "os.listdir('..')", "open('/dev/tty')", "open('/dev/shm/left', 'w')", "open('../left', 'w')",
    "open('/etc/left', 'w')",
    "os.open('/etc/passwd', os.O_RDWR)", "os.truncate('/etc/passwd', 0)", "os.unlink('/etc/hostname')",
    "os.mkdir('folder')", "os.symlink('/etc/passwd', 'link')", "os.link('/etc/passwd', 'link')", "os.mkfifo('fifo')",
    "os.chmod('.', 0o777)", "os.chown('.', 0, 0)", "os.utime('.')", "os.rename('.', '../moved')", "os.chroot('.')",
    "os.setuid(0) or os.fork()", "os.getxattr('/', 'user.x')", "os.pidfd_open(1)",
]  # fmt: skip


UNSEEN = {"os.nice(1)", "os.sched_setaffinity(0, {0})", "os.memfd_create('x')", "os.mkfifo('fifo')", "os.pidfd_open(1)"}
"""What Python does not ask its guard about, harmless or bounded otherwise."""


@pytest.mark.parametrize(
    "using", [report(), report("bwrap"), BARE, OPEN], ids=["as it is", "bubblewrap", "without Landlock", "Python alone"]
)
def test_what_is_forbidden_is_refused(using: Protections) -> None:
    if using.missing:
        with pytest.raises(SetupError, match="no bubblewrap that works"):
            using.require()
        return
    result = refusals(FORBIDDEN, protections=using)
    assert set(result) == set(FORBIDDEN)
    done = {text for text, kind in result.items() if not kind.endswith("Error") and kind != "SystemExit"}
    assert done == (UNSEEN if using is OPEN else set())


def test_without_landlock_python_guards_what_is_read_and_nothing_is_written() -> None:
    closed = ["import ctypes; ctypes.CDLL(None)", "import readline", "import sqlite3; sqlite3.connect('/etc/left')",
              "open('own', 'w')",
              "os.open('own', os.O_RDONLY | os.O_CREAT)", "open('/usr/lib/../../etc/passwd')"]  # fmt: skip
    opened = ["import json, decimal, dataclasses, hashlib", "open(os.__file__).read()", "os.listdir('.')"]
    result = refusals(closed + opened, protections=BARE)
    assert all(result[text].endswith("Error") for text in closed), result
    assert all(result[text] == "done" for text in opened), result


def test_system_calls_are_refused_below_python_too() -> None:
    program = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "for name, args in [('fork', ()), ('socket', (2, 1, 0)), ('unshare', (0x10000000,)),"
        " ('ptrace', (16, os.getppid())),"
        " ('mount', (0, 0, 0, 0, 0)), ('prctl', (1, 0)), ('setuid', (0,)), ('kill', (os.getppid(), 0))]:\n"
        "    print(name, getattr(libc, name)(*args), ctypes.get_errno())\n"
    )
    if not report().landlock:
        assert execute(program).status == "error"  # the module itself is closed
        return
    assert [line.split()[1:] for line in execute(program).output.splitlines()] == [["-1", "1"]] * 8


def test_a_program_runs_as_a_main_program_in_an_empty_world() -> None:
    done = execute(
        "import os, sys\nif __name__ == '__main__':\n    print(dict(os.environ), os.listdir(), sys.stdin.read(), 'é')\n"
        "    print('bad', file=sys.stderr)\n"
    )
    assert done.status == "ok" and sorted(done.output.splitlines()) == ["bad", "{} []  é"]


def test_a_small_file_can_be_written_where_the_kernel_keeps_it_in() -> None:
    done = execute("open('own', 'w').write('x'); print(open('own').read())")
    assert (done.status == "ok") is report().writes
    assert execute("open('/dev/null', 'w')").status == ("ok" if report().writes else "error")


def test_files_are_bounded_in_size_number_and_time() -> None:
    big = execute("f = open('own', 'wb')\nwhile True: f.write(b'x' * 65536)", SHORT)
    assert big.status == "error" and ("File too large" in big.output or not report().writes)
    many = "import itertools\nfor n in itertools.count(): open(str(n), 'w').close()"
    assert execute(many, SHORT).status == ("output" if report().writes else "error")
    run = execute("import os\nx = []\nwhile True: x.append(os.pipe())", SHORT)
    assert run.status == "error" and "Too many open files" in run.output


@pytest.mark.slow
def test_the_folder_is_gone_afterwards() -> None:
    for last in ("", "open('own', 'w')", "import os; os._exit(3)", "while True: pass"):
        done = execute(f"import os\nprint(os.getcwd(), flush=True)\n{last}", SHORT)
        folder = Path(done.output.split("\n")[0])
        assert folder.is_absolute() and not folder.exists()


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("print('fine')", "ok"),
        ("", "ok"),
        ("import sys; sys.exit(3)", "error"),
        ("1 / 0", "error"),
        ("not python", "error"),
        ("#" * 2_000_000, "refused"),
        ("while True: print('x' * 1000)", "output"),
        ("while True: pass", "timeout"),
        ("import time; time.sleep(600)", "timeout"),
        ("import os, time; os.closerange(0, 9); time.sleep(600)", "timeout"),
        ("x = bytearray(1 << 40)", "memory"),
        ("import os; os.abort()", "crashed"),
        ("import os; os.kill(os.getpid(), 9)", "crashed"),
    ],
)
def test_how_programs_end(program: str, status: str) -> None:
    done = execute(program, replace(SHORT, wall=0.5) if "sleep" in program else SHORT)
    assert done.status == status, done
    assert len(done.output) <= SHORT.output


def test_output_is_kept_up_to_its_bound() -> None:
    done = execute("import time\nprint('x' * 3000, flush=True)\ntime.sleep(600)", replace(SHORT, output=100))
    assert (done.status, done.output) == ("output", "x" * 100)
    assert execute(r"import sys; sys.stdout.buffer.write(b'\xff')").output == "\ufffd"


def test_a_machine_that_cannot_confine_says_so() -> None:
    other = "aarch64" if report().machine == "x86_64" else "x86_64"
    with pytest.raises(SetupError, match="cannot be confined"):
        execute("print('ran')", protections=replace(report(), machine=other))
    with pytest.raises(SetupError, match="no Linux"):
        execute("print('ran')", protections=replace(report(), system="win32"))


def test_a_program_ends_with_the_harness(tmp_path: Path) -> None:
    sleeps = "execute('import time; time.sleep(600)', ProgramLimits(wall=600.0))"
    script = f"from harness.extensions.sandbox import ProgramLimits, execute\n{sleeps}"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # the folder of a killed harness stays
    host = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[3], env=environment)
    try:
        child = None
        while child is None:
            assert host.poll() is None
            child = next((pid for pid, parent in parents() if parent == host.pid), None)
        watch = select.poll()
        handle = os.pidfd_open(child)
        watch.register(handle, select.POLLIN)
    finally:
        host.kill()
        host.wait()
    assert watch.poll(60_000), "the program outlived the harness"
    os.close(handle)


def parents() -> list[tuple[int, int]]:
    """(process, its parent) of every process that can be seen."""
    results = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            results.append(
                (int(stat.parent.name), int(stat.read_text("utf-8", "replace").rpartition(")")[2].split()[1]))
            )
        except OSError:
            continue
    return results
