"""What extensions have found out about an episode since it was played: the extension point `findings`.

An extension keeps it in a file of the run's folder. Pages show it beside the episode, and exports carry it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.api.errors import UserError
from harness.plugins.extension import Offer
from harness.plugins.manifests import offers
from harness.storage.plugin_errors import describe
from harness.transcripts.view_api import Finding, Transcript

_log = logging.getLogger(__name__)


def readers(folder: Path) -> dict[str, Offer]:
    """Name → what reads the findings that the run in `folder` has; an extension is not imported for a run without."""
    return {name: one for name, one in offers("findings").items() if os.path.lexists(folder / one.value["file"])}


def findings(folder: Path, transcript: Transcript) -> Iterator[Finding]:
    """What was found out about an episode of the run in `folder`; what no longer holds is left out.

    What cannot be read is left out too, with a warning that says where: a transcript is shown without it.
    """
    for name, offer in readers(folder).items():
        found: list[Finding] = []
        with contextlib.suppress(UserError):
            read = offer.load_function()
            try:
                found = [replace(one, name=name) for one in read(folder, transcript)]
            except UserError as error:
                _warn(f"findings of {name} are left out: {error}")
            except Exception as error:  # a bug of the extension
                _warn(f"findings of {name} are left out: {describe(error, read)}")
        yield from found


@functools.cache
def _warn(text: str) -> None:
    """Once, however many episodes have it."""
    _log.warning(text)
