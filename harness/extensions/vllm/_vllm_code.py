"""What of a spec's parameters makes vLLM run code: that which comes with a model, chat templates, classes by name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.plugins.approvals import NeedsApproval
from harness.plugins.needed_approval import NeededApproval
from harness.storage.redaction import without_secrets


class ModelCode(NeedsApproval):
    """vLLM's parameters that may name code."""

    pretrained: str
    revision: str | None
    trust_remote_code: bool
    chat_template: str | None
    engine_args: dict[str, Any]

    def approvals(self) -> Iterable[NeededApproval]:
        """Code that comes with the model, a chat template, and arguments that may name code."""
        if self.trust_remote_code:
            what = f"Python that comes with the model {self.pretrained}"
            code = [hashlib.sha256(file.read_bytes()).hexdigest() for file in _code(self.pretrained)]
            facts = [self.pretrained, self.revision, code]
            yield NeededApproval.declared(what, facts, ("trust_remote_code", "pretrained", "revision"))
        if self.chat_template and (file := Path(self.chat_template).expanduser()).is_file():
            yield NeededApproval.of_file(file, file.read_bytes(), "a chat template")
        if self.engine_args:
            what = f"what vLLM's arguments name: {without_secrets(self.engine_args)}"
            yield NeededApproval.declared(what, self.engine_args, ("engine_args",))


def _code(model: str) -> list[Path]:
    """The Python files in a model's folder; none of a model on the hub."""
    folder = Path(model).expanduser()
    return sorted(folder.glob("*.py")) if folder.is_dir() else []
