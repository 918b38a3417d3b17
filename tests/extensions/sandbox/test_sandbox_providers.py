"""Who builds the fence, where the kernel lacks a part of it: real attacks on what programs must not reach."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.api.errors import SetupError
from harness.extensions.sandbox import report, using
from tests.extensions.sandbox.older_kernel import LANDLOCK, SECCOMP, on_older_kernel
from tests.extensions.sandbox.problem import PROMPT, RIGHT, SHORT, TEST, graded

HERE = Path(__file__).parents[3]
KEY, EXPECTED = "sk-" + "sentinel-key", "EXPECTED-" + "7305"  # in two parts, so that this line is no find
WORLD = {**os.environ, "PYTHONPATH": str(HERE), "SECRET_API_KEY": KEY}

# A program that opens Python's own guard, then looks for both secrets in every process: environment, files, memory.
ATTACK = r"""
import gc, os, re, sys
SEIZE = 0x4206  # of ptrace(2): trace without stopping
for thing in gc.get_objects():
    if getattr(thing, "__qualname__", "") == "_guard.<locals>.hook":
        for cell in thing.__closure__:
            if isinstance(cell.cell_contents, tuple):
                cell.cell_contents = ("/",) if "/" in str(cell.cell_contents) else ("\0",)
found = {}
WANTED = re.compile(b"sk-" + b"sentinel-key|EXPECTED-" + b"[0-9]{4}")
def look(pid):
    import ctypes
    if ctypes.CDLL(None).ptrace(SEIZE, pid, None, None) == 0:
        found[f"{pid} traced"] = ["traced"]
    for name in ("environ", "mem", "fd"):
        path = f"/proc/{pid}/{name}"
        try:
            if name == "fd":
                held = [os.open(f"{path}/{n}", os.O_RDONLY | os.O_NONBLOCK) for n in os.listdir(path)]
                data = b"".join(os.pread(n, 1 << 16, 0) for n in held if os.fstat(n).st_size)
            elif name == "environ":
                data = open(path, "rb").read()
            else:
                data, memory = b"", open(path, "rb", 0)
                for line in open(f"/proc/{pid}/maps"):
                    ends, rights = line.split()[:2]
                    start, end = (int(x, 16) for x in ends.split("-"))
                    if "r" in rights and end - start < 1 << 26 and "[v" not in line:
                        try:
                            memory.seek(start)
                            data += b" ".join(WANTED.findall(memory.read(end - start)))
                        except OSError:
                            pass
        except OSError as error:
            found[f"{pid} {name}"] = type(error).__name__
        else:
            found[f"{pid} {name}"] = sorted({x.decode() for x in WANTED.findall(data)})
def everywhere():
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError as error:
        return {"/proc": type(error).__name__}
    for pid in pids:
        if pid != os.getpid():
            look(pid)
    return found
