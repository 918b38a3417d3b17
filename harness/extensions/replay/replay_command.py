"""`harness replay`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any

from harness.api.errors import DataError, Place, SpecError
from harness.api.printable import clean_name
from harness.cli import options as opt
from harness.cli.evaluate import engine_of, interrupted
from harness.cli.progress import Progress
from harness.cli.usage import Parser
from harness.config import yamls
from harness.evaluation.run import Run
from harness.runtime.options import Options

from .base_run import BaseRun
from .changes import listed
from .replay_run import ReplayRequest, count, play_again

RUNNING = ("max_concurrency", "max_calls", "max_time", "max_error_rate", "output_path", "resume", "overwrite")


def options(command: Parser) -> None:
    """The options of `harness replay`."""
    command.add_argument("run", metavar="RUN", help="the folder that `harness eval` named")
    group = command.group("what to change (default: nothing; list the turns)")
    text = "this episode; repeatable (default with --swap: all)"
    group.add_argument("--episode", action="append", default=[], metavar="E", help=text)
    text = "the reply of a turn, by its number in the episode; repeatable"
    group.add_argument("--change", action="append", default=[], metavar="TURN=TEXT", help=text)
    text = "the message of a turn, to all or to one agent, is not sent; repeatable"
    group.add_argument("--drop", action="append", default=[], metavar="TURN[:AGENT]", help=text)
    text = "another player for an agent: a policy, {use: NAME, …}, or model; repeatable"
    group.add_argument("--swap", action="append", default=[], metavar="AGENT=PLAYER", help=text)
    text = "send the prompts again from this turn on, even if they do not differ"
    group.add_argument("--from", type=opt.whole(0), metavar="TURN", dest="since", help=text)
    text = "number of the sample: each gives other seeds to prompts that are sent again"
    group.add_argument("--sample", type=opt.whole(0), metavar="N", help=text)
    add_model(command)
    opt.add(command, *RUNNING, "quiet", "allow_code_execution")


def add_model(command: Parser) -> None:
    """--model and --model_args: the model that answers prompts that differ."""
    group = command.group("model (without one, the run stops at a turn whose prompt differs)")
    group.add_argument("--model", metavar="ENGINE", help="as in `harness eval`")
    group.add_argument("--model_args", default="", metavar="K=V,…", help="the engine's arguments")


def replay(options: argparse.Namespace) -> int:
    """Play again, and print what was kept, what was asked, and what came of it."""
    wanted = wanted_of(options)
    parent = BaseRun.open(options.run)
    if not (wanted.change or wanted.drop or wanted.swap or wanted.since is not None):
        return _list(parent, wanted.episodes)
    model = engine_of(options)
    how = Options(
        **{name: getattr(options, name) for name in RUNNING}, allow_code_execution=options.allow_code_execution
    )
    try:
        with Progress(options.quiet) as bars:
            done = play_again(parent, wanted, model, how, bars.begin(f"{parent.run.spec.name} again"))
    except KeyboardInterrupt:
        return interrupted("what was played is kept")
    for line in lines(parent, done):
        print(clean_name(line))
    return 0


def lines(parent: BaseRun, done: Run) -> list[str]:
    """What the command prints: the turns, the headline before and after, and what to do next."""
    names = {score.id for score in done.scores}
    before = [score for score in parent.run.scores if score.id in names]
    values = [done.headline.cell(scores).value for scores in (before, done.scores)]
    first, second = ("no number" if value is None else f"{value:.4g}" for value in values)
    failed = [f"{score.id}: {score.error}" for score in done.scores if score.error is not None]
    problem = f"failed: {len(failed)} of {len(names)} episodes, as {failed[0]}" if failed else None
    return [
        *([f"turns: {count(parent, done)}"] if len(failed) < len(names) else []),
        *([problem] if problem is not None else []),
        f"{done.headline.title}: {first} → {second}",
        f"to compare them: {shlex.join(['harness', 'compare', str(parent.run.folder), str(done.folder)])}",
        f"results: {done.folder}",
    ]


def _list(parent: BaseRun, episodes: Sequence[str]) -> int:
    names = list(episodes)
    if len(names) != 1:
        first = ", ".join(list(parent.jobs)[:3])
        hint = f"Name one with --episode; the first are {first}." if not names else "List one at a time."
        raise DataError(
            "nothing is changed", hint=f"{hint} Or say what all episodes have otherwise: --swap AGENT=PLAYER."
        )
    parent.read(names)
    for line in listed(parent.played(names[0])):
        print(line)
    return 0


def wanted_of(options: argparse.Namespace) -> ReplayRequest:
    """What the options say. Raises `SpecError`."""
    change: dict[int, str] = {}
    for word in options.change:
        turn, equals, text = word.partition("=")
        number = _number(turn, "--change", "TURN=TEXT", word)
        if not equals:
            raise SpecError(f"found {word!r}", place=Place("--change"), hint="--change takes TURN=TEXT")
        if number in change:
            raise SpecError(f"turn {number} is changed twice", place=Place("--change"))
        change[number] = text
    drop: list[tuple[int, str | None]] = []
    for word in options.drop:
        turn, _, agent = word.partition(":")
        drop.append((_number(turn, "--drop", "TURN or TURN:AGENT", word), agent or None))
    swap: dict[str, Any] = {}
    for word in options.swap:
        agent, equals, player = word.partition("=")
        if not (equals and agent and player):
            raise SpecError(f"found {word!r}", place=Place("--swap"), hint="--swap takes AGENT=PLAYER")
        if agent in swap:
            raise SpecError(f"agent {agent!r} is swapped twice", place=Place("--swap"))
        swap[agent] = policy_of(player, "--swap")
    return ReplayRequest(tuple(dict.fromkeys(options.episode)), change, drop, swap, options.since, options.sample)


def policy_of(text: str, option: str) -> Any:
    """A policy that an option names: its name, or {use: NAME, …}. Raises `SpecError`."""
    if not text.lstrip().startswith("{"):
        return text.strip()
    value = yamls.parse(text, option).data
    if not isinstance(value, dict) or not isinstance(value.get("use"), str):
        raise SpecError(f"found {text!r}", place=Place(option), hint="A policy with parameters is {use: NAME, …}")
    return value


def _number(text: str, option: str, form: str, found: str) -> int:
    if not text.isdecimal() or not text.isascii() or len(text) > 9:
        raise SpecError(f"found {found!r:.80}", place=Place(option), hint=f"{option} takes {form}; TURN is a number")
    return int(text)
