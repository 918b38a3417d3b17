"""The event loop of a command."""

import subprocess
import sys

from tests.helpers.commands import ROOT


def test_ctrl_c_at_any_line_before_the_work_begins_ends_it_in_order() -> None:
    """No loop is left half built, which Python would report when it is collected, and no work is cut off."""
    command = [sys.executable, "-W", "error", "-m", "tests.helpers.interrupted_sessions"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 50, "it went through asyncio's own lines"
