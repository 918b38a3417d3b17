"""`harness view`: the viewer, a web page over runs on this machine."""

from __future__ import annotations

import argparse
import webbrowser

from harness.cli import options as opt
from harness.cli.usage import Parser
from harness.config.project import find
from harness.errors import DataError, SetupError
from harness.results import run_folder


def view(options: argparse.Namespace) -> int:
    """Serve the viewer until Ctrl-C."""
    try:
        from ._app import app
        from ._serve import free_socket, serve
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("starlette", "uvicorn"):
            raise
        hint = 'pip install "mas-eval-harness[view]"'
        raise SetupError(f"harness view needs the package {package}", hint=hint) from None
    project = find()
    root = run_folder(options.runs or project.results())
    application = app(root, project.root)
    count = len(application.state.found.all())
    if not count:
        hint = "Give a run's folder, or a folder that has some; `harness eval` names the one that it writes."
        raise DataError(f"no run is in {root} (no run.json)", hint=hint)

    def started(url: str) -> None:
        print(f"{count} run{'s' * (count != 1)} in {root}: {url}\nCtrl-C ends it.", flush=True)
        if options.open:
            webbrowser.open(url)

    serve(application, free_socket(options.port), started)
    return 0


def options(command: Parser) -> None:
    """The options of `harness view`."""
    text = "a run, or a folder of runs (default: results/)"
    command.add_argument("runs", nargs="?", metavar="FOLDER", help=text)
    text = "port of 127.0.0.1 (default: the first free one from 8400)"
    command.add_argument("--port", type=_port, metavar="N", help=text)
    text = "open the page in a browser"
    command.add_argument("--open", action=argparse.BooleanOptionalAction, default=False, help=text)


def _port(text: str) -> int:
    number = opt.whole(0)(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 (any free one) to 65535, found {number}")
    return number
