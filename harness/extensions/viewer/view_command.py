"""`harness view`: the viewer, a web page over runs on this machine."""

from __future__ import annotations

import argparse
import secrets
import tempfile
import webbrowser
from pathlib import Path

from harness.api.errors import DataError, Place, SetupError, SpecError
from harness.api.run_files import META
from harness.cli import options as opt
from harness.cli.evaluate import engine_of, pairs
from harness.cli.usage import Parser
from harness.config.project import find
from harness.evaluation.load_run import run_folder


def view(options: argparse.Namespace) -> int:
    """Serve the viewer until Ctrl-C."""
    project = find()
    root = run_folder(options.runs or project.results())
    try:
        from ._app import WhatIf, app
        from ._serve import free_socket, serve
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("starlette", "uvicorn"):
            raise
        hint = 'pip install "mas-eval-harness[view]"'
        raise SetupError(f"harness view needs the package {package}", hint=hint) from None
    what_if = None
    if options.what_if:
        if (root / META).is_file():
            root = root.resolve().parent  # what is played on is a run beside this one
        model = engine_of(options)  # a mistake in it is said now, and not in the page
        if model is not None and model.collects:
            message = f"{model.model} answers in batches, and a reader of the page would wait for hours"
            raise SpecError(message, place=Place("--model_args"), hint="Leave batch out.")
        if model is None and options.max_calls is not None:
            raise SpecError(
                "no model is asked, so that there is nothing to bound", place=Place("--max_calls"), hint="Add --model."
            )
        named = None if model is None else {"use": options.model, **pairs(options.model_args, "--model_args")}
        what_if = WhatIf(secrets.token_urlsafe(24), named, options.max_calls)
    elif options.model is not None or options.model_args or options.max_calls is not None:
        raise SpecError("nothing is asked of a model", place=Place("--model"), hint="Add --what_if.")
    application = app(root, project.root, what_if=what_if)
    count = len(application.state.run_list.all())
    if not count:
        hint = "Give a run's folder, or a folder that has some; `harness eval` names the one that it writes."
        raise DataError(f"no run is in {root} (no run.json)", hint=hint)

    def started(url: str) -> None:
        address = url if what_if is None else f"{url}?key={what_if.key}"
        print(f"{count} run{'s' * (count != 1)} in {root}: {address}\nCtrl-C ends it.", flush=True)
        if options.open:
            webbrowser.open(url if what_if is None else _page_that_leads_to(address, Path(own)))

    with tempfile.TemporaryDirectory(prefix="harness-view-") as own:
        serve(application, free_socket(options.port), started)
    return 0


def _page_that_leads_to(address: str, folder: Path) -> str:
    """The URL of a file that no other user can read: what a browser is started with, all of them can."""
    file = folder / "open.html"
    file.write_text(f'<meta http-equiv="refresh" content="0; url={address}">', "utf-8")
    return file.as_uri()


def options(command: Parser) -> None:
    """The options of `harness view`."""
    text = "a run, or a folder of runs (default: results/)"
    command.add_argument("runs", nargs="?", metavar="FOLDER", help=text)
    text = "port of 127.0.0.1 (default: the first free one from 8400)"
    command.add_argument("--port", type=_port, metavar="N", help=text)
    text = "open the page in a browser"
    command.add_argument("--open", action=argparse.BooleanOptionalAction, default=False, help=text)

    group = command.group("what if (a turn gets another reply, and the episode goes on from there)")
    text = "let the page play episodes on, as runs of their own"
    group.add_argument("--what_if", action="store_true", help=text)
    group.add_argument("--model", metavar="ENGINE", help="may answer prompts that differ, as in `harness eval`")
    group.add_argument("--model_args", default="", metavar="K=V,…", help="the engine's arguments")
    opt.add(command, "max_calls", group=group.title)


def _port(text: str) -> int:
    number = opt.whole(0)(text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 (any free one) to 65535, found {number}")
    return number
