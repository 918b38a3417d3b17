"""Some of a run's calls, asked again: at temperature 0 the same texts must come back; above it the recorded replies
must be as likely as what the model says (`authenticity.py`)."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from harness.api import Completion, Engine, Request
from harness.api.errors import EngineError
from harness.engines.call_keys import engine_facts
from harness.engines.gate import Gate
from harness.engines.reply_likelihoods import ReplyLikelihoodRequest, ScoresReplies
from harness.engines.sampling import normalize
from harness.runtime.session import session

from .authenticity import ENOUGH, LEAST_REPLIES, SHORT, ScoredReply, compare
from .recorded_run import copied

_WIDTH: Final = 8
"""Requests in flight."""
_LEAST_AGREEMENT: Final = 0.9
"""The share of calls asked again, at temperature 0, whose texts must be equal: engines differ in the last bit between
batches, which now and then changes a token."""
_LEAST_TESTED: Final = 0.5
"""The share of calls above temperature 0 that the test must take for a run to be `asked again`."""
_LEAST_ANSWERED: Final = 0.5
"""The share of calls asked again, at temperature 0, that must be answered for their texts to say anything."""
_PROBES: Final = 3
"""Recorded replies that are tried before a model counts as one that scores none."""
_SERVER: Final = ("engine", "model", "weights", "structured")
"""Facts that say what draws the replies."""
_NAMED: Final = 3
_ODD: Final = math.log(10)
"""Evidence from which on a reply is named."""
_BENT: Final = {
    "presence_penalty": 0, "frequency_penalty": 0, "repetition_penalty": 1, "logit_bias": {}, "bad_words": [],
    "allowed_token_ids": [],
}  # fmt: skip
"""Words of sampling that change likelihoods by what was said before, or beyond what a server states, with the values
that change nothing."""


class Call(NamedTuple):
    """A request with its recorded answer."""

    request: Request
    answer: Completion

    @property
    def temperature(self) -> float:
        """1 where the spec says nothing. A call that scores texts has none: 0."""
        if self.answer.likelihoods is not None:
            return 0.0
        stated = normalize(self.request.sampling).get("temperature")
        return 1.0 if stated is None else float(stated)


@dataclass
class Found:
    """What came of it.

    Attributes:
        holds: what was confirmed, a line each.
        differs: what was not.
        notes: what a reader should know besides.
        enough: whether the calls that could be compared say enough of the run.
    """

    holds: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    enough: bool = True


def ask_again(model: Engine, stated: Mapping[str, Any], sample: Sequence[tuple[Request, Completion]]) -> Found:
    """Ask a model some calls of a run again.

    Args:
        model: the engine to ask.
        stated: what the run says that its engine was.
        sample: the calls.
    """
    found = Found()
    facts = engine_facts(model, location=False)
    if fields := sorted(name for name in {*facts, *stated} if facts.get(name) != stated.get(name)):
        found.notes.append(f"the engine that was asked is not the one of the run: {_some(fields)} differ")
    calls = [Call(request, answer) for request, answer in sample]
    greedy = [call for call in calls if call.temperature == 0]
    drawn = [call for call in calls if call.temperature > 0]
    with session() as one:
        asked = one.run(_asked(model, greedy, drawn))
    if greedy:
        _compare_texts(found, greedy, asked.greedy)
    if asked.no_scores is not None:
        found.enough = False
        found.notes.append(f"nothing was asked of {len(drawn)} calls at a temperature above 0: {asked.no_scores}")
    elif drawn:
        same = all(facts.get(name) == stated.get(name) for name in _SERVER)
        _compare_likelihoods(found, drawn, asked.drawn, asked.rows, same)
    found.enough = found.enough and bool(calls)
    return found


Rows = list[list[float]] | None
"""The likelihoods of a reply's tokens; None: it cannot be compared, or the engine has none."""


class _Asked(NamedTuple):
    """What a model said when it was asked again.

    Attributes:
        greedy, drawn: the answers of now, None where the call failed, or was not asked since it cannot be compared.
        rows: of each drawn call's recorded and new reply.
        no_scores: why no drawn call was asked: the model scores none.
    """

    greedy: list[Completion | None]
    drawn: list[Completion | None]
    rows: list[tuple[Rows, Rows]]
    no_scores: str | None = None


async def _asked(model: Engine, greedy: Sequence[Call], drawn: Sequence[Call]) -> _Asked:
    gate = Gate(model, _WIDTH, 1.0)
    await gate.start()
    try:
        texts = await _all(gate, [call.request for call in greedy])
        recorded = [_scoring(*call) for call in drawn]
        if (why := await _no_scores(gate, [one for one in recorded if one is not None])) is not None:
            return _Asked(texts, [], [], why)
        comparable = zip(drawn, recorded, strict=True)
        answers = await _all(gate, [call.request if old is not None else None for call, old in comparable])
        # Recorded and new replies in turn, so that both meet the same batches.
        both = zip(drawn, recorded, answers, strict=True)
        scored = await _all(gate, [one for call, old, new in both for one in (old, _scoring(call.request, new))])
    finally:
        await gate.close()
    rows = [*map(_rows, scored)]
    return _Asked(texts, answers, list(zip(rows[::2], rows[1::2], strict=True)))


async def _no_scores(gate: Gate, recorded: Sequence[Request]) -> str | None:
    """Why the model scores none of these replies, by the first few; None if it scores one, or there is none."""
    if recorded and not isinstance(gate.engine, ScoresReplies):
        return f"the engine of {gate.model} {ScoresReplies.lack}"
    why = None
    for request in recorded[:_PROBES]:
        try:
            await gate.complete(request)
        except EngineError as error:
            why = f"{gate.model} scores no replies: {error}"
        else:
            return None
    return why


