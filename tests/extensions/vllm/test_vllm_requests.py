"""What is read out of vLLM's prompt logprobs, on outputs as its two runners give them."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.extensions.vllm._vllm_scoring import likelihood

CONTEXT, TEXT = [1, 2, 3, 4], [7, 8]


def output(*rows: tuple[int, float, int, float], cached: int = 0, whole: bool = True) -> Any:
    """Rows of (token, its logprob, the likeliest token, its logprob) at the prompt's end; `whole`: rows for cached
    tokens are there too, left over from something else."""
    given = 1 + len(CONTEXT) + len(TEXT) - len(rows) - 1 if whole else 0
    every = [(99, 5.0, 99, 5.0)] * given + list(rows)
    starts = [0, *range(0, 2 * len(every), 2)]  # the first token has none
    flat = SimpleNamespace(
        start_indices=starts,
        token_ids=[token for own, _, best, _ in every for token in (own, best)],
        logprobs=[value for _, own, _, best in every for value in (own, best)],
    )
    return SimpleNamespace(prompt_token_ids=[*CONTEXT, *TEXT], prompt_logprobs=flat, num_cached_tokens=cached)


@pytest.mark.parametrize("whole", [True, False])
def test_the_last_rows_are_the_texts(whole: bool) -> None:
    rows = (4, -9.0, 5, -0.5), (7, -0.25, 7, -0.25), (8, -1.5, 8, -1.5)
    assert likelihood(output(*rows, cached=3, whole=whole), TEXT) == (-1.75, True)
    rows = rows[0], rows[1], (8, -1.5, 9, -0.75)
    assert likelihood(output(*rows, whole=whole), TEXT) == (-1.75, False)


def test_a_token_as_likely_as_the_likeliest_is_greedy_as_in_lm_eval() -> None:
    assert likelihood(output((7, -0.5, 6, -0.5), (8, -1.0, 8, -1.0)), TEXT) == (-1.5, True)


def test_what_came_from_the_cache_has_no_numbers() -> None:
    rows = (7, -0.25, 7, -0.25), (8, -1.5, 8, -1.5)
    assert likelihood(output(*rows, cached=3), TEXT) is not None
    assert likelihood(output(*rows, cached=4), TEXT) is None
    assert likelihood(output(*rows[1:], whole=False), TEXT) is None  # fewer rows than tokens
    # A row that is about another token was never written.
    assert likelihood(output((7, -0.25, 7, -0.25), (6, -1.5, 6, -1.5)), TEXT) is None
