"""An engine: `--model parrot`. The module has one class tagged `@plugin`."""

from __future__ import annotations

from harness.api import Completion, Engine, Request, plugin
from harness_echo.repetition import Repeats, RepetitionRequest


@plugin
class Parrot(Engine, Repeats):
    """Says the last word that it heard.

    Attributes:
        model: its name in tables.
    """

    model: str = "parrot"

    async def complete(self, request: Request) -> Completion:
        """The last word of the prompt."""
        return Completion((request.thread.text.split() or [""])[-1])

    async def repeat(self, request: RepetitionRequest) -> Completion:
        """The word that was asked for."""
        return Completion(request.word)