async def _all(gate: Gate, requests: Sequence[Request | None]) -> list[Completion | None]:
    """The answer to each request; None where there is none."""
    asked = [request for request in requests if request is not None]
    results = await asyncio.gather(*map(gate.complete, asked), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, EngineError):
            raise result
    answers = iter([None if isinstance(result, BaseException) else result for result in results])
    return [None if request is None else next(answers) for request in requests]


def _scoring(request: Request, answer: Completion | None) -> Request | None:
    if answer is None or obstacle(request, answer) is not None:
        return None
    thread = copied(request.thread)  # engines keep what they know of a thread's last reply
    return ReplyLikelihoodRequest(
        f"{request.id}/scored", thread, prefill=request.prefill, tools=request.tools, text=answer.text
    )


def _rows(answer: Completion | None) -> Rows:
    if answer is None or not answer.likelihoods:
        return None
    return [[float(value) for value in row] for row in answer.likelihoods]


def obstacle(request: Request, answer: Completion) -> str | None:
    """Why the likelihood of a reply's text is not that of what the model did; None if it is."""
    words = normalize(request.sampling)
    if answer.reasoning:
        return "reasoned first"
    if answer.tool_calls:
        return "called tools"
    if any(words.get(name, none) != none for name, none in _BENT.items()):
        return "were drawn with penalties or other weights"
    return None if answer.text else "are empty"


# ------------------------------------------------------------------------------------ comparing


def _compare_texts(found: Found, calls: Sequence[Call], answers: Sequence[Completion | None]) -> None:
    same = [
        None if new is None else _answer(new) == _answer(call.answer) for call, new in zip(calls, answers, strict=True)
    ]
    if other := [call.request.id for call, equal in zip(calls, same, strict=True) if equal is False]:
        found.notes.append(f"another answer than before: {_some(other)}")
    failed = same.count(None)
    answered = len(same) - failed
    if answered < _LEAST_ANSWERED * len(same):
        found.notes.append(f"{failed} of {len(same)} calls, asked again at temperature 0, failed: too many to judge by")
        found.enough = False
        return
    line = f"{same.count(True)} of {answered} calls, asked again, have the same answer"
    if failed:
        line += f"; {failed} more failed"
    if same.count(True) >= _LEAST_AGREEMENT * answered:
        found.holds.append(line)
    else:
        found.differs.append(f"{line}; at temperature 0 at least {_LEAST_AGREEMENT:.0%} should")


def _compare_likelihoods(
    found: Found,
    calls: Sequence[Call],
    answers: Sequence[Completion | None],
    rows: Sequence[tuple[Rows, Rows]],
    same_engine: bool,
) -> None:
    obstacles = [obstacle(*call) for call in calls]
    why = Counter(one for one in obstacles if one is not None)
    if failed := sum(new is None and one is None for new, one in zip(answers, obstacles, strict=True)):
        why["were asked again in vain"] = failed
    pairs = [(call, *both) for call, both in zip(calls, rows, strict=True) if both[0] and both[1]]
    if (lost := len(calls) - sum(why.values()) - len(pairs)) > 0:
        why["could not be scored"] = lost
    for reason, count in why.items():
        found.notes.append(f"{count} of {len(calls)} replies cannot be compared: they {reason}")
    if short := sum(len(recorded or ()) < SHORT for _, recorded, _ in pairs):
        line = f"{short} of {len(calls)} replies are too short to tell, of fewer than {SHORT} tokens"
        found.notes.append(f"{line}: another's are found if the model hardly ever gives them")
    tested = [
        (call, ScoredReply.of(old or (), call.temperature), ScoredReply.of(new or (), call.temperature))
        for call, old, new in pairs
    ]
    if len(tested) < LEAST_REPLIES:
        found.notes.append(f"{len(tested)} replies could be compared by likelihood: too few to say anything")
        found.enough = False
        return
    result = compare([old for _, old, _ in tested], [new for *_, new in tested])
    found.enough = found.enough and len(tested) - short >= _LEAST_TESTED * len(calls)
    if not result.fits:
        line = "the model's own new replies are not as its likelihoods have them, so those of the run say nothing"
        found.notes.append(f"{line}: does the server change what it draws?")
        found.enough = False
        return
    line = f"the evidence that some of {len(tested)} replies are not the model's is {_odds(result.evidence)} to 1"
    if not result.rejects:
        found.holds.append(f"{line}; {ENOUGH:g} to 1 would be enough")
        return
    line += f", and of the model's own {_odds(result.control)} to 1"
    odd = sorted(zip(result.replies, (call.request.id for call, *_ in tested), strict=True), reverse=True)
    named = [f"{name} ({_odds(one)} to 1)" for one, name in odd if one > _ODD]
    line += f": {_some(named)}" if named else ""
    if same_engine:
        found.differs.append(line)
    else:
        found.notes.append(f"{line}; engines and models draw in different ways, so ask the run's own to be sure")
        found.enough = False


def _odds(logarithm: float) -> str:
    """A likelihood ratio in words."""
    if logarithm > 20:
        return f"10^{logarithm / math.log(10):.0f}"
    return f"{math.exp(logarithm):,.{0 if logarithm > 2 else 2}f}"


def _answer(completion: Completion) -> str:
    calls = [call.get("arguments") for call in completion.tool_calls or ()]
    return json.dumps([completion.text, completion.likelihoods, calls], sort_keys=True, default=str)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(f"{name!s:.100}" for name in names[:_NAMED]) + more
