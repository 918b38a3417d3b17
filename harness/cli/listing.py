"""`harness list | schema`: what there is, and what each takes."""

from __future__ import annotations

import argparse
import json
from typing import Any

from harness.api.errors import DataError
from harness.cli.parser import kinds
from harness.config.project import find
from harness.plugins.manifests import offers
from harness.plugins.missing_extensions import missing
from harness.plugins.parameters import json_schema


def listing(options: argparse.Namespace) -> int:
    """Print every plugin, prompt set or spec with its description; or tasks that an extension lists."""
    lists = offers("lists")
    asked = [name for name in lists if getattr(options, name) is not None]
    for name, offer in lists.items():
        command = f"harness list tasks --{name} [WORD]"
        for folder in offer.value.get("folders", {}):
            if getattr(options, folder) and name not in asked:
                raise DataError(f"--{folder} goes with --{name}", hint=f"Give: {command} --{folder} FOLDER")
        if name in asked and (options.kind not in (None, "tasks") or len(asked) > 1):
            both = f", and --{asked[1]} others" if len(asked) > 1 else ""
            raise DataError(f"--{name} lists tasks{both}", hint=f"Give: {command}")
    for name in asked:
        listed_elsewhere: int = lists[name].load_function()(options)
        return listed_elsewhere
    project = find()
    if options.kind is None:
        for kind, about in kinds().items():
            print(f"{kind:<10} {len(project.listing(kind)):>4}  {about}")
        print("\nharness list KIND names them; harness schema KIND NAME says what one can be given.")
        for name, why in missing().items():
            print(f"The extension {name} {why}")
        return 0
    listed = project.listing(options.kind)
    width = max((len(entry.name) for entry in listed), default=0)
    for entry in listed:
        text = entry.description if entry.problem is None else f"BROKEN: {entry.problem}"
        print(f"{entry.name:<{width}}  {text}".rstrip())
    return 2 if any(entry.problem for entry in listed) else 0


def schema(options: argparse.Namespace) -> int:
    """Print JSON Schema: of specs with the plugins' parameters, of all plugins of a kind, or of one."""
    project = find()
    if options.kind and options.name:
        plugin: Any = project.load(options.kind, options.name)
        print(json.dumps(json_schema(plugin), indent=2))
        return 0
    if options.kind:
        plugins: dict[str, Any] = {
            one.name: project.load(options.kind, one.name) for one in project.listing(options.kind)
        }
        print(json.dumps({name: json_schema(plugin) for name, plugin in plugins.items()}, indent=2))
        return 0
    from harness.config.editor_schema import schema_text

    print(schema_text(project))
    return 0
