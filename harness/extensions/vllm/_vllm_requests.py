"""What vLLM is asked with, and what is read out of its answers."""

from __future__ import annotations

from typing import Any

from harness.api import Request, Thread
from harness.api.errors import RequestError
from harness.engines.sampling import normalize
from harness.extensions.vllm._vllm_scoring import scoring


def as_written(request: Request, text: str, eos: str) -> str:
    """A verbatim reply up to its first stop: vLLM stops at one of them, and the last tokens may contain another."""
    for stop in _stops(normalize(request.sampling), eos):
        text = text.partition(stop)[0]
    return text


def generating(request: Request, room: int, eos: str, logprobs: bool = False) -> Any:
    """SamplingParams of a request; never more tokens than there is `room` for. `eos`: the text of the token that ends
    a reply; `logprobs`: with the log-probability of each token."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    words = normalize(request.sampling)
    words["max_tokens"] = min(words.get("max_tokens", room), room)
    if "logit_bias" in words:  # keys are texts in JSON and in the command line's words
        words["logit_bias"] = {int(token): bias for token, bias in words["logit_bias"].items()}
    if request.constraint:
        words["structured_outputs"] = StructuredOutputsParams(**request.constraint)
    verbatim = request.thread.verbatim
    if verbatim:
        words |= {"skip_special_tokens": False, "spaces_between_special_tokens": False, "stop": _stops(words, eos)}
    elif request.tools:  # some models write their calls in special tokens
        words["skip_special_tokens"] = False
    # Turning ids into text while they come costs more than all else; only stop strings need it.
    words["detokenize"] = verbatim or bool(words.get("stop"))
    if logprobs:
        words |= {"logprobs": 0, "flat_logprobs": True}  # 0 beside the token's own
    # Made for this one request, so vLLM need not copy it.
    return SamplingParams(seed=request.seed, output_kind=RequestOutputKind.FINAL_ONLY, skip_clone=True, **words)


def tokens_of(output: Any, with_logprobs: bool) -> dict[str, Any]:
    """What a completion says of its tokens. Raises `RequestError` if vLLM gives no log-probability of one of them."""
    reply = output.outputs[0]
    ids, logprobs = tuple(reply.token_ids), reply.logprobs
    tokens = {"prompt_token_ids": tuple(output.prompt_token_ids), "token_ids": ids}
    if not with_logprobs:
        return tokens
    starts = logprobs.start_indices if logprobs is not None else ()
    if len(starts) != len(ids) or any(logprobs.token_ids[at] != i for at, i in zip(starts, ids, strict=True)):
        raise RequestError(f"vLLM gave log-probabilities of {len(starts)} tokens, and {len(ids)} tokens")
    return {**tokens, "logprobs": tuple(logprobs.logprobs[at] for at in starts)}


def _stops(words: dict[str, Any], eos: str) -> list[str]:
    stops = words.get("stop", [])
    return stops if not eos or eos in stops else [*stops, eos]


def try_request() -> None:
    """Make what requests are sent with: a version of vLLM that lacks it fails now, before it loads the model."""
    from vllm.inputs import tokens_input
    from vllm.v1.engine.exceptions import EngineDeadError  # noqa: F401

    tokens_input([0])
    generating(Request("a try", Thread(), {}, 0), 1, "", logprobs=True)
    scoring()
