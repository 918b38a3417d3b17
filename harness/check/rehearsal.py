"""Rehearsal of policies in YAML: an episode of every condition, for what only turns can say about expressions."""

from __future__ import annotations

from collections.abc import Iterator

from harness.api import Move, Policy, Turn, derive_seed
from harness.config.plan import Condition, Plan
from harness.errors import Place, UserError
from harness.expressions import Expression
from harness.runtime.players import PolicyPlayer

from .conformance import drive


def rehearse(plan: Plan, place: Place | None = None) -> Iterator[UserError]:
    """Yield what is wrong with the plan's policies whose parameters are expressions, each mistake once.

    Which names they may use depends on the task and the protocol, so every condition plays its example case. A mistake
    that knows no place of its own stands at `place`.
    """
    messages: set[str] = set()
    for condition in plan.conditions:
        if not any(group.policy is not None and _has_expressions(group.policy()) for group in condition.groups):
            continue
        try:
            _play(condition, plan)
        except UserError as error:
            if error.message not in messages:
                messages.add(error.message)
                yield type(error)(error.message, place=error.place or place, hint=error.hint)
        except Exception:  # what else fails is for `examine` and for the run, which name the plugin's line
            continue


def _has_expressions(policy: Policy) -> bool:
    values = vars(policy).values()
    inner = (one for value in values for one in (value.values() if isinstance(value, dict) else [value]))
    return any(isinstance(value, Expression) for value in inner)


def _play(condition: Condition, plan: Plan) -> None:
    case = condition.assign_groups(condition.task.example(), plan.seed)
    players: dict[str, PolicyPlayer] = {}

    def choose(turn: Turn) -> Move:
        group = condition.group_of(case, turn.agent)
        if group.policy is None:
            return Move(turn.agent, turn.name, turn.reply.noop)
        if turn.agent not in players:
            seed = derive_seed(plan.seed, "rehearsal", turn.agent)
            players[turn.agent] = PolicyPlayer(lambda: group.make_policy(turn.agent, case, seed), seed)
        return players[turn.agent].decide(turn)

    drive(condition.protocol, condition.task, case, lambda turn: choose(turn).action, plan.seed)
