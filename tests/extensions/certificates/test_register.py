"""`harness register`: entries that are right, hostile ones, and what a pinned card says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import UserError
from harness.extensions.certificates import card as cards
from harness.extensions.certificates.certify import CHECKS, Certificate, CheckLine
from harness.extensions.certificates.register import SCHEMA, Listing, read
from harness.plugins.parameters import schema_problems
from tests.helpers.commands import ROOT, invoke

GOOD = {
    "name": "meeting",
    "repository": "https://github.com/ada/meeting",
    "commit": "a" * 40,
    "spec": "games/meeting",
    "card_digest": f"sha256:{'b' * 64}",
}


def write(folder: Path, name: str = "meeting", **changes: Any) -> None:
    data = {key: value for key, value in {**GOOD, "name": name, **changes}.items() if value is not None}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(data))


def test_a_register_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    write(tmp_path, "rooms", card="cards/rooms.json")
    (tmp_path / "README.md").write_text("Ours.")
    code, out, err = invoke(capsys, "register", str(tmp_path))
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "meeting  games/meeting  https://github.com/ada/meeting aaaaaaaaaaaa"
    assert out.splitlines()[-1] == "2 benchmarks"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"commit": "main"}, "commit: expected a whole commit id", id="branch"),
        pytest.param({"commit": "--upload-pack=id"}, "commit: expected a whole commit id", id="option"),
        pytest.param({"commit": None}, "missing required key 'commit'", id="none"),
        pytest.param({"repository": "ext::sh -c id"}, "repository: expected an address", id="program"),
        pytest.param({"repository": "file:///etc"}, "repository: expected an address", id="file"),
        pytest.param({"repository": "https://u:p@h.org/x"}, "repository: expected an address", id="password"),
        pytest.param({"card": "../../etc/passwd"}, "card: expected a path within the repository", id="up"),
        pytest.param({"card": "/etc/passwd"}, "card: expected a path within the repository", id="absolute"),
        pytest.param({"card": "a/./b"}, "card: expected a path within the repository", id="dot"),
        pytest.param({"spec": "../spec"}, "spec: expected a spec's name", id="spec"),
        pytest.param({"card_digest": "b" * 64}, "card_digest: expected sha256:", id="digest"),
        pytest.param({"licence": "MIT"}, "unknown key 'licence'", id="key"),
        pytest.param({"name": "Meeting!"}, "name: expected a name such as meeting", id="name"),
        pytest.param({"name": "rooms"}, "'rooms' is not the file's name", id="other name"),
        pytest.param({"commit": 12}, "commit: expected", id="number"),
    ],
)
def test_a_wrong_entry_is_one_line_and_the_others_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], message: str
) -> None:
    write(tmp_path, "good")
    write(tmp_path)
    data = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    (tmp_path / "meeting.yaml").write_text(yaml.safe_dump(data))
    code, out, err = invoke(capsys, "register", str(tmp_path))
    assert code == 1 and "good " in out and "1 benchmark, 1 wrong" in out
    [line] = err.splitlines()
    assert f"{tmp_path}/meeting.yaml:" in line and message in line


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "large", "bytes", "list", "bomb"])
def test_files_that_are_no_entry_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    file = tmp_path / "odd.yaml"
    match kind:
        case "link":
            file.symlink_to("/etc/passwd")
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "large":
            file.write_text("# " + "x" * 100_000)
        case "bytes":
            file.write_bytes(b"\xff\xfe")
        case "list":
            file.write_text("[1, 2]")
        case "bomb":
            file.write_text(
                "a: &a [x]\n"
                + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True))
            )
    code, out, err = invoke(capsys, "register", str(tmp_path))
    assert code == 1 and len(err.splitlines()) == 1 and "odd.yaml" in err and "Traceback" not in err
    assert out == "0 benchmarks, 1 wrong\n"


def test_there_is_no_register(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = invoke(capsys, "register", str(tmp_path / "none"))
    assert code == 2 and "is no folder" in err


@given(
    st.dictionaries(st.sampled_from([*GOOD, "card", "x"]), st.one_of(st.text(max_size=40), st.integers(), st.none()))
)
def test_what_is_read_keeps_the_schema(tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("register")
    (folder / "meeting.yaml").write_text(json.dumps({**GOOD, **changes}))
    [one] = read(folder)
    if isinstance(one, Listing):
        assert one.name == "meeting" and not list(schema_problems(yaml.safe_load(one.as_yaml()), SCHEMA))
    else:
        assert isinstance(one, UserError)


# ------------------------------------------------------------------------------------ with git


def certificate(name: str, passed: bool = True) -> Certificate:
    return Certificate(name, lines=[CheckLine(check, passed, "because") for check in CHECKS])


class Benchmark:
    """A repository with a card, which git finds under an address of the web."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkout, self.register = folder, folder / "checkout", folder / "register"
        who = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        (folder / "gitconfig").write_text(f'[url "{folder}/"]\n  insteadOf = https://example.org/\n')
        here = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment = {**here, **who, "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"), "PYTHONPATH": str(ROOT)}
        self.checkout.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("remote", "add", "origin", "https://ada:t0ken@example.org/checkout.git")

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.checkout), *words], check=True, env=self.environment)

    def commit(self, *certificates: Certificate) -> None:
        cards.write(cards.card(certificates, cards.CardSource("meeting", "1.0")), self.checkout)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "card")

    def run(self, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-P", "-m", "harness", "register", str(self.register), *words]
        hook = {**self.environment, "GIT_DIR": str(self.folder / "hooked"), "GIT_WORK_TREE": str(self.folder)}
        done = subprocess.run(command, env=hook, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.mark.slow  # git and the command, in processes of their own
def test_an_entry_is_added_and_its_card_is_fetched(tmp_path: Path) -> None:
    there = Benchmark(tmp_path)
    there.commit(certificate("talks/rooms"), certificate("games/rooms"))
    code, printed = there.run("--add", str(there.checkout))
    assert code == 2 and "two specs of the card end in the same name" in printed
    there.commit(certificate("meeting"), certificate("games/rooms"))
    code, printed = there.run("--add", str(there.checkout))
    assert code == 0 and "2 benchmarks" in printed, printed
    entry = yaml.safe_load((there.register / "rooms.yaml").read_text())
    assert (entry["spec"], entry["repository"]) == ("games/rooms", "https://example.org/checkout")
    code, printed = there.run("--fetch")
    assert code == 0 and printed.count("certified 20") == 2, printed

    there.commit(certificate("meeting", passed=False))
    code, printed = there.run("--add", str(there.checkout))
    assert code == 2 and "meeting did not pass: valid, conformant" in printed
    code, printed = there.run("--fetch")
    assert code == 0, printed  # the pinned commit is as it was

    text = (there.register / "rooms.yaml").read_text()
    for old, new, message in (
        (entry["card_digest"], f"sha256:{'0' * 64}", "at that commit has the digest sha256:"),
        (entry["commit"], "f" * 40, "git fetch in"),
        ("spec: games/rooms", "spec: games/room", "the card is about meeting, games/rooms, not about games/room"),
        ("card: harness-card.json", "card: harness-badge.svg", "at that commit has the digest"),
        ("card: harness-card.json", "card: none.json", "has no none.json at"),
    ):
        assert old in text
        (there.register / "rooms.yaml").write_text(text.replace(old, new))
        code, printed = there.run("--fetch")
        assert code == 1 and message in printed and "Traceback" not in printed, printed
        assert "1 benchmark, 1 wrong" in printed


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"format": 1}',
        b"9" * 5000,
        b'{"format": 2, "benchmarks": [{"spec": "a"}]}',
        b'{"format": 1, "benchmarks": [{"spec": 3}]}',
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_card_are_refused(raw: bytes) -> None:
    with pytest.raises(UserError, match="is no card of format 1"):
        cards.read(raw, "card")
