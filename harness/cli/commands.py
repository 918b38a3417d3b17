"""Which commands there are: the core's, and those of extensions. Imports next to nothing, as `--help` is instant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from harness.cli.usage import Parser
from harness.manifests import Offer, offers

SERVER: Final = "base_url=http://localhost:8000/v1,model=Qwen/Qwen3-8B"


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        help: what it does, in a few words.
        usage: what a command line of it must have.
        run: loads the function that runs it: from parsed options to the exit code.
        options: adds its options to its parser.
        examples: command lines that can be given as they are, where a server answers and labels.csv has labels of
            people. Tests run those of all commands in order, as they stand here.
    """

    help: str
    usage: str
    run: Callable[[], Callable[[Any], int]]
    options: Callable[[Parser], None]
    examples: tuple[str, ...]

    @property
    def ending(self) -> str:
        """The last part of its help."""
        return "\n".join([f"example{'s' * (len(self.examples) > 1)}:", *map(_folded, self.examples)])


def commands() -> dict[str, Command]:
    """Name → command, in the order of `harness --help`."""
    from harness.cli.parser import CORE

    return CORE | {name: _offered(offer) for name, offer in offers("commands").items()}


def _offered(offer: Offer) -> Command:
    return Command(
        offer.value["help"],
        offer.value["usage"],
        offer.load_function,
        lambda parser: offer.load_function("options")(parser),
        tuple(offer.value.get("examples", ())),
    )


def _folded(line: str) -> str:
    """The line, indented; of a long one each option that would stand beyond 78 columns begins another line."""
    lines = [" "]
    for part in line.replace(" --", "\n--").replace(" -o", "\n-o").split("\n"):
        if len(lines[-1]) + len(part) < 76:
            lines[-1] += f" {part}"
        else:
            lines.append(f"      {part}")
    return " \\\n".join(lines)
