"""The viewer's server as a test client, and what it answers."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from harness.extensions.viewer._app import app
from tests.helpers.toy import TOY


@contextmanager
def serving(root: Path, project: Path = TOY.root, **more: Any) -> Iterator[TestClient]:
    """The viewer over a folder of runs."""
    application = app(root, project, **{"patience": 60, "seconds": 60, **more})
    with closing(application.state):
        yield TestClient(application, base_url="http://127.0.0.1:8400")


def get(client: TestClient, path: str, **query: Any) -> Any:
    """What `GET /api/runs{path}` gives; two underscores in a parameter stand for a dot."""
    answer = client.get(f"/api/runs{path}", params={name.replace("__", "."): value for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()
