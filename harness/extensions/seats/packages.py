"""The packages that servers of seats need."""

from __future__ import annotations

from harness.api.errors import SetupError
from harness.plugins.manifests import is_installed


def require_mcp() -> None:
    """Raise `SetupError` if the package of MCP servers is not installed."""
    if not is_installed("mcp"):
        hint = 'Install it: pip install "mas-eval-harness[mcp]"'
        raise SetupError("a seat whose player acts through tools needs the package mcp", hint=hint)
