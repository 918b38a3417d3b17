"""`harness eval`."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.api import Engine
from harness.api.errors import NotPreparedError, Place, SpecError
from harness.cli import INTERRUPTED
from harness.cli.output import print_tables
from harness.cli.progress import Progress
from harness.config import building, resolve, spec, yamls
from harness.config.building import Plugins
from harness.config.plan import Plan
from harness.config.project import find
from harness.config.proposals import complete
from harness.engines.sampling import SYNONYMS, normalize
from harness.evaluation import post_run
from harness.evaluation.stages import execute
from harness.plugins.lookup import part
from harness.runtime.options import NAMES, Options
from harness.runtime.run_json import default_folder
from harness.runtime.session import session
from harness.runtime.stopping import StoppingRule


def evaluate(options: argparse.Namespace) -> int:
    """Run the specs, print their tables, say where the results are. Several are played one after another, with an
    engine that stays up, and one table of all of them ends the command."""
    names = [name for given in options.specs for name in _names(given)]
    single = [argparse.Namespace(**{**vars(options), "spec": name}) for name in names]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise SpecError(f"{twice[0]!r} is given twice", place=Place("--spec"), hint="Name each spec once.")
    if len(single) == 1:
        return evaluate_one(single[0], planned(single[0]))[0]
    board = part("board", "several specs in one command")
    plans = [planned(one) for one in single]  # mistakes of all come before the first call
    folders, worst = list[Path](), 0
    with session():
        for one, plan in zip(single, plans, strict=True):
            code, folder = evaluate_one(one, plan, several=True)
            if folder is None:
                return code
            folders, worst = [*folders, folder], max(worst, code)
    board(folders, options.format)
    return worst


def _names(given: str) -> list[str]:
    """The specs in a word of --spec: a file, or names and files with commas between."""
    if Path(given).is_file():
        return [given]
    if not all(names := [name.strip() for name in given.split(",")]):
        raise SpecError(f"found {given!r}", place=Place("--spec"), hint="--spec takes a spec, or several: a,b")
    return names


def planned(options: argparse.Namespace) -> Plan:
    """What is to be played. Raises `SpecError`, `PluginError`."""
    plugins = Plugins(find())
    plan = resolve.plan(load(options, plugins=plugins), plugins.project, engine_of(options), plugins)
    check_gen_kwargs(options, plan)
    return plan


def evaluate_one(options: argparse.Namespace, plan: Plan, several: bool = False) -> tuple[int, Path | None]:
    """Run one of the specs; returns the exit code, and its folder (None: Ctrl-C). `several`: it is one of several."""
    asked = post_run.asked_for(find(), vars(options))
    how = running(options)
    if how.output_path is not None and several:
        folder = how.output_path / default_folder(plan, overwrite=True).name
    else:
        folder = how.output_path or default_folder(plan, how.overwrite)
    for line in () if options.quiet else plan.inputs():
        print(line, file=sys.stderr)
    people = [engine for engine in plan.engines.values() if engine.asks_people]
    if people and not options.quiet:
        print(people[0].announcement(plan, options.limit), file=sys.stderr)
    progress = Progress(options.quiet, lines=any(getattr(one, "asks_people", False) for one in asked.values()))
    on_score = progress.begin(f"{plan.spec.name} · {plan.model}", lines=bool(people))
    try:
        with progress:
            how = replace(how, output_path=folder)
            done = execute(plan, how, on_score, asked_for=asked, on_more=progress.begin)
    except NotPreparedError as error:
        error.advise(options)
        raise
    except KeyboardInterrupt:
        played, *more = progress.counts
        there = f"{played.done} of {played.total} episodes are in {folder}"
        for one in (one for one in more if one.done < one.total):  # of what follows the episodes
            there += f"; {one.title}: {one.done} of {one.total} are there, {one.total - one.done} are missing"
        return interrupted(there if folder.exists() else "nothing was run"), None
    only_board = several and options.format not in ("text", "markdown")  # several documents would be none
    print_tables(done, options, tables_too=not only_board)
    for rule in asked.values():
        if isinstance(rule, StoppingRule) and (end := rule.reached or rule.unmet()):
            print(end, file=sys.stderr)
    return int(bool(done.scores) and len(done.failed) == len(done.scores)), folder


def interrupted(text: str) -> int:
    """Say how to continue after Ctrl-C; returns the exit code."""
    print(f"\nstopped; {text}. To go on:", file=sys.stderr)
    print(f"  {shlex.join(['harness', *sys.argv[1:]])}", file=sys.stderr)
    return INTERRUPTED


def check_gen_kwargs(options: argparse.Namespace, plan: Plan) -> None:
    """Raises `SpecError` if --gen_kwargs would change nothing."""
    if options.gen_kwargs and not plan.engines:
        hint = "Give --model, or leave --gen_kwargs out."
        raise SpecError("no model plays, every agent has a policy", place=Place("--gen_kwargs"), hint=hint)


def running(options: argparse.Namespace) -> Options:
    """The options of the run that the flags give."""
    flags = {name: getattr(options, name) for name in NAMES}
    return Options(**{**flags, "executor": executor(options)})


def executor(options: argparse.Namespace) -> dict[str, Any] | None:
    """What --executor and --executor_args say; None for what the spec says."""
    arguments = pairs(options.executor_args, "--executor_args")
    if options.executor is None and arguments:
        raise SpecError("--executor_args without --executor", hint="Say where to run: --executor NAME")
    return None if options.executor is None else {"use": options.executor, **arguments}


def engine_of(options: argparse.Namespace) -> Engine | None:
    """The engine that --model and --model_args name; None without. Raises `SpecError`, `PluginError`."""
    arguments = pairs(options.model_args, "--model_args")
    if options.model is None:
        if arguments:
            raise SpecError("--model_args without --model", hint="Say which engine: --model vllm, --model openai, …")
        return None

    def place(*path: Hashable) -> Place:
        return Place("--model" if path in ((), ("use",)) else "--model_args")

    return building.engine({"use": options.model, **arguments}, find(), place)


def load(options: argparse.Namespace, proposals: bool = True, plugins: Plugins | None = None) -> spec.Spec:
    """The spec that the options name, with their changes; `proposals`: and what its task, of `plugins`, proposes."""
    overrides = list(options.overrides)
    if options.data_dir:
        overrides.append(f"task.data_dir={options.data_dir}")
    changes = pairs(getattr(options, "gen_kwargs", ""), "--gen_kwargs")
    keys = {"limit": options.limit, "seed": options.seed, "repeats": getattr(options, "repeats", None)}
    project = find()
    loaded = spec.load(options.spec, project, overrides, **keys)
    loaded = complete(loaded, project, plugins) if proposals else loaded
    if changes:
        # One vocabulary first, so that max_gen_toks=8 here replaces max_tokens: 512 there.
        words = {**normalize(loaded.get("generation_kwargs", {})), **normalize(changes)}
        without = {SYNONYMS.get(name, name) for name, value in changes.items() if value is None}
        loaded.data["generation_kwargs"] = {name: value for name, value in words.items() if name not in without}
    return loaded


def pairs(text: str, flag: str) -> dict[str, Any]:
    """`a=1,b=[x,y],c={d: 2}` → a dict; values are YAML, so numbers are numbers. Raises `SpecError`.

    Without braces or quotes `ACTION: Call` is a text, as it would be beside other keys of a line.
    """
    values: dict[str, Any] = {}
    for pair in _split(text):
        key, equals, value = pair.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][\w.]*", key.strip()):
            raise SpecError(f"found {pair!r}", place=Place(flag), hint=f"{flag} takes key=value,key=value")
        is_text = ": " in value and value.lstrip()[0] not in "\"'[{"
        values[key.strip()] = value.strip() if is_text or not value else yamls.parse(value, flag).data
    return values


def _split(text: str) -> list[str]:
    """Split at commas that are not inside brackets, braces or quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part for part in (*parts, text[start:]) if part.strip()]
