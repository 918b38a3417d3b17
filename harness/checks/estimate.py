"""What a plan will ask for, before anything is asked: episodes, an upper bound of calls, a guess at tokens."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.api import Action, CallsModels, Case, Completion, Policy, Reply, Turn
from harness.api.errors import PluginError
from harness.api.printable import clean_name
from harness.config.plan import Condition, Plan
from harness.config.prompts import PromptSet
from harness.config.user_prices import prices_of
from harness.engines.likelihoods import Likelihoods, likelihoods_of
from harness.replies.parse_guard import read_completion
from harness.runtime.steps import Drive, Steps, drive
from harness.tables.cost import Price, usd_digits

CHARS_PER_TOKEN = 4
MAX_PRICES = 12
"""Models of whose costs there is a line."""
REPLY_TOKENS = 256


@dataclass(frozen=True)
class Estimate:
    """Figures for a whole plan.

    Attributes:
        conditions, episodes: exact, those of conditions that are not known yet too.
        turns: model turns if every episode lasts as long as it, and the spec's limits of calls, allow.
        calls: `turns` with every repair used: an upper bound.
        input_tokens, output_tokens: a guess, with whole conversations sent at every turn, no parse retries,
            `REPLY_TOKENS` (or max_tokens) a reply and four characters a token; a scored turn has no reply.
        most_input_tokens, most_output_tokens: the same with every call of `calls` made, and replies of max_tokens where
            the spec has it.
        max_tokens: the largest of the replies in the spec, 0 without replies; None where some may have any length.
    """

    conditions: int
    episodes: int
    turns: int
    calls: int
    input_tokens: int
    output_tokens: int
    most_input_tokens: int
    most_output_tokens: int
    max_tokens: int | None = None

    @property
    def effort(self) -> str:
        """What precedes the scores: the least number of model calls, in words."""
        return f", after {self.turns:,} model calls or more"

    def calls_in_words(self, plan: Plan) -> list[str]:
        """Lines on the model calls, those of agents' programs, and one on what they do not know of games."""
        inner = sorted(_seated(plan) & plan.inner.keys())
        own = estimate(plan, _seated(plan) - {*inner}) if inner else self
        lines = (
            [f"model calls     {own.turns:,} without retries, at most {own.calls:,}"] if own.calls or not inner else []
        )
        for name in inner:
            turns, most, whose = estimate(plan, {name}).turns, _calls_a_turn(plan, name), _whose(name)
            model = clean_name(plan.engines[plan.inner[name]].model)
            often = f"as often as they like in {turns:,} turns" if most is None else f"at most {turns * most:,} times"
            lines.append(f"inner calls     {whose} ask {model} {often}")
        if any(condition.task.ordinary() is not None for condition in plan.conditions):
            lines.append("                (of agents that play at random: models play longer or shorter)")
        return lines

    def tokens_in_words(self, plan: Plan) -> list[str]:
        """A line on the tokens, one on how good a guess that is, and those on the cost."""
        once = "; one call a turn where programs call a model" if _seated(plan) & plan.inner.keys() else ""
        size = f"{REPLY_TOKENS}-token replies at most"
        if self.max_tokens is None:
            size = f"{REPLY_TOKENS}-token replies, which no max_tokens bounds"
        return [
            f"tokens          about {self.input_tokens:,} in, {self.output_tokens:,} out",
            f"                (a guess: {size}, 4 characters a token{once})",
            *self._cost_in_words(plan),
        ]

    def cost(self, price: Price) -> float:
        """USD, if one model reads and writes all of the tokens."""
        return (price.micros("input", self.input_tokens) + price.micros("output", self.output_tokens)) / 1e6

    def most(self, price: Price) -> float:
        """USD with every retry used, and replies of max_tokens where the spec has it."""
        tokens = {"input": self.most_input_tokens, "output": self.most_output_tokens}
        return sum(price.micros(kind, count) for kind, count in tokens.items()) / 1e6

    def _cost_in_words(self, plan: Plan) -> Iterator[str]:
        prices = prices_of(plan.spec.data)
        seated = _seated(plan)
        named, used = sorted(seated - {"model"}), set[str]()
        if not prices:
            return
        for name in named:
            model, whose = plan.engines[plan.inner.get(name, name)].model, _whose(name)
            calls = _calls_a_turn(plan, name) if name in plan.inner else 1
            used.add(model)
            if (price := prices.get(model)) is None:
                yield f"cost            not known for {whose}: no price for {clean_name(model)}"
            elif calls is None:
                yield f"cost            not known for {whose}: they ask {clean_name(model)} as often as they like"
            else:
                each = f", with {calls:,} calls of {clean_name(model)} a turn" if name in plan.inner else ""
                yield estimate(plan, {name})._cost_line(f"for {whose}{each}", price, calls, name in plan.inner)
        if named and "model" not in seated:
            return
        own = estimate(plan, {"model"}) if named else self
        others = " in the other seats" if named else ""
        rest = [(model, price) for model, price in prices.items() if model not in used]
        for model, price in rest[:MAX_PRICES]:
            yield own._cost_line(f"with {clean_name(model)}{others}", price)
        if len(rest) > MAX_PRICES:
            yield f"                ({len(rest) - MAX_PRICES} more models have a price)"

    def _cost_line(self, whose: str, price: Price, times: int = 1, inner: bool = False) -> str:
        low, high = times * self.cost(price), times * self.most(price)
        digits = usd_digits(min(filter(None, (low, high)), default=1.0))
        long = "replies of max_tokens" if self.max_tokens is not None and self.max_tokens > REPLY_TOKENS else None
        again = "every retry" if self.calls > self.turns else None
        shown = high > low and not inner  # calls of a turn are as many with its retries
        more = f", about ${high:,.{digits}f} with {' and '.join(filter(None, (again, long)))}" if shown else ""
        return f"cost            about ${low:,.{digits}f} {whose}{more} (USD per million tokens: {price})"


