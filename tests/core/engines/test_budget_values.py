"""What may be said of a budget, in Python and on the command line."""

from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import SetupError
from harness.cli import main
from harness.cli.parser import parser
from tests.core.engines.test_budgets import COMMAND, Dice, run


@pytest.mark.parametrize("name", ["max_calls", "max_tokens_total"])
@pytest.mark.parametrize("value", [0, -1, 10**30, 1.5, True, "7", float("nan")])
def test_values_that_are_no_counts(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(SetupError, match=f"{name} must be a whole number from 1 to"):
        run(tmp_path / "r", Dice(), **{name: value})
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("value", [0, -1, 0.0, float("nan"), float("inf"), 10**30, True, "8h"])
def test_values_that_are_no_times(tmp_path: Path, value: Any) -> None:
    with pytest.raises(SetupError, match="max_time must be a number of seconds above 0"):
        run(tmp_path / "r", Dice(), max_time=value)


@pytest.mark.parametrize("flag", ["--max_calls", "--max_tokens_total", "--max_time"])
@pytest.mark.parametrize("value", ["0", "-1", "1" + 30 * "0", "1e3", "nan", "x", "", "0h"])
def test_flags_that_say_nothing_sensible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, value: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*COMMAND, str(tmp_path / "r"), f"{flag}={value}"])
    assert caught.value.code == 2 and f"error: {flag}: must be a " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("0.5s", 0.5), ("30m", 1800), ("8h", 28800), ("2d", 172800), ("1.5h", 5400)]
)
def test_times_of_the_command_line(text: str, seconds: float) -> None:
    options = parser().parse_args([*COMMAND, "r", "--max_time", text, "--max_calls", "7"])
    assert (options.max_time, options.max_calls, options.max_tokens_total) == (seconds, 7, None)