"""
# What stands beside the attacker: the harness (its parent), the checker, and a bystander, another process of this user.
SCENE = f"""
import json, os, subprocess, sys
from harness.extensions.sandbox import ProgramLimits, check, execute, report, using
limits = ProgramLimits(wall=120, cpu=60)  # there may be much memory to read
bystander = subprocess.Popen([sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
bystander.stdout.readline()
program = {ATTACK!r} + '''
def f(x):
    where = everywhere()
    if x == "tell":
        raise ValueError({{str(k): v for k, v in where.items() if v and v not in ("FileNotFoundError",)}})
    return next((v for found in where.values() if isinstance(found, list) for v in found if v[:3] == "EXP"), None)
'''
test = 'def check(candidate):\\n    assert candidate(0) == "{EXPECTED}"\\n'
tell = 'def check(candidate):\\n    candidate("tell")\\n# {EXPECTED}\\n'
with using(sys.argv[1]):
    verdict = check("def f(x):\\n", program, test, "f", limits)
    told = check("def f(x):\\n", program, tell, "f", limits)
    plain = execute("import json\\n" + {ATTACK!r} + "print(json.dumps(everywhere()))", limits)
bystander.communicate()
print(json.dumps([verdict.status, told.detail, plain.status, plain.output, os.getpid(), bystander.pid,
                  report(sys.argv[1]).lacking]))
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("provider", "refused"),
    [("process", ()), ("bwrap", ()), ("bwrap", LANDLOCK), ("weaker", LANDLOCK), ("weaker", LANDLOCK + SECCOMP)],
    ids=["process", "bwrap", "bwrap without Landlock", "weaker without Landlock", "weaker without both"],
)
def test_neither_the_expected_value_nor_a_key_is_in_reach(provider: str, refused: tuple[int, ...]) -> None:
    done = on_older_kernel(["-c", SCENE, provider], refused, WORLD, powerless=provider != "bwrap")
    if provider == "bwrap" and not report("bwrap").bwrap:
        assert "no bubblewrap that works" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    status, message, ran, output, harness, bystander, lacking = json.loads(done.stdout)
    assert (status, ran) == ("failed", "ok"), (status, message, output)
    assert EXPECTED not in message and KEY not in message.replace(f"'{bystander} environ': ['{KEY}']", "")
    data = json.loads(output)
    assert bool(lacking) is (provider == "weaker")
    if provider == "weaker":  # what --sandbox weaker says: other processes of this user are open, so the attack is real
        assert data[f"{bystander} environ"] == [KEY]
        traced = {name.split()[0] for name in data if name.endswith("traced")}
        assert traced == ({str(bystander)} if len(lacking) == 2 else set())
        assert {data[f"{harness} {what}"] for what in ("environ", "mem", "fd")} == {"PermissionError"}
    else:
        assert KEY not in output and set(data.values()) <= {"PermissionError", "FileNotFoundError"}, data


def humaneval(folder: Path, refused: tuple[int, ...], *flags: str) -> subprocess.CompletedProcess[str]:
    """`harness eval` of one program that is right, on a machine whose kernel lacks these calls."""
    row = {"task_id": "Own/0", "entry_point": "evens", "prompt": PROMPT, "canonical_solution": RIGHT, "test": TEST}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    command = ["-m", "harness", "eval", "--spec", "humaneval", "--model", "mock", "--model_args", f"text={RIGHT!r}"]
    command += ["--set", f"task.data_files={folder}/rows.jsonl", "--output_path", str(folder / "run"), "--quiet"]
    return on_older_kernel([*command, "--allow_code_execution", *flags], refused, WORLD, HERE)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("refused", "word"), [(LANDLOCK, "Landlock"), (SECCOMP, "seccomp")], ids=["Landlock", "seccomp"]
)
def test_what_is_missing_is_said_before_anything_is_asked(tmp_path: Path, refused: tuple[int, ...], word: str) -> None:
    done = humaneval(tmp_path, refused)
    assert (done.returncode, done.stdout) == (2, "") and not (tmp_path / "run").exists()
    assert f"there is no {word}" in done.stderr and "--sandbox weaker" in done.stderr and "Traceback" not in done.stderr
    if report("bwrap").bwrap and word == "Landlock" and os.geteuid():
        assert "--sandbox bwrap" in done.stderr


@pytest.mark.slow
def test_weaker_says_what_is_open_and_runs(tmp_path: Path) -> None:
    done = humaneval(tmp_path, LANDLOCK + SECCOMP, "--sandbox", "weaker")
    assert done.returncode == 0, done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith("warning: --sandbox weaker") and "Landlock" in first and "seccomp" in first
    assert "every file that this user may read" in first and "network" in first
    assert json.loads((tmp_path / "run" / "scores.jsonl").read_text())["numbers"]["pass_at_1"] == 1


def test_bubblewrap_grades_as_the_kernel_does() -> None:
    with using("bwrap"):
        if not report("bwrap").bwrap:
            with pytest.raises(SetupError, match="no bubblewrap that works"):
                graded(RIGHT)
            return
        assert graded(RIGHT).passed
        assert graded("return numbers").status == "failed"
        assert graded("while True: pass", limits=SHORT).status == "timeout"
        assert graded("import os\nos._exit(3)").status == "crashed"
        assert graded("return [bytearray(1 << 40)]").status == "memory"
        assert "SIGABRT" in graded("import os\nos.abort()").detail


def test_an_unknown_provider_is_named() -> None:
    with pytest.raises(SetupError, match="bwarp") as caught, using("bwarp"):
        pass
    assert "Did you mean bwrap?" in str(caught.value)
