"""The far side of the fence: what runs in the confined processes. `main` is started by `_parent.py`.

Three roles. A *program* runs a text. A *solver* runs the program under test and answers calls of its entry point. A
*checker* runs the data set's own prompt and test, in which the candidate is a proxy that asks the solver; its verdict
is the only one that counts, and nothing the program can touch is in its process.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._checker import check
from ._confine import confine
from ._values import DETAIL, TooLongError, decode, describe, encode, module, receive, send

if TYPE_CHECKING:
    from collections.abc import Mapping

OUT_OF_MEMORY = 97
"""Exit status of a program that ended with a MemoryError."""


def main() -> None:
    """Read the job from standard input, confine this process, say so, and do the job."""
    with open(0, "rb") as stdin:
        job = json.load(stdin)
    os.open("/dev/null", os.O_RDONLY)  # becomes descriptor 0
    os.environ.clear()
    sys.dont_write_bytecode = True
    try:
        confine(job["limits"], job["using"], job["parent"])
    except Exception as error:
        os.write(job["report"], describe(error).encode("utf-8", "replace"))
        os._exit(1)
    os.write(job["report"], b"ready")
    os.close(job["report"])
    roles: dict[str, Callable[[dict[str, Any]], None]] = {"program": run, "solver": solve, "checker": check}
    roles[job["role"]](job)


def run(job: Mapping[str, Any]) -> None:
    """A program of its own, as `python FILE` would run it."""
    try:
        exec(compile(job["program"], "<program>", "exec", dont_inherit=True), module("__main__"))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def solve(job: Mapping[str, Any]) -> None:
    """Load the program when the checker asks for it, then answer calls of its entry point until there are no more."""
    requests, replies, longest, entry_point = (
        job["requests"],
        job["replies"],
        job["limits"]["value"],
        job["entry_point"],
    )
    receive(requests, longest)  # the checker has closed its memory by now
    namespace = module("candidate")
    try:
        exec(compile(job["program"], "<program>", "exec", dont_inherit=True), namespace)
        function = namespace.get(entry_point)
        if not callable(function):
            raise NameError(f"the program defines no function {entry_point}")
    except BaseException as error:
        return send(replies, _raised(error), longest)
    send(replies, {"value": None}, longest)
    while True:
        reply = _answer(function, receive(requests, longest))
        try:
            send(replies, reply, longest)
        except TooLongError:
            send(replies, {"too_long": True}, longest)


def _answer(function: Callable[..., Any], request: Any) -> dict[str, Any]:
    """One call: its value, or what it raised; and its arguments if it changed them."""
    arguments, named = decode(request)
    try:
        reply = {"value": encode(function(*arguments, **named))}
    except BaseException as error:
        reply = _raised(error)
    try:
        after = encode([arguments, named])
        if json.dumps(after) != json.dumps(request):
            reply["after"] = after
    except Exception:  # what it put into them cannot travel: the caller keeps its own
        pass
    return reply


def _raised(error: BaseException) -> dict[str, Any]:
    """The nearest built-in class, so that a test that expects a ValueError gets one, and the message."""
    names = [kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind]
    return {"raised": [names[0], describe(error)[:DETAIL]]}
