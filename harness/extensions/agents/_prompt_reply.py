"""What a command-line agent is given in a turn, and where in its output or its files its reply is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.api.errors import RequestError, SetupError
from harness.api.printable import cut
from harness.extensions.agents._seat_folders import SeatFolder
from harness.extensions.agents.conversations import MAX_REPLY_CHARS

MAX_ARGUMENT = 131_071
"""Bytes of an argument (MAX_ARG_STRLEN of Linux, execve(2), less the zero at its end)."""
_PLACES = re.compile(r"\{(prompt|prompt_file)\}")


def prompt_of(messages: Sequence[Mapping[str, str]]) -> str:
    """Messages as one text: joined where the agent has said nothing yet, else each with a line that says whose it is.

    >>> prompt_of([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}])
    'Be kind.\\n\\nHello'
    """
    said = [one for one in messages if one["content"]]
    if all(one["role"] != "assistant" for one in said):
        return "\n\n".join(one["content"] for one in said)
    names = {"assistant": "You replied", "user": "You were sent"}
    parts = [
        f"=== {names[one['role']]} ===\n{one['content']}" if one["role"] in names else one["content"] for one in said
    ]
    return "\n\n".join(parts)


def takes_input(words: Sequence[str]) -> bool:
    """Whether a command gets the prompt by standard input: no word names a place for it."""
    return not any(map(_PLACES.search, words))


def filled(words: Sequence[str], prompt: str, file: Path) -> list[str]:
    """The words of a command with the prompt, or the name of the file that holds it, where they say so.

    Raises:
        RequestError: a word becomes longer than the system lets an argument be.
    """
    plain = prompt.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    values = {"prompt": plain, "prompt_file": str(file)}
    made = [_PLACES.sub(lambda found: values[found[1]], word) for word in words]
    for word in made:
        if (size := len(word.encode("utf-8", "surrogateescape"))) > MAX_ARGUMENT:
            hint = "leave {prompt} out of the command, which then gets it by standard input, or write {prompt_file}"
            raise RequestError(
                f"an argument holds at most {MAX_ARGUMENT:,} bytes, the prompt makes it {size:,}: {hint}"
            )
    return made


def check_reply(reply: str) -> None:
    """Raise `SetupError` for a `reply` that names no place below the working folder."""
    file, hash_, pointer = reply.partition("#")
    names_file = not file or bool(Path(file).parts)
    inside = names_file and not file.startswith(("/", "~")) and ".." not in Path(file).parts and "\0" not in file
    if not inside or (hash_ and pointer and not pointer.startswith("/")):
        hint = "Write a file of its working folder, such as answer.txt, and behind # where in its JSON the reply is: "
        hint += "run.json#/info/submission; without a file #/result is looked for in the standard output."
        raise SetupError(f"reply={reply!r:.200} names no place of a reply", hint=hint, at=("reply",))


def read_text(reply: str, output: bytes, folder: SeatFolder) -> str:
    """The text of a reply.

    Args:
        reply: "" for all of the standard output; a file's name; and after # a JSON pointer (RFC 6901).
        output: standard output.
        folder: of the seat; files are looked for in its working folder.

    Raises:
        RequestError: there is none.
    """
    name, _, pointer = reply.partition("#")
    data = folder.read(name, 8 * MAX_REPLY_CHARS) if name else output
    text = data.decode("utf-8", "replace").strip()
    if not pointer:
        return text
    where = name or "its standard output"
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError(f"{where} is not JSON: {cut(text, 200)!r}") from None
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdecimal() and int(key[:9]) < len(value):
            value = value[int(key[:9])]
        else:
            raise RequestError(f"{where} has nothing at {pointer}: there is no {cut(key, 80)!r}")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
