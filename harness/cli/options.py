"""The options of the core's commands, each once; commands of extensions take them too. Imports next to nothing."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from harness.cli.usage import Parser
from harness.plugins.manifests import offers
from harness.runtime.options import NAMES, Options

LIMITS = (
    *("max_concurrency", "max_calls", "max_tokens_total", "max_cost", "rpm", "tpm", "max_time", "max_error_rate"),
    "stop_unless",
)
OUTPUT = ("output_path", "resume", "overwrite", "log_samples", "log_requests")
"""Options of a run by their group in `--help`; the rest is under `more`."""
ASKING = (
    *("overwrite", "max_concurrency", "max_calls", "max_tokens_total", "max_time", "use_cache", "reuse"),
    *("log_samples", "log_requests", "sequential_engines", "max_error_rate"),
)
"""The options of a run that asks engines about a finished one."""
SPEC = ("spec", "set", "limit", "seed", "repeats", "data_dir")
MODEL = ("model", "model_args", "gen_kwargs")
RUNNING = (*LIMITS, *OUTPUT, "quiet", *(name for name in NAMES if name not in (*LIMITS, *OUTPUT)), "executor_args")
TABLES = ("format", "figures", "with_published")
FORMATS = ("text", "markdown", "csv", "latex", "json", "html")
_SUFFIXES = {".md": "markdown", ".csv": "csv", ".tex": "latex", ".json": "json", ".html": "html", ".htm": "html"}


class _Format(argparse.Action):
    """`--format FORM`."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        namespace.format, namespace.format_is_given = values, True


