"""The cheer `loud`."""

from __future__ import annotations

from harness_echo.cheer import Cheer

from harness.api import plugin


@plugin
class Loud(Cheer):
    """Hooray."""

    times: int = 3
