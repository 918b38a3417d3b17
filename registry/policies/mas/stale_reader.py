"""A team that fails by stale reads, the failure mode of the shared store (Section 5.3)."""

from __future__ import annotations

import json

from harness.api import PluginError, Turn, plugin

from ..silo._agent import Call, message, submit
from ._agent import Commander


@plugin
class StaleReader(Commander):
    """Any task of MAS-Bench on the shared store: writes a draft, and corrects it after others have read it.

    All agents write a draft (their list with zeros only), read all drafts, correct their own, and submit the answer for
    the drafts.

    Attributes:
        rereads: read the corrected lists before submitting, which makes all answers right.
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
        return {"call": "write_file", "path": f"list_{self.id}", "content": message(shards={self.id: text})}

    def _read(self) -> list[Call]:
        return [{"call": "read_file", "path": f"list_{i}"} for i in range(self.n) if i != self.id] or [{"call": "wait"}]
