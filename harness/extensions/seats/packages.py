"""The packages that servers of seats need."""

from __future__ import annotations

from harness.api.errors import SetupError
from harness.plugins.manifests import is_installed

PACKAGES = {"mcp": "mcp", "a2a": "a2a"}
"""How a seat can be served → the module that does so, and the extra of the same name."""


def require(kind: str) -> None:
    """Raise `SetupError` if the package is not installed that serves seats of a kind."""
    if not is_installed(PACKAGES[kind]):
        hint = f'Install it: pip install "mas-eval-harness[{kind}]"'
        raise SetupError(f"serving a seat as {kind} needs the package {PACKAGES[kind]}", hint=hint)
