"""The commands of MAS-Bench, which live with their protocol."""

import importlib
from typing import Any

from harness.config.project import builtin

_MODULE: Any = importlib.import_module(
    builtin().load("protocols", "command_rounds").__module__.rpartition(".")[0] + "._commands"
)
Commands, UNKNOWN = _MODULE.Commands, _MODULE.UNKNOWN
fenced, usage, written = _MODULE.fenced, _MODULE.usage, _MODULE.written
