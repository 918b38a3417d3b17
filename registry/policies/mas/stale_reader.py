"""A team that trips over stale reads, the shared store's own way to fail (Section 5.3)."""

from __future__ import annotations

import json

from harness.api import Turn, plugin
from harness.errors import PluginError

from ..silo._agent import Call, submit, written
from ._agent import Commander


@plugin
class StaleReader(Commander):
    """Any task of MAS-Bench on the shared store: writes a draft first and corrects it after others have read it.

    All agents write a draft (zeros in every place of their list), read all drafts, correct their own, and submit what
    follows from the drafts. With `rereads` they read again first, and everything is right.

    Attributes:
        rereads: whether the corrected lists are read before submitting.
    """

    rereads: bool = False

    def act(self, turn: Turn) -> list[Call]:
        """Write a draft, read, correct, perhaps read again, submit."""
        if self.context["channel"]["kind"] != "shared_kv":
            raise PluginError("stale_reader needs the channel mas/shared_kv")
        match turn.observation["round"]:
            case 1:
                return [self._write(json.dumps([0] * len(json.loads(self.shards[self.id]))))]
            case 2:
                return self._read()
            case 3:
                return [self._write(self.shards[self.id])]
            case 4 if self.rereads:
                return self._read()
        return [submit(self.solve()[self.id])] if len(self.shards) == self.n else self._read()

    def _write(self, text: str) -> Call:
        return {"call": "write_file", "path": f"list_{self.id}", "content": written(shards={self.id: text})}

    def _read(self) -> list[Call]:
        return [{"call": "read_file", "path": f"list_{i}"} for i in range(self.n) if i != self.id] or [{"call": "wait"}]
