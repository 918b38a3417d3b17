"""One of several options, on a line that starts with a label: `ACTION: WAIT`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.api import Parsed, Reply

from ._options import read_option
from ._text import Parsing


@dataclass(frozen=True, slots=True)
class Labelled(Reply):
    """One of finitely many words, announced by a label and a colon.

    The tolerant mode takes the last label that an option follows; quotes, bold, brackets or line breaks may stand
    between, case is ignored, and the parts of `GRAB_LEFT` may be joined by blanks, hyphens or an escaped underscore. A
    list of several ("GRAB_LEFT or WAIT", the prompt's own template) is no option. Without such a label, an option
    counts that is stated clearly in another way: in a JSON object, an element, on a line of its own (`plain_option`).

    Attributes:
        options: the legal actions, in the order in which the prompt lists them.
        label: what announces the answer.
        noop: the option of an agent that does nothing.
        parsing: "reference" is DPBench's own code: in capitals, the first label that a word follows at once (also
            inside a longer word: REACTION:); that word, or the whole text if there is no such label, is searched for
            one option after the other, so "not GRAB_RIGHT" is GRAB_RIGHT.
    """

    options: tuple[str, ...] = field()
    label: str = "ACTION"
    noop: str | None = field(default=None)
    parsing: Parsing = "tolerant"

    def parse(self, text: str) -> Parsed:
        """The option that `text` states."""
        option = (
            self._reference(text) if self.parsing == "reference" else read_option(text, self.options, f"{self.label}:")
        )
        if option is not None:
            return Parsed(option)
        listed = ", ".join(self.options[:20])
        return Parsed(error=f"no valid answer was found after '{self.label}:'; the valid answers are: {listed}")

    def constraint(self) -> Mapping[str, Any]:
        """Exactly the label and an option."""
        return {"choice": [f"{self.label}: {option}" for option in self.options]}

    def _reference(self, text: str) -> str | None:
        upper = text.upper()
        match = re.search(rf"{re.escape(self.label.upper())}:\s*(\w+)", upper)
        where = match[1] if match else upper
        for name in self.options:
            if name.upper() in where or name.upper().replace("_", "") in where:
                return name
        return None
