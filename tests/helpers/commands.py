"""Commands of the command line, run in this process."""

from pathlib import Path

import pytest

from harness.cli import main

ROOT = Path(__file__).parent.parent.parent
TOY = ROOT / "tests" / "toy"


def invoke(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command."""
    try:
        code = main(arguments)
    except SystemExit as error:  # argparse's own refusals
        code = int(error.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys: pytest.CaptureFixture[str], message: str, *arguments: str) -> None:
    """A command that ends with exit code 2, this message and no traceback."""
    code, _, err = invoke(capsys, *arguments)
    assert code == 2 and message in err and "Traceback" not in err, err


def eval_toy(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> tuple[int, str, str]:
    """`harness eval` of the toy project's spec; its results go to `folder`."""
    return invoke(capsys, "eval", "--spec", "toy", "--output_path", str(folder), *more)
