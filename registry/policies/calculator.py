"""The perfect baseline of arithmetic."""

from __future__ import annotations

import random
import re

from harness.api import Action, Policy, Turn, plugin

_EXPRESSION = re.compile(r"\d+(?: [-+*] \d+)+")


@plugin
class Calculator(Policy):
    """Answers with the value of the last arithmetic expression in the question; does nothing without one."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return the value: products first, then sums."""
        expressions = _EXPRESSION.findall(str(turn.context.get("question", "")))
        if not expressions:
            return rng.choice(turn.reply.options) if turn.reply.options else turn.reply.noop
        total, product, sign = 0, 1, 1
        for word in ["*", *expressions[-1].split(), "+"]:
            if word in "+-":
                total, product, sign = total + sign * product, 1, 1 if word == "+" else -1
            elif word != "*":
                product *= int(word)
        return total if turn.reply.allows(total) else turn.reply.noop
