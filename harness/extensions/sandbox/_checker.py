"""The process whose verdict counts: the data set's prompt and test, with a proxy for the program's entry point."""

from __future__ import annotations

import builtins
import json
import os
from typing import TYPE_CHECKING, Any

from ._values import DETAIL, GoneError, TooLongError, decode, describe, encode, module, receive, send

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn


def check(job: Mapping[str, Any]) -> None:
    """Load the prompt and the test, call `check(candidate)`, give the verdict and end.

    What the test expects to be raised it may catch; that the solver is gone, or talks nonsense, it never sees.
    """
    solver = _Solver(job)
    solver.request("load")
    failure = solver.receive()[2]
    if failure is not None:
        status = "memory" if isinstance(failure, MemoryError) else "error"
        solver.finish(status, f"{failure} (when the program was loaded)")

    def candidate(*arguments: Any, **named: Any) -> Any:
        return solver.call(list(arguments), named)

    namespace = module("check")
    try:
        exec(compile(_completed(job["prompt"]), "<prompt>", "exec", dont_inherit=True), namespace)
        namespace[job["entry_point"]] = candidate
        exec(compile(job["test"], "<test>", "exec", dont_inherit=True), namespace)
        if callable(namespace.get("check")):
            namespace["check"](candidate)
        else:
            solver.finish("refused", "the test defines no function check(candidate)")
    except BaseException as error:
        from_program = error is solver.raised
        status = "memory" if isinstance(error, MemoryError) else "error"
        if isinstance(error, AssertionError) and not from_program:
            status = "failed"
        solver.finish(status, f"{error if from_program else describe(error)}{_line_of_test(error, job['test'])}")
    solver.finish("passed", "")


class _Solver:
    """The pipes to the solver, and the one that takes the verdict."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._requests, self._replies, self._longest = job["requests"], job["replies"], job["limits"]["value"]
        self._verdict = job["verdict"]
        self.raised: BaseException | None = None  # what the program raised last

    def finish(self, status: str, detail: str) -> NoReturn:
        """Give the verdict and end at once, so that no handler in the test can swallow it."""
        os.write(self._verdict, json.dumps([status, detail[:DETAIL]]).encode())
        os._exit(0)

    def call(self, arguments: list[Any], named: dict[str, Any]) -> Any:
        """What the program's function returns; raises what it raises, and changes the arguments it changes."""
        self.request(encode([arguments, named], strict=True))
        after, value, error = self.receive()
        if after is not None:
            _copy_changes([*arguments, *named.values()], [*after[0], *after[1].values()])
        if error is not None:
            self.raised = error
            raise error
        return value

    def request(self, request: Any) -> None:
        """Send a request to the solver."""
        try:
            send(self._requests, request, self._longest)
        except OSError:
            self.finish("gone", "")
        except TooLongError:
            self.finish("refused", f"the test's arguments take more than {self._longest} bytes")

    def receive(self) -> tuple[Any, Any, Exception | None]:
        """The arguments if they were changed, the value, the exception. Whatever is not an answer ends the check."""
        try:
            reply = receive(self._replies, self._longest)
            if "too_long" in reply:
                raise TooLongError
            after = decode(reply["after"]) if "after" in reply else None
            if after is not None and not (isinstance(after[0], list) and isinstance(after[1], dict)):
                raise ValueError
            if "raised" not in reply:
                return after, decode(reply["value"]), None
            name, text = map(str, reply["raised"])
        except TooLongError:
            self.finish("output", f"the program returned more than {self._longest} bytes")
        except (GoneError, OSError):
            self.finish("gone", "")
        except MemoryError:
            self.finish("memory", "what the program returned does not fit into memory")
        except Exception:
            self.finish("crashed", "the program's answer was not in the form")
        kind = getattr(builtins, name, None)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):  # sys.exit and the like
            self.finish("error", text)
        return after, None, _exception(kind, text)


def _exception(kind: type[Exception], text: str) -> Exception:
    try:
        return kind(text)
    except TypeError:  # UnicodeDecodeError, ExceptionGroup and the like want more
        return RuntimeError(text)


def _copy_changes(before: list[Any], after: list[Any]) -> None:
    """Arguments that the program changed in place change for the test too."""
    for argument, changed in zip(before, after, strict=False):
        if type(argument) is not type(changed):
            continue
        if isinstance(argument, list | bytearray):
            argument[:] = changed
        elif isinstance(argument, dict | set):
            argument.clear()
            argument.update(changed)


def _completed(prompt: str) -> str:
    """`prompt` as a program of its own: a signature without docstring is given a body."""
    try:
        compile(prompt, "<prompt>", "exec", dont_inherit=True)
    except SyntaxError:
        return f"{prompt.rstrip()}\n    pass\n"
    return prompt


def _line_of_test(error: BaseException, test: str) -> str:
    number, trace = 0, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "<test>":
            number = trace.tb_lineno
        trace = trace.tb_next
    return f" (test: {test.split(chr(10))[number - 1].strip()[:300]})" if number else ""
