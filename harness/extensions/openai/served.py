"""Who answered, and whether prompts were counted whole: by what a server states beside its answers."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from harness.api import Completion, Facts, Thread
from harness.storage.files import short_name

_MOST_NAMES = 50
"""Names that are counted apart: some servers make a fingerprint of every reply."""
_LONGEST = 80
"""Characters of a fingerprint."""
_GROWTH = 200
"""Characters by which a conversation must have grown before its tokens must have."""
_log = logging.getLogger(__name__)


class Served:
    """Counts of a run's answers.

    Attributes:
        names: `model` (and `system_fingerprint`) that the server states → answers.
        not_grown: answers to a conversation that had grown while its tokens had not: the server has cut the prompt, or
            counts some of its tokens only, such as those that no cache held. The counts alone do not say which.
    """

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.not_grown = 0

    def count(self, data: Any) -> None:
        """Count an answer, by its JSON."""
        name, mark = data.get("model"), data.get("system_fingerprint")
        if not isinstance(name, str):
            return
        who = f"{short_name(name)} ({mark[:_LONGEST]})" if isinstance(mark, str) and mark else short_name(name)
        self.names[who if who in self.names or len(self.names) < _MOST_NAMES else "others"] += 1

    def check_prompt(self, thread: Thread, answer: Completion) -> None:
        """Note whether the prompt was counted whole."""
        if answer.input_tokens is None:
            return
        messages, chars, tokens = thread.memo.get("served", (0, 0, 0))
        now = chars + sum(len(one["content"] or "") for one in thread.messages[messages:])
        thread.memo["served"] = (len(thread.messages), now, answer.input_tokens)
        if messages and now >= chars + _GROWTH and answer.input_tokens <= tokens:
            self.not_grown += 1
            if self.not_grown == 1:
                _log.warning(
                    "the server counts %s tokens for a prompt that was %s characters shorter when it counted %s: it "
                    "cuts long prompts in silence, or leaves tokens uncounted, such as cached ones. Give it a longer "
                    "context; if it had one, the input tokens and costs of this run are too low.",
                    f"{answer.input_tokens:,}", f"{now - chars:,}", f"{tokens:,}",
                )  # fmt: skip

    def report(self) -> Facts:
        """What there is to say."""
        return {
            **({"answered_as": dict(self.names.most_common())} if self.names else {}),
            **({"prompts_not_grown": self.not_grown} if self.not_grown else {}),
        }
