"""What can be known before the first call is refused before anything is written."""

from pathlib import Path

import pytest

import harness
from harness.api import Completion, Engine, Request, plugin
from harness.api.errors import DataError, SetupError, UserError
from harness.engines.mock import Mock
from harness.engines.replay import Replay
from tests.helpers.toy import TOY


@plugin
class Unprepared(Engine):
    """An engine without what it needs."""

    model: str = "unprepared"

    def check(self) -> None:
        raise SetupError("the engine needs a package", hint="Install it.")

    async def complete(self, request: Request) -> Completion:
        raise AssertionError("asked all the same")


@pytest.mark.parametrize(
    ("engine", "cache", "kind", "says"),
    [
        pytest.param(Unprepared(), None, SetupError, "needs a package", id="a package"),
        pytest.param(Replay(path="nonesuch"), None, SetupError, "no recorded run there", id="a recording"),
        pytest.param(Mock(), ".", DataError, "cannot be opened: it is a folder", id="a cache that is a folder"),
        pytest.param(Mock(), "file/cache", DataError, "file is no folder", id="a cache below a file"),
    ],
)
def test_a_run_that_cannot_start_leaves_no_folder(
    tmp_path: Path, engine: Engine, cache: str | None, kind: type[UserError], says: str
) -> None:
    (tmp_path / "file").write_text("")
    path = None if cache is None else tmp_path / cache
    with pytest.raises(kind, match=says):
        harness.evaluate("toy", engine, output_path=tmp_path / "run", project=TOY, use_cache=path)
    assert not (tmp_path / "run").exists()


def test_a_finished_run_needs_its_engine_no_more(tmp_path: Path) -> None:
    where, path = tmp_path / "run", tmp_path / "cache"
    done = harness.evaluate("toy", Mock(), output_path=where, project=TOY, use_cache=path)
    path.unlink()
    path.mkdir()
    again = harness.evaluate("toy", Mock(), output_path=where, project=TOY, use_cache=path)
    assert [score.id for score in again.scores] == [score.id for score in done.scores]
