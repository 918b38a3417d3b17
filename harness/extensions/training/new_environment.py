"""`harness new environment SPEC`: an installable package with a spec, for `verifiers` and its hub."""

from __future__ import annotations

import argparse
import json
import keyword
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from harness import __version__
from harness.api.errors import SpecError
from harness.config.project import Project, at, builtin, find
from harness.plugins.approvals import BUILTIN, MARKER

from .environment import TrainingEnv

PROJECT: Final = "project"
"""The folder of the package with the user's own project."""
OWN_FOLDERS: Final = ("specs", "prompts", "registry", "metrics", "data")
_TAKEN: Final = {*sys.stdlib_module_names, "harbor", "harness", "nemo_gym", "openenv", "textarena", "verifiers"}
"""Modules that `verifiers` would find in place of the package."""
_FIELDS: Final = frozenset(
    {
        "agent_harnesses", "construct", "copy", "dict", "env_id", "from_orm", "id", "interception", "json",
        "max_concurrent_agents", "parse_file", "parse_obj", "parse_raw", "retries", "schema", "schema_json", "taskset",
        "timeout", "update_forward_refs", "validate",
    }
)  # fmt: skip
"""What an environment of `verifiers` has beside its agents."""


def finish(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Write the spec, and what it needs of the user's project, into the package; yields what to try.

    Raises:
        UserError: there is no such spec, it cannot be resolved, or no group of it can learn.
    """
    name, reference, project = folder.name, options.names[1], find()
    module = name.replace("-", "_")
    if options.kind:
        raise SpecError("an environment has no --kind", hint="It is of a spec: harness new environment SPEC.")
    if module in _TAKEN:
        hint = f"Choose another: harness new environment {reference} {name}_env."
        raise SpecError(f"a package {module!r} comes with Python or with verifiers", hint=hint)
    with TrainingEnv(reference, limit=1, project=project) as env:
        learn = sorted(env.learn)
        if not learn:
            hint = "Somebody must learn: leave the policy of a group away."
            place = env.plan.spec.place("agents")
            raise SpecError("the model under test plays no group of the spec", place=place, hint=hint)
    spec = _placed(project.spec(reference), project, folder / module)
    names = agent_names(learn).values()
    texts = {
        '"__SPEC__"': json.dumps(spec, ensure_ascii=False),
        "__SPEC__": spec,
        '"mas-eval-harness[verifiers]"': f'"mas-eval-harness[verifiers]>={__version__}"',
        '["__LEARN__"]': json.dumps(learn, ensure_ascii=False),
        "__AGENTS__": ", ".join(f"`{one}`" for one in names),
        "__AGENT__": next(iter(names)),
    }
    for path in (folder / "pyproject.toml", folder / "README.md", folder / module / "__init__.py"):
        text = path.read_text("utf-8")
        for mark, value in texts.items():
            text = text.replace(mark, value)
        path.write_text(text, "utf-8")
    yield "pip install -e ."
    yield f"vf-eval {name} -n 5 --model MODEL --client.base-url http://localhost:8000/v1"


def _placed(file: Path, project: Project, package: Path) -> str:
    """The name of a spec for those who have the package: of a shipped one its own; one of the user's comes with the
    plugins of its project.

    Raises:
        UserError: the copy cannot be resolved, as it needs something outside of its project.
    """
    there = file.resolve()
    for name, one in builtin().files("specs").items():
        if one.resolve() == there:
            return name
    inner = package / PROJECT
    if there.is_relative_to(project.root.resolve()):
        inner.mkdir()
        shutil.copy(project.root / MARKER, inner / MARKER)
        for folder in filter(Path.is_dir, (project.root / name for name in OWN_FOLDERS)):
            shutil.copytree(folder, inner / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        (inner / "specs").mkdir(parents=True)
        (inner / MARKER).write_text(f"name: {package.name}\nparents: [{BUILTIN}]\n", "utf-8")
    own = project.root.resolve() / "specs"
    name = str(there.relative_to(own).with_suffix("")) if there.is_relative_to(own) else there.stem
    target = inner / "specs" / f"{name}.yaml"
    if not target.exists():
        shutil.copy(there, target)
    TrainingEnv(name, limit=1, project=at(inner)).close()
    return name


def agent_names(groups: Iterable[str]) -> dict[str, str]:
    """Group under `agents:` → the name of its agent in `verifiers`, where it is a field of the environment."""
    names: dict[str, str] = {}
    for group in sorted(groups):
        name = re.sub(r"\W", "_", group, flags=re.ASCII).strip("_") or "agents"
        if not name.isidentifier() or keyword.iskeyword(name) or name in _FIELDS or name.startswith("model_"):
            name = f"agents_{name}"
        while name in names.values():
            name += "_2"
        names[group] = name
    return names
