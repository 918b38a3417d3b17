"""Projects: folders that hold plugins, specs and prompts. Finds, lists and loads; the only importer of plugins.

A project is a folder with `harness.yaml`. A plugin's name is its path: `registry/tasks/agentsnet/coloring.py`
is the task `agentsnet/coloring`. Listing reads directories (and docstrings, without importing); loading imports
one file. Plugin code runs only from the project the user is in and the parents it names; that of a parent that lies
elsewhere once it is approved (`harness.plugins.approvals`).
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import os
import sys
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from harness.api import Engine
from harness.api.errors import DataError, HarnessError, Place, PluginError, SpecError, UserError, near
from harness.api.plugin import MOUNT
from harness.config import yamls
from harness.config.prompts import PROMPT_SET, PromptSet, about
from harness.plugins import approvals, parameters
from harness.plugins.approvals import BUILTIN, DIGEST, MARKER
from harness.plugins.extension import Offer
from harness.plugins.manifests import offers

if TYPE_CHECKING:
    from harness.config.listings import ListLine

_ELSEWHERE = set[str]()
"""The private names of projects elsewhere, whose plugins are imported as they were approved."""
PATTERNS = {"specs": "*.yaml", "prompts": PROMPT_SET}


class ProjectEntry(TypedDict, total=False):
    """What `harness.yaml` may say."""

    name: str
    description: str
    author: str
    parents: list[str]


@dataclass(frozen=True)
class Project:
    """A folder of plugins, and the projects it builds on (searched after it, in order)."""

    root: Path
    name: str
    parents: tuple[Project, ...] = ()
    author: str | None = None
    _loaded: dict[tuple[str, str], type[Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def lineage(self) -> Iterator[Project]:
        """This project, then its parents, each once."""
        roots: set[Path] = set()
        queue: list[Project] = [self]
        while queue:
            project = queue.pop(0)
            if project.root not in roots:
                roots.add(project.root)
                yield project
                queue += project.parents

    # ------------------------------------------------------------------ plugins

    def files(self, kind: str) -> dict[str, Path]:
        """Name → file of every plugin of a kind, of `specs`, or of `prompts`; nearest project first."""
        files: dict[str, Path] = {}
        for home in self._homes(kind):
            for file in sorted(home.rglob(PATTERNS.get(kind, "*.py"))):
                below = file.relative_to(home)
                parts = (below.parent if kind == "prompts" else below.with_suffix("")).parts
                if _names_one(kind, parts):
                    files.setdefault("/".join(parts), file)
        for name, offer in _offered(kind).items():
            files.setdefault(name, offer.source)
        return files

    def file(self, kind: str, name: str) -> Path | None:
        """The file of one name in `files`, for which no folder is read; None if the name is not there."""
        if not _names_one(kind, name.split("/")):
            return None
        below = f"{name}/{PROMPT_SET}" if kind == "prompts" else f"{name}{'.yaml' if kind == 'specs' else '.py'}"
        own = next((file for home in self._homes(kind) if _is_file(file := home / below)), None)
        return own or (offer.source if (offer := _offered(kind).get(name)) is not None else None)

    def _homes(self, kind: str) -> list[Path]:
        """The folders in which plugins of a kind, specs or prompt sets lie; the nearest project's first."""
        offer = offers("kinds").get(kind)
        folder = kind if offer is None else offer.value.get("home", f"registry/{kind}")
        return [project.root / folder for project in self.lineage()]

    def listing(self, kind: str) -> list[ListLine]:
        """Every plugin of a kind, spec or prompt set with its one-line description; nothing is imported."""
        from harness.config.listings import listed

        return listed(self.files(kind))

    def load(self, kind: str, name: str, place: Place | None = None) -> type[Any]:
        """Import the plugin class. Raises `PluginError` with near matches, or with the failing line."""
        if (kind, name) not in self._loaded:  # specs name the same plugin hundreds of times
            self._loaded[kind, name] = self._import(kind, name, place)
        return self._loaded[kind, name]

    def _import(self, kind: str, name: str, place: Place | None) -> type[Any]:
        word, file = offers("kinds")[kind].value["singular"], self.file(kind, name)
        if file is None:
            from harness.config.missing_names import no_plugin

            names = [listed.name for listed in self.listing(kind)]
            raise no_plugin(kind, name, self._near(kind, name, names), place)
        before = len(sys.modules)
        try:
            module_name = self._module(kind, file)
            module = importlib.import_module(module_name)
            _note_digests(itertools.islice(reversed(sys.modules.values()), len(sys.modules) - before))
        except HarnessError:
            raise
        except (Exception, SystemExit) as error:
            from harness.config.missing_names import raise_import_error

            raise_import_error(f"{word} {name!r}", error, file, place)
        return _tagged(module, offers("kinds")[kind], name, file)

    def _module(self, kind: str, file: Path) -> str:
        if (offer := next((one for one in _offered(kind).values() if one.source == file), None)) is not None:
            return f"{offer.extension.package}.{offer.reference()}"
        if (root := self._home(file)) is not None:
            below = file.relative_to(root).with_suffix("").parts
            return ".".join((mount(root, root in self.elsewhere()), *below))
        raise PluginError(f"{file} lies outside the project")

    def _home(self, file: Path) -> Path | None:
        """The root of the project that a file belongs to: the innermost one, as packages may lie within a project."""
        roots = [project.root for project in self.lineage() if file.is_relative_to(project.root)]
        return max(roots, key=lambda root: len(root.parts), default=None)

    def elsewhere(self) -> set[Path]:
        """The roots of those parents whose plugins need approval: neither below this project's root nor installed."""
        roots = {project.root for project in self.lineage()}
        foreign = {root for root in roots if not approvals.is_own(root / MARKER, self.root)}
        return foreign - {project.root for project in builtin().lineage()} if foreign else foreign

    def mount(self) -> None:
        """Make the project's plugins importable under the names that they have in pickles. Raises as `mount`."""
        for project in self.lineage():
            mount(project.root, project.root in self.elsewhere())

    # ------------------------------------------------------------------ prompts, specs, published figures

    def prompts(self, name: str, place: Place | None = None) -> PromptSet:
        """A prompt set with its lookup chain."""
        chain, description, current = [], "", name
        form: dict[str, Any] = {}
        while current:
            file = self.file("prompts", current)
            if file is None:
                from harness.config.missing_names import no_prompt_set

                known = builtin().file("prompts", current) is not None
                homes = [] if known else [project.root / "prompts" for project in self.lineage()]
                raise no_prompt_set(current, self._near("prompts", current, self.files("prompts")), homes, place)
            folder = file.parent
            if folder in chain:
                raise PluginError(f"prompt set {name!r} is its own base", place=place)
            chain.append(folder)
            found = about(file)
            description = description or found.data.get("description") or ""
            form = {key: one for key, one in found.data.items() if key not in ("description", "base")} | form
            current, place = found.data.get("base") or "", found.place("base")
        return PromptSet(name, chain, description, **form)

    def spec(self, name: str, place: Place | None = None) -> Path:
        """The file of a spec given as a path or as a name. Raises `SpecError` with near matches.

        A path counts from the folder of the spec that mentions it at `place`, else from the working directory.
        """
        beside = [Path(place.file).parent / name] if place else []
        for path in (*beside, Path(name)):
            if _is_file(path):
                return path
        # `specs/agentsnet.yaml` also works where the built-in project is not the working directory.
        short = name.removeprefix("specs/").removesuffix(".yaml")
        if (file := self.file("specs", short)) is not None:
            return file
        from harness.config.missing_names import no_spec

        raise no_spec(name, self._near("specs", short, self.files("specs")), place)

    def _near(self, kind: str, name: str, names: Iterable[str]) -> str:
        """What to do about a name that is not there; where only the built-in project has it: how to take it over."""
        own = builtin()
        if any(one.root == own.root for one in self.lineage()) or own.file(kind, name) is None:
            return near(name, names)
        how = f"add {BUILTIN} to parents: in {self.root / MARKER}, as in parents: [{BUILTIN}]."
        return f"The built-in project has it, and this one does not build on that: {how}"

    def published(self) -> list[Path]:
        """Folders of published figures: `results/published` of the project and its parents."""
        return [p for project in self.lineage() if (p := project.root / "results" / "published").is_dir()]

    def results(self) -> Path:
        """Where runs are kept: the project's folder for a working directory in it, else `./results`."""
        return self.root / "results" if Path.cwd().is_relative_to(self.root) else Path("results")


