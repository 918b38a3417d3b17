"""`harness blame`."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.api.errors import DataError, Place, SpecError
from harness.api.run_files import ERRORS
from harness.cli import options as opt
from harness.cli.evaluate import engine_of
from harness.cli.output import show, write
from harness.cli.progress import Progress
from harness.cli.usage import Parser
from harness.evaluation.load_run import load_run
from harness.extensions.replay.replay_command import add_model, policy_of
from harness.extensions.replay.simulation import Deviation

from .blame import blamed, planned
from .blame_tables import WAYS, Blame, of_episodes
from .blame_verdict import BlameVerdict
from .findings import keep
from .opinions import opinion_table, opinions_json, read_opinions

_MAX_SHOWN_EPISODES = 20


def options(command: Parser) -> None:
    """The options of `harness blame`."""
    command.add_argument("run", metavar="RUN", help="the folder that `harness eval` named")
    group = command.group("what to explain")
    text = "this episode; repeatable (default: all that failed)"
    group.add_argument("--episode", action="append", default=[], metavar="E", help=text)
    group.add_argument("--limit", type=opt.whole(1), metavar="N", help="a sample of at most N episodes that failed")
    group.add_argument("--metric", metavar="NAME", help="the metric whose number to explain (default: the headline's)")
    text = "which way that number is better: higher or lower (default: as the headline or the metric says)"
    group.add_argument("--better", choices=("higher", "lower"), help=text)
    text = "an episode failed if its number is worse than X (default: than the best there is, or than the reference's)"
    group.add_argument("--threshold", type=_finite, metavar="X", help=text)
    group = command.group("how")
    text = "the policy whose moves replace others (default: the ceiling of the spec's headline), or model"
    group.add_argument("--reference", metavar="POLICY", help=text)
    text = "with --reference model: take other seeds, of this number (0)"
    group.add_argument("--sample", type=opt.whole(0), default=0, metavar="N", help=text)
    text = "with --reference model: N samples from that number on; their means, and how far they are apart (1)"
    group.add_argument("--samples", type=opt.whole(1), default=1, metavar="N", help=text)
    group.add_argument("--messages", action="store_true", help="also test the effect of each message, by dropping it")
    text = "opinions to compare with: a CSV or JSONL file (episode, agent, turn, rater), or a run of who_broke_it"
    group.add_argument("--labels", metavar="FILE", help=text)
    text = "try at most N single moves of an episode (200)"
    group.add_argument("--moves", type=opt.whole(1), default=200, metavar="N", help=text)
    text = "orders of agents to sample shares from, if many agents deviate (32)"
    group.add_argument("--permutations", type=opt.whole(2), default=32, metavar="N", help=text)
    add_model(command)
    limits = command.group("limits")
    opt.add(command, "max_calls")
    text = "only say how many replays and calls of models this takes; nothing is asked"
    limits.add_argument("--plan", action="store_true", help=text)
    opt.add(command, "format", "output")
    text = f"count by {', '.join(WAYS)} only; repeatable (default: by all in which something may differ)"
    command.group("output").add_argument("--by", action="append", choices=WAYS, default=[], help=text)
    command.group("output").add_argument("--quiet", action="store_true", help="no progress")
    opt.add(command, "allow_code_execution", "sandbox")


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a number, found {text!r:.40}")
    return number


def blame(options: argparse.Namespace) -> int:
    """Find out, and print tables; as JSON all that is known of each episode."""
    if options.episode and (options.limit is not None or options.threshold is not None):
        hint = "Leave --limit and --threshold out: they choose episodes where none is named."
        raise SpecError("the episodes to look at are named", place=Place("--episode"), hint=hint)
    if options.plan:
        unused = {"labels": "compares nothing", "max_calls": "makes no calls", "model": "asks no model"}
        for name, why in unused.items():
            if getattr(options, name) is not None:
                hint = f"Leave one of them out: --plan {why}, and only says how much there is to play."
                raise SpecError("is of no use with --plan", place=Place(f"--{name}"), hint=hint)
        return _plan(options)
    opinions = []
    if options.labels is not None:  # before anything is played: a mistake in the file must not cost the results
        opinions = read_opinions(Path(options.labels), {score.id for score in load_run(options.run).scores})
    with Progress(options.quiet) as bars:
        bars.begin("blame")

        def on_verdict(verdict: BlameVerdict | None, total: int) -> None:
            bars.advance(None if verdict is None else False, total)

        found = blamed(
            options.run,
            options.reference and policy_of(options.reference, "--reference"),
            **_choices(options),
            model=engine_of(options),
            max_calls=options.max_calls,
            on_verdict=on_verdict,
        )
    if found.remaining:
        left = f"{of_episodes(found.remaining)} {'is' if found.remaining == 1 else 'are'} left"
        print(f"max_calls {options.max_calls} is reached: {left}", file=sys.stderr)
    if len(found.samples) < options.samples:
        print(f"max_calls {options.max_calls} is reached: {len(found.samples)} samples are complete", file=sys.stderr)
    if not found.verdicts and options.format in ("text", "markdown"):
        less = f": with {found.by} in all seats none of {found.passed} has a better {found.metric}"
        none = f"No episode failed{less if found.passed else ''}. There is nothing to explain."
        if found.raised is not None:
            errors = shlex.quote(str(found.run.folder / ERRORS))
            none = f"No episode with an outcome failed. {found.raised}\n{errors} has the tracebacks."
        write("No verdict was reached." if found.remaining else none, options.output)
        return 0
    try:
        keep(found.run.folder, *(as_json(sample) for sample in reversed(found.samples)))  # the first one counts
    except (OSError, DataError) as error:
        print(f"the viewer and exports will not know of it: {error}", file=sys.stderr)
    if options.format == "json":
        more = {"opinions": opinions_json(found, opinions)} if opinions else {}
        write(json.dumps({**as_json(found), **more}, indent=1) + "\n", options.output)
        return 0
    compared = [opinion_table(found, opinions)] if opinions else []
    found = replace(found, ways=tuple(dict.fromkeys(options.by)))
    shown = found.episodes
    tables = [*compared, *found.tables, shown] if len(shown.rows) <= _MAX_SHOWN_EPISODES else [*compared, *found.tables]
    show(tables, options.format, f"What made {found.run.spec.name} fail", options.output)
    return 0


def _choices(options: argparse.Namespace) -> dict[str, Any]:
    """What `blamed` and `planned` take alike."""
    names = (
        "limit",
        "metric",
        "better",
        "threshold",
        "moves",
        "permutations",
        "messages",
        "sample",
        "samples",
        "allow_code_execution",
        "sandbox",
    )
    return {"episodes": options.episode, **{name: getattr(options, name) for name in names}}


def _plan(options: argparse.Namespace) -> int:
    """Print how much there is to play."""
    with Progress(options.quiet):
        plan = planned(
            options.run,
            options.reference and policy_of(options.reference, "--reference"),
            **_choices(options),
        )
    if options.format == "json":
        write(json.dumps(asdict(plan), indent=1) + "\n", options.output)
        return 0
    moves = f"{plan.deviations:,} move{'s' * (plan.deviations != 1)}"
    lines = [
        f"{of_episodes(plan.episodes)}, {moves} that the reference would not have made",
        f"replays: about {plan.replays:,}, at most {plan.most_replays:,} if episodes do not become longer",
        f"calls of models: about {plan.calls:,}, at most {plan.most_calls:,} if episodes do not become longer",
    ]
    if plan.most_calls:
        lines.append(
            "Prompts that stay the same are not asked again. --max_calls N bounds it, --limit N takes a sample."
        )
    write("\n".join(lines) + "\n", options.output)
    return 0


def as_json(found: Blame) -> dict[str, Any]:
    """All that is known, as plain data."""
    return {
        "run": str(found.run.meta["run"]),
        "metric": found.metric,
        "by": found.by,
        "policy": found.policy,
        "asked": found.asked,
        "passed": found.passed,
        "raised": len(found.errors),
        "left": found.remaining,
        "episodes": [_episode(one, found) for one in found.verdicts],
        **({"further_samples": [as_json(one) for one in found.further]} if found.further else {}),
    }


def _episode(one: BlameVerdict, found: Blame) -> dict[str, Any]:
    def number(value: Any) -> float | None:
        return None if value is None else float(value)

    def player(agent: str) -> str | None:
        known = found.players.get(one.episode, {}).get(agent)
        return None if known is None else known.name

    def turn(move: Deviation) -> dict[str, Any]:
        return {"turn": move.number, "round": move.round, "agent": move.place[0], "index": move.place[1]}

    def decisive(move: Deviation) -> dict[str, Any]:
        agent = move.place[0]
        return {**turn(move), "template": move.turn, "group": found.roles[one.episode][agent], "model": player(agent)}

    return {
        "episode": one.episode,
        "finding": one.finding,
        "value": number(one.value),
        "reference": number(one.reference),
        "decisive": [decisive(move) for move in one.named],
        "alone": one.single,
        "last_chance": one.last_chance,
        "effects": [{**turn(effect.deviation), "effect": number(effect.value)} for effect in one.effects],
        "shares": {
            agent: {
                "share": number(share.value),
                "interval": None if share.low is None else [share.low, share.high],
                "alone": number(share.alone),
                "last": number(share.last),
                "group": found.roles[one.episode][agent],
                "model": player(agent),
            }
            for agent, share in one.shares.items()
        },
        "messages": {str(key): number(value) for key, value in one.messages.items()},
        "courses": one.courses,
        "problem": one.problem,
    }
