"""The command line: `harness <command>`. Parses arguments, calls one short function, prints errors.

Exit codes: 0 done · 1 the run stopped before its plan did (an engine, the disk, what it may spend), or every episode
failed · 2 a mistake to mend · 130 stopped with Ctrl-C · 143 stopped with SIGTERM, 129 with SIGHUP, in the same way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

from harness.cli.parser import parser
from harness.cli.terminal import clean_streams
from harness.plugins import approvals

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    clean_streams()
    given = sys.argv[1:] if arguments is None else arguments
    with _terminated_as_interrupted() as received:
        code = _run(given)
    return 128 + received[0] if received and code == INTERRUPTED else code


def _run(given: Sequence[str]) -> int:
    options = None
    try:
        options = parser(given).parse_args(given)
        allowed = getattr(options, "allow_code_execution", False)
        with approvals.allowing(allowed), approvals.refusals() as refused:  # what the command continues without
            code: int = options.function()(options)
        for text in dict.fromkeys(error.line() for error in refused) if code == 0 else ():
            print(f"left out: {text}", file=sys.stderr)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # e.g. `harness list tasks | head`
        _give_up_stdout()
        return 0
    except KeyboardInterrupt:
        print("\nstopped.", file=sys.stderr)
        return INTERRUPTED
    except (Exception, SystemExit) as error:
        if options is None and isinstance(error, SystemExit):  # help, or a mistake that is printed
            raise
        return _report_error(error, "--debug" in given)


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[list[int]]:
    """SIGTERM (a batch system, before it kills) and SIGHUP (the terminal is gone) do what Ctrl-C does.

    Yields the list of those that came. One that is ignored (`nohup`), or that other code handles, stays so.
    """
    received: list[int] = []
    process = os.getpid()
    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]

    def interrupt(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:  # a fork of this one: let it end as it would have
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        received.append(number)
        if number == signal.SIGHUP:
            _forget_terminal()
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)

    if threading.current_thread() is not threading.main_thread() or not ours:
        yield received  # not ours to decide
        return
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored:  # by the parent that started this in the background: that holds, but asyncio needs a handler
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield received
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _forget_terminal() -> None:
    """Discard what is still printed to a terminal that is gone, where writing would now be an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode):
                os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _report_error(error: BaseException, debug: bool) -> int:
    """Print a mistake without a traceback; returns the exit code. A bug of the harness itself is raised again."""
    from harness.api.errors import UserError
    from harness.plugins.missing_extensions import culprit, missing_module
    from harness.runtime.runner import BudgetReachedError, RunStoppedError
    from harness.storage.plugin_errors import describe, plugin_frames, whole

    plugins = plugin_frames(error)
    if (why := missing_module(error)) is not None:
        print(f"error: what this needs {why}", file=sys.stderr)
        return 2
    theirs = None if isinstance(error, SystemExit | UserError) else culprit(error)
    if not (plugins or theirs or isinstance(error, UserError | OSError)):
        raise error
    if debug:
        print(whole(error).rstrip(), file=sys.stderr)
    if isinstance(error, UserError):
        print(f"{'stopped' if isinstance(error, BudgetReachedError) else 'error'}: {error}", file=sys.stderr)
        return 1 if isinstance(error, RunStoppedError) else 2
    if plugins:
        print(f"error: a plugin fails: {describe(error)}\n  --debug shows the whole traceback.", file=sys.stderr)
        return 2
    if theirs is not None:
        extension, place = theirs
        what = f"{place}: the extension {extension.name} fails: {type(error).__name__}: {error}"
        print(f"error: {what}\n  --debug shows the whole traceback.", file=sys.stderr)
        return 2
    if isinstance(error, OSError):  # a full disk, a file that may not be read
        _give_up_stdout()
        print(f"error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
    return 2


def _give_up_stdout() -> None:
    """Python flushes stdout once more at its end; let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