def find(start: Path | None = None) -> Project:
    """The project around `start` (default: the working directory), else the built-in one."""
    root = approvals.standing_in(start)
    return builtin() if root in (None, _builtin_root()) else _open(root, ())


def at(root: Path) -> Project:
    """The project whose folder this is, even if it is not one's own. Raises `DataError`, `SpecError`."""
    return _open(root.resolve(), ())


def builtin() -> Project:
    """The project that ships with harness: beside the package in a checkout and in a wheel. It builds on those that
    installed extensions add.
    """
    if (root := _builtin_root()) is None:
        raise DataError("the built-in project is missing from this installation", hint="Reinstall mas-eval-harness.")
    return replace(_open(root, ()), parents=tuple(_brought()))


def _builtin_root() -> Path | None:
    package = Path(__file__).resolve().parent.parent
    folders = (package.with_name(BUILTIN), package.parent)
    return next((folder for folder in folders if (folder / MARKER).is_file()), None)


def _brought() -> Iterator[Project]:
    """The projects of extensions; one with a mistake is left out, with a warning."""
    for offer in offers("projects").values():
        try:
            yield _open(offer.extension.file.parent / offer.value, (), is_brought=True)
        except UserError as error:
            warnings.warn(f"the extension {offer.extension.name} has no plugins: {error}", stacklevel=2)


