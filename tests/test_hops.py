"""From `harness.evaluate` to the engine it is a short way, and docs/architecture.md draws it."""

import re
import traceback
from pathlib import Path

import pytest

import harness
from harness.api import Completion, Request
from harness.config.project import find
from harness.engines.mock import Mock

ROOT = Path(__file__).parent.parent
MOST = 12


class AskedError(BaseException):
    """Goes up from the engine through every call that led to it."""


class Asked(Mock):
    """An engine that shows who asks it."""

    async def complete(self, request: Request) -> Completion:
        raise AskedError


def test_few_calls_lead_to_the_engine_as_the_architecture_page_says(tmp_path: Path) -> None:
    with pytest.raises(AskedError) as caught:
        harness.evaluate(
            "agentsnet_quick", Asked(), limit=1, output_path=tmp_path, project=find(ROOT), max_concurrency=1
        )
    frames = traceback.extract_tb(caught.tb)[1:]
    calls = [frame.name for frame in frames if "harness" in Path(frame.filename).parts or frame.name == "complete"]
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Call path of a request")[2]
    assert re.findall(r"(\w+)(?: ─|$)", page.split("```")[1], re.MULTILINE) == calls
    assert len(calls) <= MOST
