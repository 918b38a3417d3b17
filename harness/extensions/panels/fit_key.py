"""The key `calibrate:` of specs: what `harness calibrate` estimates parameters on."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypedDict

from harness.config.keys import SpecKey


class FitEntry(TypedDict, total=False):
    """The keys of `calibrate:`, which `harness calibrate` puts into the spec before it plays."""

    task: Annotated[
        dict[str, Any] | str, "parameters of the task that are others there, or the ${variable} that holds them"
    ]
    limit: Annotated[float | str, "at most so many rows"]


class FitKey(SpecKey):
    """It changes nothing in a run: only `harness calibrate` reads it."""

    entry: ClassVar[Any] = Annotated[
        FitEntry, "what `harness calibrate` estimates parameters on: changes to the task, and how many rows"
    ]