def _open(root: Path, via: tuple[Path, ...], is_brought: bool = False) -> Project:
    """The project in a folder. `is_brought`: the built-in project builds on it, and so is none of its parents here."""
    document = yamls.read(root / MARKER)
    data = {} if document.data is None else document.data
    for path, what in parameters.problems(data, ProjectEntry):
        raise SpecError(what, place=document.place(*path))
    parents = []
    for i, parent in enumerate(data.get("parents", [])):
        if parent == BUILTIN:
            parents += [] if is_brought else [builtin()]
            continue
        path = (root / parent).resolve()
        if path in (root, *via):
            raise SpecError(f"project {parent!r} is its own parent", place=document.place("parents", i))
        if not (path / MARKER).is_file():
            hint = f"{near(parent, [BUILTIN])} That one is built in; all others are folders, from {root}."
            place = document.place("parents", i)
            raise SpecError(f"no project at {path} (it has no {MARKER})", place=place, hint=hint)
        parents.append(_open(path, (*via, root), is_brought))
    return Project(root, str(data.get("name", root.name)), tuple(parents), data.get("author"))


def _offered(kind: str) -> Mapping[str, Offer]:
    """The plugins that manifests declare: engines."""
    return offers(kind) if kind == "engines" else {}


def _names_one(kind: str, parts: Sequence[str]) -> bool:
    """Whether these parts of a path can be a name: of plugins, files that begin with `_` or `.` are helpers."""
    if kind in offers("kinds"):
        return not any(part.startswith(("_", ".")) or not part for part in parts)
    return not any(part in ("", ".", "..") for part in parts)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name of 5,000 letters, or with a NUL
        return False


def mount(root: Path, elsewhere: bool = False) -> str:
    """Make all modules below `root` importable under a private name, without touching `sys.path`.

    Raises `NotApprovedError` for a project elsewhere whose plugins are not approved.
    """
    name = f"{MOUNT}{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"
    elsewhere = elsewhere or (not approvals.is_installed(root / MARKER) and _leads_elsewhere(root))
    if elsewhere:
        from harness.config.foreign_plugins import admit

        admit(root, _ELSEWHERE)
    (_ELSEWHERE.add if elsewhere else _ELSEWHERE.discard)(name)
    if name not in sys.modules:
        module = types.ModuleType(name, f"The harness project at {root}.")
        module.__path__ = [str(root)]
        sys.modules[name] = module
    return name


def _leads_elsewhere(root: Path) -> bool:
    """Whether a link among the plugins of a project leads out of what may run; it counts as what it leads to."""
    for home in (root / "registry", root / "metrics"):
        for folder, folders, files in [(str(root), [home.name], []), *os.walk(home)]:
            links = (path for name in (*folders, *files) if (path := Path(folder, name)).is_symlink())
            if any(not approvals.is_own(link, root) for link in links):
                return True
    return False


def _note_digests(modules: Iterable[types.ModuleType]) -> None:
    """Let plugins' modules say which source they were made from: in a long session their files may change later."""
    for module in modules:
        if module.__name__.startswith(MOUNT) and getattr(module, "__file__", None):
            setattr(module, DIGEST, hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest())


def _tagged(module: types.ModuleType, kind: Offer, name: str, file: Path) -> type[Any]:
    """The plugin class of a module. Raises `PluginError` if it is none that a spec can use."""

    def refusal(what: str, hint: str | None = None) -> PluginError:
        return PluginError(f"{kind.value['singular']} {name!r}: {what}", place=Place(str(file)), hint=hint)

    tagged = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and "__harness_plugin__" in vars(value)
    ]
    if len(tagged) != 1:
        hint = "A plugin file has exactly one class tagged @plugin; helpers live in files that start with '_'."
        raise refusal(f"found {len(tagged)} tagged classes", hint)
    cls, base = tagged[0], kind.load_instance(type)
    if not issubclass(cls, base):
        hint = f"Derive it from {base.__module__}.{base.__name__}."
        raise refusal(f"class {cls.__name__} is not a subclass of {base.__name__}", hint)
    taken = {key for key in vars(Engine) if isinstance(getattr(Engine, key), frozenset | types.FunctionType)}
    if base is Engine and (hidden := sorted(taken.intersection(_parameters_of(cls)))):
        hint = f"Call it {hidden[0]}_, which YAML writes {hidden[0]}."
        raise refusal(f"its parameter {hidden[0]!r} hides Engine.{hidden[0]}", hint)
    try:
        unusable = list(parameters.unusable(cls))
    except (NameError, TypeError, SyntaxError) as error:  # an annotation of what is imported for type checkers only
        hint = "Import what they name where the file runs."
        raise refusal(f"the types of its parameters cannot be read: {error}", hint) from None
    for parameter, spelled in unusable:
        hint = "Keys are text or whole numbers; sets hold text, numbers, and tuples or frozensets of them."
        raise refusal(f"no YAML can write its parameter {parameter!r}, {spelled}", hint)
    if abstract := getattr(cls, "__abstractmethods__", None):
        raise refusal(f"class {cls.__name__} does not define {', '.join(sorted(abstract))}")
    return cls


def _parameters_of(cls: type[Any]) -> list[str]:
    return [one.name for one in fields(cls)] if is_dataclass(cls) else []
