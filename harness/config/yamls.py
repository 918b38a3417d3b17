"""Safe, bounded YAML that remembers where everything is.

YAML is hostile input here: only plain data (no tags), no duplicate keys, and limits on size, depth and
alias expansion, so that neither a typo nor an "alias bomb" gets far. Keys are always the text that the
file has: `4:`, `yes:` and `2024-01-01:` are what they look like, as they will be in JSON. Values are read by the core
schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema), not by the rules of YAML 1.1 that PyYAML has:
`010` is ten, `12:30` and `yes` are texts. As in YAML 1.1, `1_000` is a number and `2024-01-01` is kept as it stands.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness.api.errors import KEY, DataError, Place, SpecError, ValuePath

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_NODES = 50_000
MAX_NUMBER = 100
"""Characters of a number: base 16 makes others of any size, in quadratic time."""
MAX_INT = 2**63 - 1

_PLAIN = frozenset({"map", "seq", "str", "int", "float", "bool", "null"})
_TAG = "tag:yaml.org,2002:"
_SCHEMA = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "float": (
        r"[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    "int": (r"[-+]?[0-9][0-9_]*|0b[01_]+|0o[0-7]+|0x[0-9a-fA-F_]+", "-+0123456789"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "merge": (r"<<", "<"),
}
"""What plain words are: tag → (pattern of the whole word, how it may begin)."""


def _at(mark: yaml.Mark | None, file: str) -> Place:
    return Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)


class _Nodes(yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """Makes data of what a parser finds, by `_SCHEMA`; it stops at `MAX_NODES` values.

    Its `build` turns nodes into data, counts what aliases expand to, and notes `places`.
    """

    peek_event: Any  # the parser's

    def __init__(self, file: str) -> None:
        for part in (yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
            part.__init__(self)
        self.file, self.composed, self.nodes = file, 0, 0
        self.places: dict[ValuePath, Place] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.composed += 1
        if self.composed > MAX_NODES:
            place = _at(self.peek_event().start_mark, self.file)
            raise SpecError(f"holds more than {MAX_NODES:,} keys and values", place=place)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node

    def at(self, node: yaml.Node) -> Place:
        return _at(node.start_mark, self.file)

    def build(self, node: yaml.Node, path: ValuePath) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise SpecError(f"expands to more than {MAX_NODES:,} values (aliases?)", place=self.at(node))
        if len(path) > MAX_DEPTH:
            raise SpecError(f"nested deeper than {MAX_DEPTH} levels", place=self.at(node))
        self.places[path] = self.at(node)
        if node.tag.removeprefix(_TAG) not in _PLAIN:
            hint = "Instead of !function write a task of your own: docs/how-to/datasets.md, More than YAML can say."
            raise SpecError(
                f"tag {node.tag} is not allowed: specs are plain data",
                place=self.at(node),
                hint=hint if node.tag == "!function" else None,
            )
        if isinstance(node, yaml.MappingNode):
            return dict(self.pairs(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]
        return self.scalar(node)

    def pairs(self, node: yaml.MappingNode, path: ValuePath) -> Iterator[tuple[str, Any]]:
        places: dict[str, Place] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise SpecError("a key must be a plain word", place=self.at(key_node))
            if key_node.tag.endswith(":merge"):
                raise SpecError("'<<' is not supported; use extends:", place=self.at(key_node))
            key = key_node.value
            if key in places:
                raise SpecError(f"duplicate key {key!r}, first at {places[key]}", place=self.at(key_node))
            places[key] = self.places[(*path, key, KEY)] = self.at(key_node)
            yield key, self.build(value_node, (*path, key))

    def scalar(self, node: yaml.Node) -> Any:
        if node.tag.endswith((":int", ":float")) and len(node.value) > MAX_NUMBER:
            message = f"a number of {len(node.value):,} characters, {node.value:.20}…; at most {MAX_NUMBER} are read"
            raise SpecError(message, place=self.at(node), hint="If it is meant as text, put it in quotes.")
        try:
            value = self.number(node) if node.tag in (f"{_TAG}int", f"{_TAG}float") else self.construct_object(node)
        except (ValueError, OverflowError) as error:
            raise SpecError(f"broken YAML: {error}", place=self.at(node)) from None
        if isinstance(value, int) and abs(value) > MAX_INT:
            hint = "If it is meant as text, put it in quotes."
            raise SpecError(f"the number {node.value} is beyond ±(2^63 − 1)", place=self.at(node), hint=hint)
        if isinstance(value, float) and math.isnan(value):
            # It equals nothing, not even itself: no run could be compared or gone on with.
            raise SpecError("not a number: .nan is no value to work with", place=self.at(node))
        return value

    @staticmethod
    def number(node: yaml.Node) -> int | float:
        """A number by `_SCHEMA`, or what has the tag of one. Raises `ValueError`."""
        text = node.value.replace("_", "").lower()
        if node.tag == f"{_TAG}float":
            return float(text.replace(".inf", "inf").replace(".nan", "nan"))
        return int(text, 0) if text[:2] in ("0b", "0o", "0x") else int(text)


class _Loader(_Nodes, yaml.SafeLoader):
    """With PyYAML's own parser, whose errors say what is wrong."""

    def __init__(self, text: str, file: str) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Nodes.__init__(self, file)


