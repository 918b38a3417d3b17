"""`harness certify`: a line a check, a card and a badge."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from pathlib import Path

from harness.api.errors import DataError, UserError, near
from harness.api.printable import clean_name
from harness.cli import options as opt
from harness.cli.usage import Parser
from harness.config.project import Project, at, find
from harness.plugins.approvals import MARKER
from harness.plugins.extension import Extension
from harness.plugins.manifests import of_third_parties

from .card import CardSource, card, write
from .certify import CHECKS, Benchmark, Certificate, CheckLine
from .certify import certify as try_all
from .trial import Confinement

_WIDTH = max(map(len, CHECKS)) + 2


def options(command: Parser) -> None:
    """The options of `harness certify`."""
    text = "a spec's file or name; or a project's folder, or an installed package by name or folder: all of its specs"
    command.add_argument("benchmark", metavar="SPEC | PACKAGE", help=text)
    text = "the folder for harness-card.json and harness-badge.svg (default: the working directory)"
    command.add_argument("-o", "--output", metavar="FOLDER", default=".", help=text)
    opt.add(command, "set", "limit", "seed", "repeats", "data_dir", "allow_code_execution", "sandbox")


def certify(options: argparse.Namespace) -> int:
    """Certify a benchmark, or all of a package; 0 if every check passed, else 1."""
    project = find()
    names, source = _named(options.benchmark, project)
    done: list[Certificate] = []
    for name in names:
        print(f"{clean_name(name)}:", flush=True)
        done.append(try_all(_benchmark(name, project, options), _print))
    data = card(done, source)
    for path in write(data, Path(options.output)):
        print(f"wrote: {path}")
    failed = [one.spec for one in done if not one.passed]
    if failed:
        print(f"not certified: {', '.join(map(clean_name, failed))}", file=sys.stderr)
    return int(bool(failed))


def _benchmark(name: str, project: Project, options: argparse.Namespace) -> Benchmark:
    return Benchmark(
        name=name,
        project=project,
        overrides=[*options.overrides, *([f"task.data_dir={options.data_dir}"] if options.data_dir else [])],
        limit=options.limit,
        seed=options.seed,
        repeats=options.repeats,
        confinement=Confinement(options.allow_code_execution, options.sandbox),
    )


def _print(line: CheckLine) -> None:
    verdict = "pass" if line.passed else "FAIL"
    print(f"  {verdict}  {line.name:{_WIDTH}}{clean_name(line.reason)}", flush=True)


def _named(given: str, project: Project) -> tuple[list[str], CardSource]:
    """(the specs to certify, whose they are).

    Raises:
        DataError, SpecError: there is neither a spec nor a package of that name, or it has no specs.
    """
    folder = Path(given)
    if folder.is_dir():
        return _of_folder(folder.resolve(), project)
    for one in of_third_parties().values():
        if given in (one.name, one.distribution):
            return _of_package([one], given)
    try:
        project.spec(given)
    except UserError as error:
        packages = [word for one in of_third_parties().values() for word in (one.name, one.distribution)]
        hint = near(given, packages) if packages else error.hint
        raise DataError(f"there is no spec and no installed package {clean_name(given)!r:.100}", hint=hint) from None
    return [given], CardSource(project.name)


def _of_folder(folder: Path, project: Project) -> tuple[list[str], CardSource]:
    if folder == project.root:
        return _specs(project, str(folder)), CardSource(project.name)
    own = [one for one in of_third_parties().values() if one.file.resolve().is_relative_to(folder)]
    if own:
        return _of_package(own, str(folder))
    if (folder / MARKER).is_file():
        raise DataError(f"{folder} is another project", hint=f"Certify it from within: cd {folder}; harness certify .")
    hint = f"If it is a package of harness, install it first: pip install -e {folder}"
    raise DataError(f"{folder} holds no project and no installed package", hint=hint)


def _of_package(extensions: list[Extension], given: str) -> tuple[list[str], CardSource]:
    names = [
        name
        for one in extensions
        for place in one.points["projects"].values()
        for name in _specs(at(one.file.parent / place), given)
    ]
    if not names:
        raise DataError(f"{given} brings no specs", hint="Its manifest names a project: [projects] NAME = 'plugins'.")
    distribution = extensions[0].distribution
    return names, CardSource(distribution, importlib.metadata.version(distribution))


def _specs(project: Project, given: str) -> list[str]:
    """The specs in a project's own folder."""
    names = sorted(name for name, file in project.files("specs").items() if file.is_relative_to(project.root))
    if not names:
        raise DataError(f"{given} has no specs", hint="Specs lie in specs/*.yaml.")
    return names
