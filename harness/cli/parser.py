"""Every command and every flag in one place. Imports next to nothing of the harness, so that `--help` is instant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from harness import __version__
from harness.cli.examples import ending
from harness.cli.usage import Parser
from harness.runtime.options import NAMES, Options

KINDS = {
    "tasks": "cases, and how answers are graded",
    "protocols": "which agent acts when, and what it observes",
    "channels": "how messages of agents reach other agents",
    "policies": "scripted agents",
    "prompts": "sets of templates",
    "metrics": "what is measured in an episode",
    "engines": "sources of replies: models in this process, servers, stand-ins",
    "views": "how the viewer draws an episode",
    "specs": "experiments, ready to run",
}
CHARTS = {
    "scaling": "the headline against the size of the group",
    "pareto": "tokens or USD against the headline",
    "failures": "how episodes ended",
    "tokens": "tokens of input and output",
    "heatmap": "who sent how much to whom",
    "network": "an episode's network with final answers",
    "calibration": "stated confidence against right answers",
}
JUDGING = (
    *("max_concurrency", "max_calls", "max_tokens_total", "max_time", "use_cache", "log_samples", "log_requests"),
    *("one_engine_at_a_time", "max_error_rate", "overwrite"),
)
"""The options of a run that a judge of a finished run takes."""
LIMITS = ("max_calls", "max_tokens_total", "max_time", "max_error_rate", "max_concurrency")
OUTPUT = ("output_path", "resume", "overwrite", "log_samples", "log_requests")
"""Options of a run by their group in `--help`; the rest stands under `more`."""
EXPORTS = ("parquet", "csv", "jsonl", "inspect", "lm_eval", "hub", "wandb")
FORMATS = ("text", "markdown", "csv", "latex", "json", "html")
OF_TABLES = f"of tables: {', '.join(FORMATS)} (default: text)"


def parser() -> argparse.ArgumentParser:
    """The whole command line. Each command names its function as `module:function` below `harness.cli`."""
    top = Parser(
        prog="harness",
        usage="harness COMMAND [options]",
        description="Evaluate groups of language models from YAML specs.",
        epilog=f"`harness COMMAND --help` says more of each.\n\n{ending('eval')}",
    )
    more = top.group("options")
    _help(more)
    more.add_argument("--version", action="version", version=f"harness {__version__}", help="print the version")
    commands = top.add_subparsers(
        title="commands", required=True, metavar="COMMAND", prog="harness", parser_class=Parser
    )

    run = _command(commands, "eval", "evaluate:evaluate", "run a spec and print its tables", "--spec FILE")
    _spec(run)
    _model(run)
    _judge(run.group("judge (without one, those that the spec's metrics name)"))
    _running(run)
    _format(run)

    fit = _command(
        commands, "fit", "fit:fit", "estimate a protocol's parameters on the spec's calibration rows", "--spec FILE"
    )
    _spec(fit, repeats=False)
    _model(fit)
    _running(fit)

    check = _command(commands, "validate", "inspect:validate", "check specs without running anything", "[SPEC …]")
    check.add_argument("specs", nargs="*", metavar="SPEC", help="files or names (default: every spec of the project)")
    check.add_argument("--spec", action="append", default=[], dest="more", metavar="SPEC", help="the same")
    _set(check)
    _leave(check)

    plan = _command(
        commands, "plan", "inspect:plan", "say how many episodes, calls and tokens a spec will take", "--spec FILE"
    )
    _spec(plan)
    _leave(plan)

    show = _command(
        commands, "show", "show:show", "print the resolved spec, or the exact prompt of a turn", "--spec FILE"
    )
    _spec(show)
    show.add_argument("--condition", metavar="ID", help="which condition (default: the first)")
    show.add_argument("--case", metavar="ID", help="show prompts of this case: its id or its number from 0")
    show.add_argument("--repeat", type=int, metavar="N", help="which repeat of the case, from 0 (default: 0)")
    show.add_argument("--agent", metavar="NAME", help="whose prompts (default: the first agent)")
    show.add_argument("--round", type=int, metavar="N", help="up to the agent's N-th turn, from 0 (default: all)")
    _leave(show)

    lister = _command(commands, "list", "inspect:listing", "list what there is, with one line each", "[KIND]")
    lister.add_argument(
        "kind", nargs="?", metavar="KIND", choices=KINDS, help=f"{', '.join(KINDS)} (default: how many of each)"
    )
    text = "tasks: those of the package lm_eval, for the task lm_eval, whose names have WORD in them"
    lister.add_argument("--lm_eval", nargs="?", const="", metavar="WORD", help=text)
    text = "tasks: TextArena's environments, for the task textarena, whose names have WORD in them"
    lister.add_argument("--textarena", nargs="?", const="", metavar="WORD", help=text)
    text = "tasks: OpenSpiel's games, for the task openspiel, whose names have WORD in them"
    lister.add_argument("--openspiel", nargs="?", const="", metavar="WORD", help=text)
    text = "--lm_eval: also those of this folder of YAML files; repeatable"
    lister.add_argument("--include_path", action="append", default=[], metavar="DIR", help=text)

    schema = _command(
        commands, "schema", "inspect:schema", "print the JSON Schema of specs, or of a plugin", "[KIND [NAME]]"
    )
    kinds = [kind for kind in KINDS if kind not in ("prompts", "specs")]
    schema.add_argument("kind", nargs="?", metavar="KIND", choices=kinds, help=", ".join(kinds))
    schema.add_argument("name", nargs="?", metavar="NAME", help="the plugin whose parameters to print")

    score = _of_run(commands, "score", "recompute a run's metrics from its journal, with no model")
    _leave(score)
    _options(score, "sandbox")
    _format(score)
    asking = score.group("judge (nothing is asked without --judge)")
    _judge(asking, nargs="?", const="")
    text = "parameters of a metric of the judge, added to the run, such as name=correct,prompt=judges/correctness"
    asking.add_argument("--judge_metric", metavar="K=V,…", help=text)
    _options(asking, *JUDGING)
    asking.add_argument("--quiet", action="store_true", help="no progress, only tables and errors")

    drawing = _command(
        commands, "plot", "charts:plot", "draw a chart of finished runs of one spec", "RUN [RUN …] --kind KIND -o FILE"
    )
    _runs(drawing)
    kinds_of_charts = ", ".join(f"{kind} ({text})" for kind, text in CHARTS.items())
    drawing.add_argument("--kind", required=True, choices=CHARTS, metavar="KIND", help=kinds_of_charts)
    text = "where to draw it: .svg, .pdf or .png"
    drawing.add_argument("-o", "--output", required=True, metavar="FILE", help=text)
    text = "the metric to draw (default: the spec's headline)"
    drawing.add_argument("--metric", metavar="NAME", help=text)
    text = "the number along the axis of scaling (default: the size of the group)"
    drawing.add_argument("--x", metavar="LABEL", help=text)
    text = "what makes lines, points or bars (default: the model, or what the spec compares)"
    drawing.add_argument("--by", metavar="LABEL", help=text)
    drawing.add_argument("--condition", metavar="ID", help="episodes of this condition only")
    drawing.add_argument("--episode", metavar="ID", help="this episode (heatmap, network)")

    report = _command(
        commands, "report", "results:report", "print runs' tables again, or all about them as one page", "RUN [RUN …]"
    )
    _runs(report)
    _table(report)
    _output(report)
    report.add_argument("--plots", metavar="DIR", help="also draw the spec's figures into this folder")
    _format(report)

    board = _command(
        commands, "leaderboard", "standings:leaderboard", "rank models by their runs, benchmark by benchmark", "PATH …"
    )
    board.add_argument("runs", nargs="+", metavar="PATH", help="run folders, or folders of runs")
    board.add_argument("--with_baselines", action="store_true", help="show floor and ceiling: policies, played now")
    _table(board)
    _output(board)
    _format(board)

    versus = _command(
        commands, "compare", "standings:compare", "test the difference between two runs, case by case", "RUN_A RUN_B"
    )
    versus.add_argument("runs", nargs="+", metavar="RUN", help="two runs; or one, with --label")
    text = "compare two values of a label of one run, such as --label protocol P2P SFS"
    versus.add_argument("--label", nargs=3, metavar=("LABEL", "A", "B"), help=text)
    versus.add_argument(
        "--where", action="append", default=[], metavar="LABEL=VALUE", help="only these episodes; repeatable"
    )
    text = "these metrics (default: the headline, what stands beside it, and those of the first table)"
    versus.add_argument("--metrics", metavar="NAME,…", help=text)
    _output(versus)
    versus.group("output").add_argument("--format", choices=FORMATS, default="text", metavar="FORM", help=OF_TABLES)

    pairs = _command(
        commands, "judge", "judge:judge", "have a judge choose between the answers of two runs", "RUN_A RUN_B --judge E"
    )
    pairs.add_argument("runs", nargs="+", metavar="RUN", help="two runs; or one, with --label")
    text = "two values of a label of one run, such as --label protocol single vote"
    pairs.add_argument("--label", nargs=3, metavar=("LABEL", "A", "B"), help=text)
    pairs.add_argument(
        "--where", action="append", default=[], metavar="LABEL=VALUE", help="only these episodes; repeatable"
    )
    asking = pairs.group("judge")
    _judge(asking)
    text = "its prompt set (default: judges/pairwise)"
    asking.add_argument("--prompt", default="judges/pairwise", metavar="SET", help=text)
    asking.add_argument("--reference", action="store_true", help="let it see the task's right answers")
    text = "ask it N times in each order; the more frequent choice counts"
    asking.add_argument("--repeats", type=_whole(1), default=1, metavar="N", help=text)
    asking.add_argument("--gen_kwargs", default="", metavar="K=V,…", help="its sampling (default: temperature=0)")
    _options(asking, *JUDGING)
    asking.add_argument("--quiet", action="store_true", help="no progress, only tables and errors")
    _output(pairs)
    pairs.group("output").add_argument("--format", choices=FORMATS, default="text", metavar="FORM", help=OF_TABLES)

    agree = _command(
        commands,
        "agreement",
        "agreement:agreement",
        "say how far judges agree with people and with each other",
        "RUN [--labels FILE]",
    )
    agree.add_argument("run", metavar="RUN", help="the run's folder")
    text = "CSV or JSON lines with the columns case (or episode), label and, for several people, rater"
    agree.add_argument("--labels", metavar="FILE", help=text)
    agree.add_argument("--metric", metavar="NAME", help="the number to compare (default: the first judged metric)")
    _output(agree)
    agree.group("output").add_argument("--format", choices=FORMATS, default="text", metavar="FORM", help=OF_TABLES)

    traffic = _of_run(commands, "messages", "print which agent sent how many messages to which in a run")
    traffic.add_argument("--condition", metavar="ID", help="of this condition only")
    traffic.add_argument("--format", choices=("csv", "json"), default="csv", help="of the data (default: csv)")
    _output(traffic)
    traffic.add_argument("--plots", metavar="DIR", help="also draw a heat map of every episode into this folder")

    trust = _command(
        commands,
        "trust",
        "trust:trust",
        "approve what a spec or run would run or send",
        "PATH",
    )
    trust.add_argument("paths", nargs="*", metavar="PATH", help="specs, runs' folders, projects' or tasks' folders")
    text = "approve sending this environment variable to this address; repeatable"
    trust.add_argument("--key", action="append", default=[], metavar="VARIABLE=URL", help=text)
    trust.add_argument("--yes", action="store_true", help="approve without being asked")
    trust.add_argument("--forget", action="store_true", help="take the approval of these back; without a PATH of all")

    view = _command(commands, "view", "view:view", "look at runs in a browser: what the agents said", "[RUN | FOLDER]")
    view.add_argument("runs", nargs="?", metavar="FOLDER", help="a run, or a folder of runs (default: results/)")
    view.add_argument("--port", type=_port, metavar="N", help="of 127.0.0.1 (default: the first free one from 8400 on)")
    view.add_argument("--open", action=argparse.BooleanOptionalAction, default=False, help="open it in a browser")

    export = _command(commands, "export", "export:export", "write a run in the form of another tool", "RUN --to FORM")
    export.add_argument("run", metavar="RUN", help="the run's folder")
    export.add_argument("--to", required=True, choices=EXPORTS, metavar="FORM", help=", ".join(EXPORTS))
    text = "the folder to write to (default: export/FORM in the run's folder)"
    export.add_argument("-o", "--output", metavar="FOLDER", help=text)
    export.add_argument("--overwrite", action="store_true", help="replace an earlier export that is there")
    export.add_argument("--repo", metavar="USER/NAME", help="hub: upload it as this data set")
    export.add_argument("--public", action="store_true", help="hub: let everyone read a data set that is created")

    convert = _command(
        commands, "convert", "convert:convert", "write a spec for a task of another harness", "lm_eval TASK"
    )
    text = "a task, group or tag of lm-eval by name (extra lm-eval), or a task's YAML file"
    convert.add_argument("names", nargs="+", metavar="lm_eval TASK", help=text)
    convert.add_argument(
        "--include_path", action="append", default=[], metavar="FOLDER", help="a folder with more tasks; repeatable"
    )
    convert.add_argument("-o", "--output", metavar="FILE", help="write the spec to a file instead of printing it")

    new = _command(commands, "new", "new:new", "start a project that works at once, or a task in YAML in it", "FOLDER")
    new.add_argument(
        "names", nargs="+", metavar="FOLDER", help="a folder that does not exist yet, or is empty; or: task NAME"
    )
    new.add_argument("--kind", metavar="KIND", help="of a task: network, sharded, world or questions")
    for command in commands.choices.values():  # last, so that they stand last
        more = command.group("more")
        _help(more)
        more.add_argument("--debug", action="store_true", help="print whole tracebacks, also those of plugins")
    return top


def _help(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-h", "--help", action="help", help="show this help")


def _command(commands: argparse._SubParsersAction[Parser], name: str, function: str, text: str, needs: str) -> Parser:
    command = commands.add_parser(
        name, needs=needs, help=text, description=text[0].upper() + text[1:] + ".", epilog=ending(name)
    )
    command.set_defaults(function=function)
    return command


def _runs(command: argparse.ArgumentParser) -> None:
    command.add_argument("runs", nargs="+", metavar="RUN", help="run folders of the same spec digest")


def _of_run(commands: argparse._SubParsersAction[Parser], name: str, text: str) -> Parser:
    command = _command(commands, name, f"results:{name}", text, "RUN")
    command.add_argument("run", metavar="RUN", help="the run's folder")
    return command


def _whole(least: int) -> Callable[[str], int]:
    """Reads a whole number from `least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > 18 or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to 10^18 − 1, found {text!r:.40}")
        return int(text)

    return read


def _port(text: str) -> int:
    number = _whole(0)(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 (any free one) to 65535, found {number}")
    return number


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)([smhd]?)", text, re.ASCII)
    seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else 0
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"must be a time above 0 such as 90, 30m, 8h or 2d, found {text!r:.40}")
    return seconds


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a share from 0 to 1, found {text!r:.40}")
    return value


def _set(command: argparse._ActionsContainer) -> None:
    text = "change a value of the spec, such as matrix.size=[4]; repeatable"
    command.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", dest="overrides", help=text)


def _spec(command: Parser, repeats: bool = True) -> None:
    group = command.group("what to run")
    group.add_argument("--spec", required=True, metavar="FILE", help="a spec's file or name; `harness list specs`")
    _set(group)
    group.add_argument("--limit", type=_whole(1), metavar="N", help="at most N cases a condition")
    group.add_argument("--seed", type=_whole(0), metavar="N", help="the run's seed")
    if repeats:
        group.add_argument("--repeats", type=_whole(1), metavar="N", help="play every case N times")
    group.add_argument("--data_dir", metavar="DIR", help="read the task's data from here (task.data_dir)")


def _model(command: Parser) -> None:
    group = command.group("model (without one, the spec's baseline policy plays)")
    group.add_argument("--model", metavar="ENGINE", help="vllm, openai, mock, replay or an engine of the project")
    group.add_argument("--model_args", default="", metavar="K=V,…", help="the engine's arguments")
    group.add_argument("--gen_kwargs", default="", metavar="K=V,…", help="sampling, over the spec's generation_kwargs")


def _judge(group: argparse._ActionsContainer, **optional: str) -> None:
    text = "judges in place of those that the spec names: vllm, openai, mock or an engine of the project"
    group.add_argument("--judge", metavar="ENGINE", help=text, **optional)  # type: ignore[arg-type]
    group.add_argument("--judge_args", default="", metavar="K=V,…", help="the judge's arguments")


def _running(command: Parser) -> None:
    _options(command.group("limits"), *LIMITS)
    output = command.group("output")
    _options(output, *OUTPUT)
    output.add_argument("--quiet", action="store_true", help="no progress, only tables and errors")
    more = command.group("more")
    _options(more, *(name for name in NAMES if name not in (*LIMITS, *OUTPUT)))
    text = "the executor's arguments, such as workers=4,num_gpus=1"
    more.add_argument("--executor_args", default="", metavar="K=V,…", help=text)


def _options(command: argparse._ActionsContainer, *names: str) -> None:
    """A flag for each of these fields of `Options`; its help is the field's line of the docstring."""
    texts = re.findall(r"^        (\w+): (.*(?:\n            .*)*)", Options.__doc__ or "", re.MULTILINE)
    lines = {name: " ".join(text.rstrip(".").replace("%", "%%").split()) for name, text in texts}
    about = {name: re.sub(r"[;.] in Python .*", "", text, flags=re.IGNORECASE) for name, text in lines.items()}
    for field in (field for field in fields(Options) if field.name in names):
        kind = field.type.removesuffix(" | None")
        more: dict[str, Any] = {"metavar": "N", "type": _whole(1)}
        if choices := re.match(r"Literal\[(.*?)\]", kind):
            more = {"choices": tuple(word.strip(" '") for word in choices[1].split(","))}
        elif kind == "bool":
            more = {"action": argparse.BooleanOptionalAction if field.default is None else "store_true"}
        elif kind == "Path":
            more = {"metavar": "PATH"}
        elif kind == "float":
            more = (
                {"metavar": "TIME", "type": _seconds} if field.default is None else {"metavar": "SHARE", "type": _share}
            )
        command.add_argument(f"--{field.name}", default=field.default, help=about.get(field.name), **more)


def _leave(command: Parser) -> None:
    _options(command.group("more"), "allow_code_execution")


def _output(command: Parser) -> None:
    command.group("output").add_argument("-o", "--output", metavar="FILE", help="write to a file instead of printing")


def _table(command: argparse.ArgumentParser) -> None:
    text = "print this one: its title, or its number in the paper, such as 'AgentsNet 4'"
    command.add_argument("--table", metavar="NAME", help=text)


def _format(command: Parser) -> None:
    group = command.group("output")
    group.add_argument("--format", choices=FORMATS, default="text", metavar="FORM", help=OF_TABLES)
    group.add_argument("--figures", action="store_true", help="print figure data too (csv, json, html always do)")
    group.add_argument("--with_published", action="store_true", help="show the paper's figures as marked rows")