class _ToFile(argparse.Action):
    """`--output FILE`, which also chooses the format unless `--format` does: report.html is a page."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, values)
        if hasattr(namespace, "format") and not hasattr(namespace, "format_is_given"):
            namespace.format = _SUFFIXES.get(Path(values).suffix.lower(), namespace.format)


def whole(least: int) -> Callable[[str], int]:
    """Reads a whole number from `least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > 18 or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to 10^18 − 1, found {text!r:.40}")
        return int(text)

    return read


def cases(text: str) -> int:
    """Reads a number of cases."""
    if re.fullmatch(r"0?\.\d+", text):
        from harness.plugins.habits import SHARES

        raise argparse.ArgumentTypeError(f"found {text!r:.40}. {SHARES}")
    return whole(1)(text)


def seconds(text: str) -> float:
    """Reads a time, in seconds."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)([smhd]?)", text, re.ASCII)
    seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else 0
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"must be a time above 0 such as 90, 30m, 8h or 2d, found {text!r:.40}")
    return seconds


def _number(what: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            if fits(value := float(text)):
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"must be {what}, found {text!r:.40}")

    return read


usd = _number("a number of USD above 0, such as 2.50", lambda value: 0 < value < 1e12)
share = _number("a share from 0 to 1", lambda value: 0 <= value <= 1)


def shares(text: str) -> dict[str, float]:
    """Reads `parsed=20%,complete=0.5`: least shares of turns by name."""
    from harness.runtime.turn_shares import read_shares  # what only this option needs

    try:
        return read_shares(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_ARGUMENTS, _OPTIONS, _WHAT, _OUTPUT, _MORE = "arguments", "options", "what to run", "output", "more"
_MODEL = "model (without one, the spec's baseline policy plays)"
_WORDS: Final = {"output": ("-o", "--output"), "specs": ("--spec",)}
"""Options whose words on the command line are not their name alone."""
_COUNT: Final[dict[str, Any]] = {"metavar": "N", "type": whole(1)}
_FLAGS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "spec": (_WHAT, {"required": True, "metavar": "FILE", "help": "a spec's file or name; `harness list specs`"}),
    "specs": (_WHAT, {"required": True, "metavar": "FILE", "action": "append", "dest": "specs",
                      "help": "a spec's file or name, or several: a,b (`harness list specs`); repeatable"}),
    "set": (_WHAT, {"action": "append", "default": [], "metavar": "PATH=VALUE", "dest": "overrides",
                    "help": "change a value of the spec, such as matrix.size=[4]; repeatable"}),
    "limit": (_WHAT, {"metavar": "N", "type": cases, "help": "at most N cases per condition"}),
    "seed": (_WHAT, {"type": whole(0), "metavar": "N", "help": "the run's seed"}),
    "repeats": (_WHAT, {**_COUNT, "help": "play every case N times"}),
    "data_dir": (_WHAT, {"metavar": "DIR", "help": "read the task's data from here (task.data_dir)"}),
    "model": (_MODEL, {"metavar": "ENGINE", "help": "vllm, openai, mock, replay or an engine of the project"}),
    "model_args": (_MODEL, {"default": "", "metavar": "K=V,…", "help": "the engine's arguments"}),
    "gen_kwargs": (_MODEL, {"default": "", "metavar": "K=V,…",
                            "help": "sampling parameters, which override the spec's generation_kwargs"}),
    "quiet": (_OUTPUT, {"action": "store_true", "help": "no progress, only tables and errors"}),
    "executor_args": (_MORE, {"default": "", "metavar": "K=V,…",
                              "help": "the executor's arguments, such as workers=4,num_gpus=1"}),
    "run": (_ARGUMENTS, {"metavar": "RUN", "help": "the run's folder"}),
    "runs": (_ARGUMENTS, {"nargs": "+", "metavar": "RUN", "help": "run folders of the same spec digest"}),
    "table": (_OPTIONS, {"metavar": "NAME", "help": "print this table only, by its title or its number in the paper, "
                         "such as 'AgentsNet 4'"}),
    "plots": (_OPTIONS, {"metavar": "DIR", "help": "also draw the spec's figures into this folder"}),
    "output": (_OUTPUT, {"metavar": "FILE", "action": _ToFile,
                         "help": "write to a file instead of printing, in the format of its suffix"}),
    "format": (_OUTPUT, {"choices": FORMATS, "default": "text", "metavar": "FORM", "action": _Format,
                         "help": f"format of the tables: {', '.join(FORMATS)} (default: text)"}),
    "figures": (_OUTPUT, {"action": "store_true",
                          "help": "also print the data of figures (csv, json and html always contain it)"}),
    "with_published": (_OUTPUT, {"action": "store_true", "help": "show the paper's figures as marked rows"}),
    "explain": (_OPTIONS, {"action": "store_true",
                           "help": "print the stages of the run, and what each passes on"}),
    "condition": (_OPTIONS, {"metavar": "ID", "help": "which condition (default: the first)"}),
    "case": (_OPTIONS, {"metavar": "ID", "help": "show prompts of this case: its id or its number from 0"}),
    "repeat": (_OPTIONS, {"type": int, "metavar": "N", "help": "which repeat of the case, from 0 (default: 0)"}),
    "agent": (_OPTIONS, {"metavar": "NAME", "help": "whose prompts (default: the first agent)"}),
    "round": (_OPTIONS, {"type": int, "metavar": "N", "help": "up to the agent's N-th turn, from 0 (default: all)"}),
}  # fmt: skip
"""Option → its heading in `--help`, and what argparse makes it of. Those of `Options` are made of its fields."""


def add(command: Parser, *names: str, group: str | None = None, formats: Mapping[str, str] | None = None) -> None:
    """Add options by their names, under the heading `group` in `--help`; by default each under its own.

    `formats`: further values of `--format`, with what each writes.
    """
    for name in names:
        own, settings = _FLAGS.get(name) or _of_run(name)
        if name == "format" and formats:
            more = "; ".join(f"{form}: {what}" for form, what in formats.items())
            help_ = settings["help"].replace(" (default", f"; {more} (default")
            settings = {**settings, "choices": (*FORMATS, *formats), "help": help_}
        words = (name,) if own == _ARGUMENTS else _WORDS.get(name, (f"--{name}",))
        command.group(group or own).add_argument(*words, **settings)


def are_of_core(words: Sequence[str]) -> bool:
    """Whether all options among the words of a command line are here, each written in full."""
    known = {f"--{name}" for name in (*_FLAGS, *NAMES)}
    return all(word.partition("=")[0] in known for word in words if word.startswith("-"))


def _of_run(name: str) -> tuple[str, dict[str, Any]]:
    """The option for a field of `Options`; its help is the field's line of the docstring."""
    field = next(field for field in fields(Options) if field.name == name)
    kind, more = field.type.removesuffix(" | None"), _COUNT
    if choices := re.match(r"Literal\[(.*?)\]", kind):
        more = {"choices": tuple(word.strip(" '") for word in choices[1].split(","))}
    elif kind.startswith("str"):
        more = {"metavar": "NAME"}
    elif kind == "bool":
        more = {"action": argparse.BooleanOptionalAction if field.default is None else "store_true"}
    elif name == "stop_unless":
        more = {"metavar": "NAME=SHARE", "type": shares}
    elif kind == "Path":
        more = {"metavar": "PATH"}
    elif name == "max_cost":
        more = {"metavar": "USD", "type": usd}
    elif kind == "float":
        is_time = field.default is None
        more = {"metavar": "TIME" if is_time else "SHARE", "type": seconds if is_time else share}
    group = "limits" if name in LIMITS else _OUTPUT if name in OUTPUT else _MORE
    return group, {"default": field.default, "help": _help_of(name), **more}


def _help_of(name: str) -> str | None:
    """The line of the docstring for a field of `Options`, without what it says about Python."""
    line = re.search(rf"^        {name}: (.*(?:\n            .*)*)", Options.__doc__ or "", re.MULTILINE)
    if line is None:  # Python was told to leave docstrings out
        return None
    text = " ".join(line[1].rstrip(".").replace("%", "%%").split())
    if name == "executor":
        text = text.replace(" (", f": {', '.join(offers('executors'))} (", 1)
    return re.sub(r"[;.] in Python .*", "", text, flags=re.IGNORECASE)