def _seated(plan: Plan) -> set[str]:
    """Names of the models that play."""
    return {group.model or "model" for c in plan.conditions for group in c.groups if group.policy is None}


def _whose(name: str) -> str:
    return f"the seats of {clean_name(name)}"


def _calls_a_turn(plan: Plan, name: str) -> int | None:
    """How many calls a turn of an agent's program may make, with its retries; None without a limit."""
    engine = plan.engines[name]
    most = engine.inner_limits.get("turn", {}).get("calls") if isinstance(engine, CallsModels) else None
    return None if most is None else math.ceil(most)


@dataclass(frozen=True)
class _Length:
    """What one case asks of models where all agents are idle, or of one mind each.

    `count` is the number of turns, `turns` are those of up to four agents, `later` the tokens of those within a
    conversation, and of the message that asks again: (id of the prompt set, agent, number of the turn) → tokens.
    `replies` is the number of turns in which something is written.
    """

    count: int
    calls: int
    replies: int
    turns: Mapping[str, Sequence[Turn]]
    later: dict[tuple[int, str, int], tuple[int, int]] = field(default_factory=dict)


class _Estimator:
    """Plays a case for every length there is, and remembers it: `Protocol.shape` says which cases are alike."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._lengths: dict[Hashable, _Length] = {}

    def length(self, condition: Condition, case: Case) -> _Length:
        """What the case, with its agents in groups, asks of models."""
        has_policies = self.plan.engines and any(group.policy is not None for group in condition.groups)
        agents = condition.protocol.possible_agents(case) if has_policies else ()
        spared = frozenset(agent for agent in agents if condition.group_of(case, agent).policy is not None)
        shape = condition.protocol.shape(condition.task, case)
        if shape is None and condition.base is not None:  # idle, all contestants play a case alike
            shape = (id(condition.task), case.id)
        key = (id(condition.protocol), shape, spared, condition.limits)
        if shape is not None and key in self._lengths:
            return self._lengths[key]
        try:
            driven = _longest(condition, case)
        except (RuntimeError, TypeError) as error:
            raise PluginError(f"{condition.id}: the plan cannot be counted: {error}") from error
        turns = [turn for turn in driven.turns() if turn.agent not in spared]
        demands = [1 + (turn.parse_retries if turn.reply.ability is None else 0) for turn in turns]
        limits = condition.limits
        allowed, calls = (turns, sum(demands)) if limits is None else limits.within(turns, demands)
        few = {turn.agent: [t for t in allowed if t.agent == turn.agent] for turn in allowed[:4]}
        replies = sum(turn.reply.ability is None for turn in allowed)
        length = _Length(len(allowed), calls, replies, few)
        if shape is not None:
            self._lengths[key] = length
        return length

    def input_tokens(
        self, condition: Condition, case: Case, length: _Length, reply: int, longest: int
    ) -> tuple[float, float]:
        """Mean input tokens a turn, for replies of a length; and a call, for the longest replies and every retry, all
        of which stay in the thread. What agents know from the start is this case's own, the rest any such case's."""
        with Steps(condition.protocol, condition.task, case, random.Random(0)) as game:
            contexts = {turn.agent: turn.context for turn in game.batch or ()}
        total = most = turns_read = calls = 0
        allowed = condition.limits.calls_per_agent if condition.limits is not None else None
        for agent, turns in length.turns.items():
            prompts = condition.group_of(case, agent).prompts
            thread = long = 0
            left = math.inf if allowed is None else allowed
            for i, turn in enumerate(turns):
                if turn.fresh:
                    thread = long = 0
                opens, added = i == 0 or turn.fresh, 0
                if opens:
                    turn = replace(turn, context={**turn.context, **contexts.get(agent, {})})
                    added += sum(_tokens(message["content"]) for message in prompts.opening(turn.context))
                    if tools := prompts.tools(turn.reply.tools, turn.context):
                        added += _tokens(json.dumps(tools))
                retries = turn.parse_retries if turn.reply.ability is None else 0
                key, variables = (id(prompts), agent, i), {**turn.context, **turn.observation}
                if opens or key not in length.later:
                    own = _tokens(prompts.render(turn.name, variables) + prompts.beginning(variables))
                    length.later[key] = own, _retry(prompts, turn.reply, variables, longest) if retries else 0
                asked, again = length.later[key]
                scored = likelihoods_of(turn.reply)
                # Idle agents send nothing; a model's agent reads about as much as it writes.
                reads = i and not turn.fresh
                thread += added + asked + (reply if reads else 0)
                long += added + asked + (longest if reads else 0)
                total += thread if scored is None else _scored(scored, thread)
                thread += reply if scored is None else 1
                turns_read += 1
                for attempt in range(int(min(left, 1 + retries))):
                    long += again if attempt else 0
                    most += long if scored is None else _scored(scored, long)
                    long += longest if scored is None else 1
                    left, calls = left - 1, calls + 1
        return total / turns_read if turns_read else 0.0, most / calls if calls else 0.0


def _retry(prompts: PromptSet, form: Reply, variables: Mapping[str, Any], longest: int) -> int:
    """Tokens of the message that asks again for a reply."""
    text = "x" * CHARS_PER_TOKEN * min(longest, REPLY_TOKENS)
    parsed = read_completion(form, Completion(text, "length", output_tokens=longest))
    return _tokens(prompts.render("retry", {**variables, "error": parsed.error or ""}))


def _longest(condition: Condition, case: Case) -> Drive:
    """An episode of idle agents; of a panel also one in which all answers differ, if it is longer: with nothing to
    choose from there is no ballot. Of a game, one of ordinary players: idle ones may end it at once."""
    if (ordinary := condition.task.ordinary()) is not None:
        return drive(condition.protocol, condition.task, case, ordinary)
    idle = drive(condition.protocol, condition.task, case)
    if not condition.protocol.longer_in_dispute:
        return idle
    numbers: dict[str, int] = {}

    def differs(turn: Turn) -> Action:
        number = numbers.setdefault(turn.agent, len(numbers))
        options = turn.reply.options
        answers = (options[number % len(options)],) if options else (number, str(number))
        return next((answer for answer in answers if turn.reply.allows(answer)), turn.reply.noop)

    odds = drive(condition.protocol, condition.task, case, differs)
    return max(idle, odds, key=lambda one: sum(map(len, one.batches)))


def _tokens(text: str) -> int:
    return len(text) // CHARS_PER_TOKEN


def _scored(form: Likelihoods, thread: int) -> int:
    """Tokens of a scored turn's prompts, one for each text, in a conversation of so many tokens."""
    total = 0
    for one in form.continuations:
        messages = [{"content": one.context}] if isinstance(one.context, str) else one.context or ()
        context = thread if one.context is None else sum(_tokens(message["content"]) for message in messages)
        total += _tokens(one.text) + (0 if form.rolling else context)
    return total


