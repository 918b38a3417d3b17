"""Programs that models wrote run confined, or not at all."""

import pytest

from harness.api.errors import SetupError
from harness.config.permissions import confined


def test_nothing_runs_where_no_extension_confines_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.plugins.manifests.offers", lambda point: {})
    with pytest.raises(SetupError, match="run confined only, comes with an extension"):
        confined("process")


def test_a_provider_that_does_not_exist_confines_nothing() -> None:
    with pytest.raises(SetupError, match="there is no sandbox 'none'"), confined("none"):
        pytest.fail("a program could have run")
