"""Options that several commands have, for commands of the core and of extensions. Imports next to nothing."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from harness.cli.usage import Parser
from harness.manifests import offers
from harness.runtime.options import NAMES, Options

LIMITS = ("max_calls", "max_tokens_total", "max_time", "max_error_rate", "max_concurrency")
OUTPUT = ("output_path", "resume", "overwrite", "log_samples", "log_requests")
"""Options of a run by their group in `--help`; the rest is under `more`."""
ASKING = (
    *("max_concurrency", "max_calls", "max_tokens_total", "max_time", "use_cache", "log_samples", "log_requests"),
    *("one_engine_at_a_time", "max_error_rate", "overwrite"),
)
"""The options of a run that asks engines about a finished one."""
FORMATS = ("text", "markdown", "csv", "latex", "json", "html")
OF_TABLES = f"format of the tables: {', '.join(FORMATS)} (default: text)"


def add_help(group: argparse._ArgumentGroup) -> None:
    """-h."""
    group.add_argument("-h", "--help", action="help", help="show this help")


def add_runs(command: argparse.ArgumentParser) -> None:
    """Run folders."""
    command.add_argument("runs", nargs="+", metavar="RUN", help="run folders of the same spec digest")


def whole(least: int) -> Callable[[str], int]:
    """Reads a whole number from `least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > 18 or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to 10^18 − 1, found {text!r:.40}")
        return int(text)

    return read


def seconds(text: str) -> float:
    """Reads a time, in seconds."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)([smhd]?)", text, re.ASCII)
    seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else 0
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"must be a time above 0 such as 90, 30m, 8h or 2d, found {text!r:.40}")
    return seconds


def share(text: str) -> float:
    """Reads a share."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a share from 0 to 1, found {text!r:.40}")
    return value


def add_changes(command: argparse._ActionsContainer) -> None:
    """--set."""
    text = "change a value of the spec, such as matrix.size=[4]; repeatable"
    command.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", dest="overrides", help=text)


def add_spec(command: Parser, repeats: bool = True) -> None:
    """Which spec, and what of it."""
    group = command.group("what to run")
    group.add_argument("--spec", required=True, metavar="FILE", help="a spec's file or name; `harness list specs`")
    add_changes(group)
    group.add_argument("--limit", type=whole(1), metavar="N", help="at most N cases per condition")
    group.add_argument("--seed", type=whole(0), metavar="N", help="the run's seed")
    if repeats:
        group.add_argument("--repeats", type=whole(1), metavar="N", help="play every case N times")
    group.add_argument("--data_dir", metavar="DIR", help="read the task's data from here (task.data_dir)")


def add_model(command: Parser) -> None:
    """--model, its arguments and its sampling."""
    group = command.group("model (without one, the spec's baseline policy plays)")
    group.add_argument("--model", metavar="ENGINE", help="vllm, openai, mock, replay or an engine of the project")
    group.add_argument("--model_args", default="", metavar="K=V,…", help="the engine's arguments")
    group.add_argument(
        "--gen_kwargs",
        default="",
        metavar="K=V,…",
        help="sampling parameters, which override the spec's generation_kwargs",
    )


def add_running(command: Parser) -> None:
    """All options of a run, and --quiet."""
    add_run_options(command.group("limits"), *LIMITS)
    output = command.group("output")
    add_run_options(output, *OUTPUT)
    output.add_argument("--quiet", action="store_true", help="no progress, only tables and errors")
    more = command.group("more")
    add_run_options(more, *(name for name in NAMES if name not in (*LIMITS, *OUTPUT)))
    text = "the executor's arguments, such as workers=4,num_gpus=1"
    more.add_argument("--executor_args", default="", metavar="K=V,…", help=text)


def add_run_options(command: argparse._ActionsContainer, *names: str) -> None:
    """A flag for each of these fields of `Options`; its help is the field's line of the docstring."""
    texts = re.findall(r"^        (\w+): (.*(?:\n            .*)*)", Options.__doc__ or "", re.MULTILINE)
    lines = {name: " ".join(text.rstrip(".").replace("%", "%%").split()) for name, text in texts}
    about = {name: re.sub(r"[;.] in Python .*", "", text, flags=re.IGNORECASE) for name, text in lines.items()}
    about["executor"] = about["executor"].replace(" (", f": {', '.join(offers('executors'))} (", 1)
    for field in (field for field in fields(Options) if field.name in names):
        kind = field.type.removesuffix(" | None")
        more: dict[str, Any] = {"metavar": "N", "type": whole(1)}
        if choices := re.match(r"Literal\[(.*?)\]", kind):
            more = {"choices": tuple(word.strip(" '") for word in choices[1].split(","))}
        elif kind.startswith("str"):
            more = {"metavar": "NAME"}
        elif kind == "bool":
            more = {"action": argparse.BooleanOptionalAction if field.default is None else "store_true"}
        elif kind == "Path":
            more = {"metavar": "PATH"}
        elif kind == "float":
            more = (
                {"metavar": "TIME", "type": seconds} if field.default is None else {"metavar": "SHARE", "type": share}
            )
        command.add_argument(f"--{field.name}", default=field.default, help=about.get(field.name), **more)


def add_permission(command: Parser) -> None:
    """--allow_code_execution."""
    add_run_options(command.group("more"), "allow_code_execution")


def add_output(command: Parser) -> None:
    """-o FILE."""
    command.group("output").add_argument("-o", "--output", metavar="FILE", help="write to a file instead of printing")


def add_table(command: argparse.ArgumentParser) -> None:
    """--table."""
    text = "print this table only, by its title or its number in the paper, such as 'AgentsNet 4'"
    command.add_argument("--table", metavar="NAME", help=text)


def add_form(command: Parser) -> None:
    """--format alone."""
    command.group("output").add_argument("--format", choices=FORMATS, default="text", metavar="FORM", help=OF_TABLES)


def add_format(command: Parser) -> None:
    """How tables are printed."""
    add_form(command)
    group = command.group("output")
    group.add_argument(
        "--figures", action="store_true", help="also print the data of figures (csv, json and html always contain it)"
    )
    group.add_argument("--with_published", action="store_true", help="show the paper's figures as marked rows")
