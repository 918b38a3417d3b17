"""Log-likelihoods from the engine `mock`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness.api import Request
from harness.engines.likelihoods import LikelihoodRequest


def mock_scores(
    score: Callable[[LikelihoodRequest], Sequence[Sequence[float | bool]]],
    reply: Callable[[Request], Any] = lambda request: "",
) -> Callable[[Request], Any]:
    """A function for the engine `mock`: `score` gives the numbers of texts, `reply` answers all other requests."""

    def answer(request: Request) -> Any:
        if not isinstance(request, LikelihoodRequest):
            return reply(request)
        return replace(request.mock_answer(""), likelihoods=score(request))

    return answer
