"""How a command-line agent is asked, from the fields of the engine `agent` that say it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.api.errors import SetupError

if TYPE_CHECKING:
    from harness.extensions.agents.agent import Agent

_OURS = ("continue_command", "reply", "home", "confine", "readable")
"""Fields of the engine that only command-line agents have."""
_OTHERS = ("args", "history")
"""Fields that they have not."""
_INTERPRETERS = re.compile(r"(?:ba|da|fi|k|z)?sh|python[\d.]*|node|perl|ruby")
_FLAGS = re.compile(r"-\w*[ce]")
"""Options of interpreters that a script follows."""
_SYSTEM = ("/", "/proc", "/dev", "/sys")
"""What a confined program sees another one of, or nothing."""
_MAX_PATH = 4_096
"""Characters of a path: a longer word is a script."""


class Prompting(NamedTuple):
    """How a command-line agent is asked.

    Attributes:
        command: what is run in the first turn of a conversation, or in each.
        later: what is run in later turns, where the agent itself remembers the conversation; else empty.
        reply: where the reply is (`_prompt_reply.read_text`).
        home: what each seat's home has at first (`home_files`); None: the program has the person's home, unless its
            model is the run's or it is confined.
        confined: whether it runs confined.
        readable: files and folders that a confined program may read beside the system and its own installation.
    """

    command: Sequence[str]
    later: Sequence[str]
    reply: str
    home: str | Mapping[str, Any] | None
    confined: bool
    readable: Sequence[Path]

    def files(self) -> dict[str, str]:
        """Path in the home → content. Raises `SetupError`."""
        from harness.extensions.agents._seat_folders import home_files

        return home_files(self.home or {})

    def check(self) -> None:
        """Raise `SetupError` for a program, a file or a protection that is not here."""
        from harness.extensions.agents._agent_process import check_program

        for words in filter(None, (self.command, self.later)):
            check_program(words[0])
        self.files()
        for path in self.readable:
            if not path.exists():
                raise SetupError(f"readable: there is no file or folder {path}", at=("readable",))
        if self.confined:
            from harness.extensions.sandbox.whole_programs import require

            require()


def prompting(engine: Agent, command: Sequence[str], later: Sequence[str]) -> Prompting | None:
    """What the engine's fields say, with its commands in words; None if it is no command-line agent.

    Raises:
        SetupError: fields that do not fit together.
    """
    if engine.interface != "prompt":
        for name in _different(engine, _OURS):
            hint = "Add interface=prompt, if the command is started for each turn, gets a prompt and prints its reply."
            value = json.dumps(getattr(engine, name), default=str)
            raise SetupError(f"{name}={value:.100} is for command-line agents", hint=hint, at=(name,))
        return None
    from harness.extensions.agents._prompt_reply import check_reply

    if not command:
        hint = 'Write command="codex exec -", interface=prompt.'
        raise SetupError("interface=prompt needs command=, the agent that is started in each turn", hint=hint)
    for name in _different(engine, _OTHERS):
        hint = "Write it into the command, which gets the whole conversation unless there is a continue_command."
        raise SetupError(f"interface=prompt takes no {name}=", hint=hint, at=(name,))
    for words, name in ((command, "command"), (later, "continue_command")):
        if (script := _script(words)) is not None:
            what = f"{name}: {script!r:.100} has {{prompt}} in a script, which would run what other agents write"
            hint = "Let it read its standard input or {prompt_file}; or hand it over: sh -c 'agent \"$1\"' sh {prompt}."
            raise SetupError(what, hint=hint, at=(name,))
    check_reply(engine.reply)
    if engine.readable and not engine.confine:
        raise SetupError("readable= says what a confined program may read: it needs confine=true", at=("readable",))
    readable = [Path(path).expanduser().absolute() for path in engine.readable]
    if hidden := next((path for path in readable if str(path.resolve()) in _SYSTEM), None):
        hint = "Name the files and folders that the program needs."
        raise SetupError(f"readable: {hidden} is the system's own, not the program's", hint=hint, at=("readable",))
    command, later = _found(command), _found(later)
    named = [Path(word) for word in (*command, *later) if word.startswith("/") and len(word) < _MAX_PATH]
    readable += [path for path in named if path.is_file()]
    return Prompting(command, later, engine.reply, engine.home, engine.confine, readable)


def _script(words: Sequence[str]) -> str | None:
    """The script on a command line of a shell or another interpreter that has the prompt's place in it."""
    interpreted = any(_INTERPRETERS.fullmatch(word.rpartition("/")[2]) for word in words)
    scripts = (word for flag, word in pairwise(words) if _FLAGS.fullmatch(flag) and "{prompt}" in word)
    return next(scripts, None) if interpreted else None


def _different(engine: Agent, names: Sequence[str]) -> list[str]:
    """The fields among `names` that are not as they are by default."""
    made = {one.name: one.default_factory for one in fields(engine)}
    usual = {name: make() if callable(make := made[name]) else getattr(type(engine), name) for name in names}
    return [name for name in names if getattr(engine, name) != usual[name]]


def _found(words: Sequence[str]) -> list[str]:
    """The words of a command that runs in another folder: of files here, as ./agent.py, they are whole paths."""

    def is_here(word: str) -> bool:
        return "/" in word and word[0] != "/" and len(word) < _MAX_PATH and Path(word).is_file()

    return [str(Path(word).absolute()) if is_here(word) else word for word in words]
