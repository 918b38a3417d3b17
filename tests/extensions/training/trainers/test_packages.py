"""The environment of this group has what the documentation says to install."""

from __future__ import annotations

import re
from importlib import metadata

import pytest

from tests.docs.test_docs import ROOT

pytestmark = pytest.mark.trainers


def test_the_command_of_the_documentation_installs_the_packages_of_trainers() -> None:
    command = re.search(
        r"<!-- ci: trainer-test -->\n```bash\npip install -e '\.\[(.*)\]'", (ROOT / "CONTRIBUTING.md").read_text()
    )
    for extra in command.group(1).split(","):
        names = [r for r in metadata.requires("mas-eval-harness") or () if f'extra == "{extra}"' in r.replace("'", '"')]
        assert names
        for name in names:
            assert metadata.version(re.match(r"[\w-]+", name).group())