if yaml.__with_libyaml__:
    from yaml.cyaml import CParser  # type: ignore[attr-defined]

    class _Fast(_Nodes, CParser):
        """With libyaml's parser, which takes a third of the time."""

        def __init__(self, text: str, file: str) -> None:
            CParser.__init__(self, text)
            _Nodes.__init__(self, file)


_APART = re.compile(r"[\t\ufeff!]|[|>][-+0-9]*#")
"""Where libyaml and PyYAML read some texts differently: PyYAML reads these everywhere."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Its inverse: it quotes a text that this reader, or one of YAML 1.1 such as lm-eval's, would take for something
    else."""


_Nodes.yaml_implicit_resolvers = {}
for _end in (_Nodes, _Dumper):
    for _name, (_words, _firsts) in _SCHEMA.items():
        _end.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"^(?:{_words})\Z"), list(_firsts))


@dataclass(frozen=True)
class Document:
    """A YAML document as plain data, with the place of every value and key."""

    data: Any
    file: str
    places: dict[ValuePath, Place] = field(default_factory=dict)

    def place(self, *path: Hashable) -> Place:
        """The place of the value at `path`, or of the nearest thing around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.file))


def read(path: Path) -> Document:
    """Read a file. Raises `DataError` if it cannot be read, `SpecError` if it is not acceptable YAML."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        return parse(raw.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise SpecError(f"not UTF-8 text (byte {error.start})", place=Place(str(path))) from None


def parse(text: str, file: str) -> Document:
    """Parse one YAML document. `file` is only for messages. Raises `SpecError`."""
    if len(text) > MAX_BYTES:
        raise SpecError(f"larger than {MAX_BYTES:,} bytes", place=Place(file))
    if yaml.__with_libyaml__ and not _APART.search(text):
        with contextlib.suppress(SpecError, yaml.YAMLError, RecursionError, UnicodeError):  # in words, below
            return _document(_Fast(text, file))
    loader = None
    try:
        loader = _Loader(text, file)
        return _document(loader)
    except yaml.YAMLError as error:
        from harness.config.broken_yaml import in_words  # what only a mistake needs

        raise in_words(error, text, file) from None
    except RecursionError:
        place = _at(loader.get_mark() if loader is not None else None, file)  # how far it was read
        raise SpecError(f"nested deeper than {MAX_DEPTH} levels", place=place) from None
    finally:
        if loader is not None:
            loader.dispose()


def _document(loader: Any) -> Document:
    node = loader.get_single_node()
    return Document(loader.build(node, ()) if node is not None else None, loader.file, loader.places)


def dump(data: Any, width: int = 120) -> str:
    """Plain data as YAML that `parse` reads back as the same data."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width)
    return text
