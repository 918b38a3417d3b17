"""A stand-in model: it means an action of each form that it is asked for, writes it in a style, and notes both."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from harness.api import Action, Completion, Reply, Request, derive_seed
from harness.engines.mock import Mock
from harness.replies.parse_guard import read_completion

from .parse_verdicts import Trial, tried
from .styles import STYLES, Meant, Style

PLAIN = tuple(style for style in STYLES if style.plain)
CALLED = Style("a call of a tool", True, lambda meant: None)


class StandIn:
    """Answers requests. What it means depends on the request alone, so two runs in other styles mean the same.

    Args:
        styles: those it writes in, one drawn for each reply.
        targets: case → the right answer, which it gives half the time where the form allows it.

    Attributes:
        trials: what was meant, and what is read of it.
        undeclared: the names of forms that declare no fields, for which it has nothing to say.
    """

    def __init__(self, styles: Sequence[Style], targets: dict[str, Action] | None = None) -> None:
        self._styles, self._targets = styles, targets or {}
        self.trials: list[Trial] = []
        self.undeclared: set[str] = set()

    def engine(self, name: str) -> Mock:
        """The engine; `name` is in tables."""
        return Mock(model=name, function=self)

    def __call__(self, request: Request) -> Completion:
        """A reply to a request."""
        form, case = request.reply, request.id.rsplit("/", 4)[0].partition("/")[2]
        if form is not None and form.ability is not None:  # there is nothing to write
            return request.mock_answer("")
        meant = None if form is None else self._meant(form, request.seed, self._targets.get(case))
        if form is None or meant is None:
            self.undeclared.add(type(form).__name__)
            return Completion("")
        rng = random.Random(derive_seed(request.seed, "style"))
        if form.tools and (not form.takes_text or len(self._styles) == 1 or rng.random() < 0.5):
            calls = [{"id": f"call_{i}", **call} for i, call in enumerate(form.calls_of(meant.action))]
            called = Completion("", tool_calls=calls)
            self.trials += [tried(meant, CALLED, called.shown, read_completion(form, called))]
            return called
        written = [(style, style.write(meant)) for style in rng.sample(self._styles, len(self._styles))]
        style, text = next(((style, text) for style, text in written if text is not None), (STYLES[0], meant.asked))
        self.trials.append(tried(meant, style, text or ""))
        return Completion(text or "")

    def _meant(self, form: Reply, seed: int, target: Any) -> Meant | None:
        rng = random.Random(derive_seed(seed, "meant"))
        examples = form.examples
        if not examples:
            return None
        action, other = rng.choice(examples), rng.choice(examples)
        if target is not None and rng.random() < 0.5:
            right = form.parse(str(target))
            action = right.action if right.error is None and form.allows(right.action) else action
        return Meant(form, action, other)
