"""Which variables a template reads, also in branches that are not taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jinja2 import meta, nodes

from harness.api.errors import Place
from harness.config.prompts import SUFFIX, PromptSet


@dataclass(frozen=True)
class TemplateReading:
    """What a template's source says: free variables with their places, names that it sets, templates it includes."""

    variables: Mapping[str, Place]
    assigned: frozenset[str]
    includes: tuple[str, ...]

    @classmethod
    def of(cls, prompts: PromptSet, template: str) -> TemplateReading:
        """That of a template of a set. Raises `PromptError`."""
        tree, file = prompts.parsed(template), str(prompts.files[template])
        names = list(tree.find_all(nodes.Name))
        # Who asks whether a name is defined allows for its absence, in what it includes too.
        tested = [test.node for test in tree.find_all(nodes.Test) if test.name == "defined"]
        optional = {node.name for node in tested if isinstance(node, nodes.Name)}
        free = meta.find_undeclared_variables(tree) - optional
        return cls(
            {n.name: Place(file, n.lineno, 1) for n in names if n.name in free},
            frozenset(n.name for n in names if n.ctx == "store") | optional,
            tuple(name.removesuffix(SUFFIX) for name in meta.find_referenced_templates(tree) if name),
        )


def unknown(prompts: PromptSet, template: str, names: set[str], via: tuple[str, ...] = ()) -> list[tuple[str, Place]]:
    """Variables that a template, or what it includes, reads and that are not among `names`, with their places: also in
    branches that are not taken. Raises `PromptError` for a template that does not compile or is not there."""
    reading = TemplateReading.of(prompts, template)
    found = [(name, place) for name, place in reading.variables.items() if name not in names]
    for included in reading.includes:
        if included in prompts.files and included not in via:
            found += unknown(prompts, included, names | reading.assigned, (*via, template))
    return found
