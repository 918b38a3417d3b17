"""`api` of a manifest: a package for another version of the extension points is disabled, and says what to install."""

import pytest

from harness.cli import main
from harness.plugins import extension, manifests, missing_extensions
from tests.core.plugins.test_broken_extensions import TOP, Capture, Install, install

__all__ = ["install"]


@pytest.mark.parametrize(
    "version, newer, older",
    [
        pytest.param(99, "mas-eval-harness", "harness-echo", id="new"),
        pytest.param(0, "harness-echo", "mas-eval-harness", id="old"),
    ],
)
def test_another_version_is_named_with_what_to_install(
    version: int, newer: str, older: str, install: Install, capsys: Capture
) -> None:
    file = install(f'{TOP}api = {version}\n[commands.say]\nrun = "a:b"\n[a_new_point]\nx = 1\n') / "extension.toml"
    why = missing_extensions.missing()["echo"]
    offered = f"api: written for version {version} of the extension points, and this harness offers 1"
    assert f"cannot be used: {file}: {offered}" in why
    assert f"Install a newer {newer}: pip install --upgrade {newer}; or an older {older}." in why
    with pytest.raises(SystemExit, match="2"):
        main(["say"])
    assert why in capsys.readouterr().err  # a name that it would add says so too


@pytest.mark.parametrize("line", ["", "api = 1\n"])
def test_a_manifest_without_a_version_is_for_the_first(line: str, install: Install) -> None:
    install(f"{TOP}{line}")
    assert "echo" in manifests.extensions() and extension.API_VERSIONS[0] == 1