def estimate(plan: Plan, models: Collection[str] | None = None) -> Estimate:
    """Play a case of every length with idle agents and count what a model in every agent would be asked.

    `models` counts only what is asked of these, by their names in the plan.
    """
    if models is not None:
        plan = replace(plan, conditions=tuple(_asking(condition, models) for condition in plan.conditions))
    episodes = turns = calls = replies = most_replies = tokens = most_tokens = 0
    limits: set[int | None] = set()
    estimator = _Estimator(plan)
    for conditions in _by_task(plan.conditions):
        per_turn: dict[str, tuple[float, float]] = {}
        for case, repeats in plan.cases(conditions[0]):
            for condition in conditions:
                assigned = condition.assign_groups(case, plan.seed)
                length = estimator.length(condition, assigned)
                limit = _max_tokens(condition)
                if length.replies:
                    limits.add(limit)
                longest = REPLY_TOKENS if limit is None else limit
                reply = min(REPLY_TOKENS, longest)
                if condition.id not in per_turn:
                    # One case stands for its condition: rendering all would take as long as a run.
                    per_turn[condition.id] = estimator.input_tokens(condition, assigned, length, reply, longest)
                mean, most = per_turn[condition.id]
                again = max(0, length.calls - length.count)
                episodes += repeats
                turns += repeats * length.count
                calls += repeats * length.calls
                replies += repeats * length.replies * reply
                most_replies += repeats * (length.replies + again) * longest
                tokens += int(repeats * length.count * mean)
                most_tokens += int(repeats * length.calls * most)
    grows = any(condition.drawn is not None for condition in plan.conditions)  # the same conditions, by more episodes
    count = len(plan.conditions) if grows else plan.in_all(len(plan.conditions))
    figures = (episodes, turns, calls, tokens, replies, most_tokens, most_replies)
    whole = None if None in limits else max(filter(None, limits), default=0)
    return replace(Estimate(count, *map(plan.in_all, figures)), max_tokens=whole)


def _max_tokens(condition: Condition) -> int | None:
    """The most tokens of a model's reply; None if a group has no such limit."""
    limits = [group.sampling.get("max_tokens") for group in condition.groups if group.policy is None]
    return max((one for one in limits if isinstance(one, int)), default=None) if all(limits) else None


def _asking(condition: Condition, models: Collection[str]) -> Condition:
    """The condition, with a policy in every group that none of these models plays."""
    played = [group.policy is None and (group.model or "model") in models for group in condition.groups]
    groups = zip(condition.groups, played, strict=True)
    return replace(condition, groups=tuple(g if own else replace(g, policy=_no_policy) for g, own in groups))


def _no_policy() -> Policy:
    raise TypeError("an estimate plays no policy")


def _by_task(conditions: Iterable[Condition]) -> Iterable[list[Condition]]:
    """Conditions with the same task together: its cases are drawn once for all of them."""
    groups: dict[Hashable, list[Condition]] = {}
    for condition in conditions:
        groups.setdefault((id(condition.task), condition.games, condition.drawn), []).append(condition)
    return groups.values()
