"""argparse that teaches: a short usage line, near matches, and the error as the last line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Sequence
from typing import Any, NoReturn


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help beside the options rather than below them; of a list of commands the commands alone."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        return text.partition("\n")[2] if isinstance(action, argparse._SubParsersAction) else text

    def _iter_indented_subactions(self, action: argparse.Action) -> Generator[argparse.Action, None, None]:
        yield from action._get_subactions() if isinstance(action, argparse._SubParsersAction) else ()


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes end like all others of this command line: `error: …`, exit code 2.

    Args:
        needs: what a command line must have, for the usage line; None lists everything, as argparse does.

    Attributes:
        words: those of the command line, if they are known.
    """

    words: Sequence[str] | None = None

    def __init__(self, *, needs: str | None = None, **settings: Any) -> None:
        super().__init__(formatter_class=_Help, add_help=False, allow_abbrev=False, **settings)
        self._positionals.title = "arguments"
        if needs is not None:
            self.usage = " ".join(filter(None, (self.prog, needs, "[options]")))

    def group(self, title: str) -> argparse._ArgumentGroup:
        """The group of options with this title, in the order in which groups were first asked for."""
        known = (group for group in self._action_groups if group.title == title)
        return next(known, None) or self.add_argument_group(title)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse does; what is left over is a mistake of the command, which `parse_known_args` has reported."""
        options, left = self.parse_known_args(args, namespace)
        if left:
            self.error(f"unexpected argument {left[0]!r}")
        return options

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Looks at options first: one that is misspelt is the mistake, not what is missing in consequence."""
        args = sys.argv[1:] if args is None else args
        self._check_options(args)
        options, left = super().parse_known_args(args, namespace)
        if left and self._subparsers is None:
            self.error(f"unexpected argument {left[0]!r}")
        return options, left

    def _check_options(self, args: Sequence[str]) -> None:
        options = [*self._option_string_actions]
        takes_spec = "--spec" in options and not any(not action.option_strings for action in self._actions)
        if takes_spec and args and args[0] and not args[0].startswith("-"):
            self.error(f"found {args[0]!r} where an option is due: name the spec with --spec {args[0]}")
        for arg in args:
            if arg == "--" or (self._subparsers is not None and not arg.startswith("-")):
                return  # what follows are values, or a command, which looks at its own options
            name = arg.partition("=")[0]
            if len(name) > 2 and name[1].isalpha() and name.startswith("-") and f"-{name}" in options:
                self.error(f"unknown option {name}. Did you mean -{name}?")
            if name.startswith("--") and " " not in name and name not in options:
                from harness.cli.usage_errors import unknown_option

                self.error(unknown_option(name, options))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from harness.cli.usage_errors import unknown_value

            raise argparse.ArgumentError(None, unknown_value(action, value))

    def error(self, message: str) -> NoReturn:
        """Usage, then the error: the last line is what to read."""
        from harness.cli.usage_errors import in_words

        what = in_words(message, [action for action in self._actions if action.required])
        self.exit(2, f"{self.format_usage()}`{self.prog} --help` says more\nerror: {what}\n")
