"""Specs: YAML → one merged, checked, frozen value that knows the place of everything in it.

`load` follows `extends:`, applies `--set`, checks the JSON Schema and the matrix. It loads no plugin: what a task
proposes in place of what the spec leaves out is added by `harness.config.proposals.complete`.
Next: `harness.config.resolve`, which turns its names into objects.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.api.errors import KEY, Place, SpecError, ValuePath, near, raise_all
from harness.api.run_files import META, SPEC
from harness.config import schema, yamls
from harness.config.expansion import VARIABLE, ExpansionBudget, insert
from harness.config.keys import keys_of, measured
from harness.config.project import Project
from harness.plugins import approvals
from harness.plugins.needed_approval import NeededApproval
from harness.tables.kinds import kind_of

# What a reader of two result tables would not call a difference of the benchmark, and how fast it was made.
DISPLAY_KEYS = ("name", "description", "headline", "tables", "cluster", "prices")
"""Keys that decide only how results are shown. They contain no `${…}`."""
PRESENTATION = (*DISPLAY_KEYS, "baseline", "generation_kwargs", "models", "executor")
ALIASES = {"include": "extends", "metric_list": "metrics"}  # lm-eval's words for the same things
# Written into every resolved spec: what is not said and what is said in so many words are the same benchmark.
DEFAULTS = {"seed": 0, "repeats": 1}
SHARED = ("models", "metrics", "executor")
"""What a run has once, whatever the matrix sweeps."""
RESERVED = ("model", "metric")
MAXVARIABLES = 100
MAX_CONDITIONS = 10_000
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Variant:
    """The spec for one combination of matrix values: `labels` name it, `data` has them inserted.

    `chosen` has their positions in the matrix's lists.
    """

    id: str
    labels: dict[str, Any]
    data: dict[str, Any]
    chosen: dict[str, int]


@dataclass(frozen=True)
class Spec:
    """A checked spec. `data` is the merged document before the matrix is applied."""

    name: str
    file: str
    data: dict[str, Any]
    places: dict[ValuePath, Place] = field(repr=False)

    def place(self, *path: Hashable) -> Place:
        """Where the value at `path` was written."""
        return yamls.Document(None, self.file, self.places).place(*path)

    def documents(self, *path: Hashable) -> set[str]:
        """The files that wrote something at `path` or below it, and the one that holds it; see `Place.file`."""
        below = (place.file for written, place in self.places.items() if written[: len(path)] == path)
        return {self.place(*path).file, *below}

    def place_in(self, variant: Variant, *path: Hashable) -> Place:
        """Where the variant's value at `path` was written: in the matrix, if the spec has `${…}` there."""
        value: Any = self.data
        with contextlib.suppress(LookupError, TypeError):  # of a key that is not there the place above counts
            for i, key in enumerate(path, 1):
                value = value[key]
                whole = VARIABLE.fullmatch(value) if isinstance(value, str) else None
                name, *keys = whole[2].split(".") if whole and not whole[1] else [""]
                if name in variant.chosen:
                    return self.place_in(variant, "matrix", name, variant.chosen[name], *keys, *path[i:])
        return self.place(*path)

    def get(self, key: str, default: Any = None) -> Any:
        """A top-level value."""
        value = self.data.get(key)
        return default if value is None else value

    def variants(self) -> list[Variant]:
        """One variant for every combination of matrix values, the last variable turning fastest."""
        matrix: dict[str, list[Any]] = self.get("matrix", {})
        body = {k: v for k, v in self.data.items() if k != "matrix" and k not in DISPLAY_KEYS}
        variants, room = [], ExpansionBudget(self.place("matrix"))
        for combination in itertools.product(*map(range, map(len, matrix.values()))):
            chosen, values = dict(zip(matrix, combination, strict=True)), dict[str, Any]()
            for variable, i in chosen.items():
                values[variable] = insert(matrix[variable][i], values, room)  # may use the variables before it
            labels = {k: v["name"] if isinstance(v, dict) else v for k, v in values.items()}
            name = ",".join(f"{k}={v}" for k, v in labels.items()) or "all"
            variants.append(Variant(name, labels, insert(body, values, room), chosen))
        return variants

    @property
    def swept(self) -> list[str]:
        """The labels by which conditions differ: the matrix's names, and what keys of extensions add."""
        return [*self.get("matrix", {}), *(label for key in keys_of(self) for label in key.labels)]

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The entries of `tables:`, each with the spec's `cluster:` unless it has its own, or its kind has another, and
        with what keys of extensions add."""
        shared = {"cluster": self.data["cluster"]} if "cluster" in self.data else {}
        tables = [{**shared, **table} if _shares(table) else table for table in self.get("tables", [])]
        for key in keys_of(self):
            tables = [dict(key.table(table)) for table in tables]
        return tables

    @property
    def advice(self) -> str | None:
        """What to do if tables name metrics that this spec, or an option, has replaced."""
        if "metrics" not in self.data or self.place("metrics").file == self.place("tables").file:
            return None
        return "`metrics:` replaces the list that these tables were written for. `metrics+:` adds to it."

    def digest(self) -> str:
        """SHA-256 over everything that defines what is measured; not over presentation, models or sampling.

        The order of a spec's keys and of a plugin's parameters does not count. That within a parameter does: roles of
        a team, lines of effects and draws of a world are carried out in order, as are groups of `agents:`.
        """
        body = {k: _unordered(v) if k == "matrix" else v for k, v in measured(self.data).items()}
        body = _unordered({k: v for k, v in body.items() if k not in PRESENTATION})
        return hashlib.sha256(json.dumps(_unordered_plugins(body), default=str).encode()).hexdigest()


def _shares(table: Any) -> bool:
    """Whether `cluster:` of the spec holds for an entry of `tables:`."""
    kind, _ = kind_of(table)
    return kind is None or kind.shares_cluster


def _unordered(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def _unordered_plugins(value: Any) -> Any:
    """`value` with the parameters of all plugins (`use: …`) sorted by name."""
    if isinstance(value, dict):
        named = _unordered(value) if "use" in value else value
        return {key: _unordered_plugins(one) for key, one in named.items()}
    return [_unordered_plugins(one) for one in value] if isinstance(value, list) else value


def load(
    reference: str,
    project: Project,
    overrides: Iterable[str] = (),
    *,
    reduce: Callable[[dict[str, Any]], None] | None = None,
    **keys: Any,
) -> Spec:
    """Read a spec by path or name.

    Args:
        reference: a file, or the name of a spec of the project.
        overrides: `path=value` strings, the value being YAML; they win over the file.
        reduce: takes out of the data what cannot be read here.
        keys: top-level keys (seed, limit, …) that win over both; None leaves a key alone.

    Raises:
        SpecError: with file, line and column, all problems at once.
    """
    file = str(project.spec(reference))
    document = _extended(yamls.read(Path(file)), project, (file,))
    if reduce is not None:
        reduce(document.data)
    return _changed(document, overrides, keys)


def parse(data: Mapping[str, Any], project: Project, overrides: Iterable[str] = (), **keys: Any) -> Spec:
    """A spec from plain data, for Python callers; arguments and errors otherwise as in `load`."""
    try:
        text = json.dumps(data, ensure_ascii=False)
        if "Infinity" in text:  # which is a number in JSON's dialect, and a text in YAML
            import yaml

            text = yaml.safe_dump(json.loads(text), default_flow_style=True, allow_unicode=True, sort_keys=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"a spec is plain data: {error}") from None
    try:
        document = yamls.parse(text, "<dict>")
    except SpecError as error:
        raise SpecError(error.message, place=Place("<dict>", name=_value_place(())), hint=error.hint) from None
    places = {path: replace(place, name=_value_place(path)) for path, place in document.places.items()}
    document = replace(document, places={(): Place("<dict>", name=_value_place(())), **places})
    return _changed(_extended(document, project, ()), overrides, keys)


def _value_place(path: ValuePath) -> str:
    """The place of a value in a spec that has no file.

    >>> _value_place(("tables", 0, "rows"))
    "the spec's tables[0].rows"
    """
    keys = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path if key != KEY]
    return f"the spec's {''.join(keys).removeprefix('.')}" if keys else "the spec"


def _changed(document: yamls.Document, overrides: Iterable[str], keys: Mapping[str, Any]) -> Spec:
    data, places, file = document.data, document.places, document.file
    for assignment in overrides:
        from harness.config.overrides import assign

        assign(data, places, assignment)
    for key, value in keys.items():
        if value is not None:
            data[key] = value
            places[(key,)] = Place(f"--{key} {value}")
    data = {key: value for key, value in data.items() if value is not None}  # `baseline:` alone takes it away
    data |= {key: value for key, value in DEFAULTS.items() if key not in data}
    spec = Spec(str(data.get("name", "")), file, data, places)
    raise_all(
        SpecError(what, place=spec.place(*path), hint=_where_names_are(data) if not path else "")
        for path, what in schema.spec_problems(data)
    )
    _check_matrix(spec)
    return spec


def _where_names_are(data: Mapping[str, Any]) -> str:
    kinds = [f"{key}s" for key in ("task", "protocol") if key not in data]
    return " ".join(f"`harness list {kind}` lists {kind}." for kind in kinds)


def data_roots(spec: Spec, project: Project) -> tuple[Path, ...]:
    """The folders from which relative paths of data count: the working directory, then the project of the spec.

    A run's spec was one of the project around the working directory, or of the project that has one of its name: a
    package's, say.
    """
    if not _is_of_run(spec.file):
        homes = [Path(spec.file).parent]
    else:
        file = project.file("specs", spec.name)
        homes = [project.root, *([file.parent] if file is not None else [])]
    roots = (approvals.standing_in(home) for home in homes)
    return Path(), *dict.fromkeys(root for root in roots if root not in (None, Path.cwd()))


# ------------------------------------------------------------------------------------------ merging


def _extended(document: yamls.Document, project: Project, via: tuple[str, ...]) -> yamls.Document:
    """A spec over those that it extends. `via`: the files that extend one another up to this one."""
    data = document.data
    if data is None:
        needed = ", ".join(schema.SPEC["required"])
        raise SpecError(f"the file is empty; a spec needs {needed}", place=Place(document.file, 1, 1))
    if not isinstance(data, dict):
        raise SpecError("a spec is a mapping of keys to values", place=document.place())
    places = dict(document.places)
    for alias, key in ALIASES.items():
        if alias in data:
            if key in data:
                raise SpecError(f"{alias!r} is another word for {key!r}; give one", place=document.place(alias, KEY))
            data[key] = data.pop(alias)
            places |= {(key, *path[1:]): place for path, place in places.items() if path[:1] == (alias,)}
    base = data.pop("extends", None)
    if base is None:
        _add(data, None, places, document.place())
        fill_in(data.get("matrix"), None, document.place)
        return yamls.Document(data, document.file, places)
    here = places.get(("extends",), document.place())
    if not isinstance(base, str):
        raise SpecError("extends: names one spec", place=here)
    file = str(project.spec(base, here).resolve())
    if not approvals.may_read(Path(file), document.file) and not approvals.is_own(file):
        approvals.require([NeededApproval.reading(Path(file), "extends")], here)
    if file in via:
        raise SpecError(f"extends itself through {' → '.join(via)}", place=here)
    if len(via) >= yamls.MAX_DEPTH:
        raise SpecError(f"extends more than {yamls.MAX_DEPTH} specs, one another", place=here)
    below = _extended(yamls.read(Path(file)), project, (*via, file))
    gone = {*_replaced(below.data, data)}
    kept = {path: at for path, at in below.places.items() if not any(path[:n] in gone for n in range(len(path) + 1))}
    places = {**kept, **places}
    _add(data, below.data, places, document.place())
    whole = yamls.Document(data, document.file, places)
    fill_in(data.get("matrix"), below.data.get("matrix"), whole.place)
    return yamls.Document(over(below.data, data), document.file, places)


def _add(data: dict[str, Any], base: Any, places: dict[ValuePath, Place], here: Place) -> None:
    """`harness.config.additions.add`, where something is added."""
    if _adds(data):
        from harness.config.additions import add

        add(data, base, places, here)


def _adds(data: Any) -> bool:
    return isinstance(data, dict) and any(str(key).endswith("+") or _adds(value) for key, value in data.items())


def _replaced(base: Any, top: Any, path: ValuePath = ()) -> Iterator[ValuePath]:
    """Where `over(base, top)` has nothing of `base`: its places say nothing about what stands there now."""
    if not (isinstance(base, dict) and isinstance(top, dict)) or ("use" in top and top["use"] != base.get("use")):
        return iter([path])
    return itertools.chain(*(_replaced(base[key], top[key], (*path, key)) for key in base.keys() & top.keys()))


def fill_in(matrix: Any, base: Any, place_of: Callable[..., Place]) -> None:
    """Complete the swept values of `matrix` from those of the spec it extends.

    A name stands for the base's mapping of that name, where all values there are mappings. A mapping with
    `inherits: NAME` takes over what it does not say itself from one before it, else from one of the base's.
    """
    for variable, values in matrix.items() if isinstance(matrix, dict) else ():
        below = base.get(variable) if isinstance(base, dict) else None
        below = below if isinstance(below, list) else []
        inherited = {str(value.get("name")): value for value in below if isinstance(value, dict)}
        values_by_name = dict(inherited)
        for i, value in enumerate(values if isinstance(values, list) else ()):
            if isinstance(value, dict):
                if "inherits" in value:
                    above = str(value["inherits"])
                    if above not in values_by_name:
                        message = f"{variable}: no value before this one is called {above!r}"
                        place = place_of("matrix", variable, i, "inherits")
                        raise SpecError(message, place=place, hint=near(above, values_by_name))
                    inherited_from = values_by_name[above]
                    own = {key: over(inherited_from.get(key), item) for key, item in value.items() if key != "inherits"}
                    values[i] = {**inherited_from, **own}
                elif "like" in value and str(value["like"]) in values_by_name:  # a key of one's own may have any name
                    from harness.plugins.renamed import new_key

                    place = place_of("matrix", variable, i, "like")
                    raise SpecError(f"{variable}: {new_key('like', ['inherits'])}", place=place)
                values_by_name[str(values[i].get("name"))] = values[i]
            elif str(value) in inherited:
                values[i] = inherited[str(value)]
            elif inherited and len(inherited) == len(below) and isinstance(value, str | int | float):
                message = f"{variable}: no value is called {value!r}"
                raise SpecError(message, place=place_of("matrix", variable, i), hint=near(str(value), inherited))


def over(base: Any, top: Any) -> Any:
    """`top` over `base`: mappings merge, unless `top` refers to another plugin; null removes; the rest replaces."""
    if not (isinstance(base, dict) and isinstance(top, dict)):
        return top
    if "use" in top and top["use"] != base.get("use"):
        return top
    lower = {k: v for k, v in base.items() if not (k in top and top[k] is None)}
    return {**lower, **{k: over(lower.get(k), v) for k, v in top.items() if not (v is None and k in base)}}


# ------------------------------------------------------------------------------------------- matrix


def _check_matrix(spec: Spec) -> None:
    matrix: dict[str, list[Any]] = spec.get("matrix", {})
    if len(matrix) > MAXVARIABLES:
        raise SpecError(f"{len(matrix):,} swept variables; at most {MAXVARIABLES}", place=spec.place("matrix"))
    if (count := math.prod(map(len, matrix.values()))) > MAX_CONDITIONS:
        sizes = " · ".join(f"{len(values):,} {name}" for name, values in matrix.items() if len(values) > 1)
        message = f"{count:.15g} conditions ({sizes}); at most {MAX_CONDITIONS:,}"
        hint = "Split the spec (extends:), or let the task draw what need not be a condition of its own."
        raise SpecError(message, place=spec.place("matrix"), hint=hint)
    errors: list[SpecError] = []
    used = set()

    def refuse(message: str, *path: Hashable, hint: str | None = None) -> None:
        errors.append(SpecError(message, place=spec.place(*path), hint=hint))

    for name, values in matrix.items():
        here = ("matrix", name)
        if not _NAME.fullmatch(name):
            refuse(f"{name!r} cannot be inserted as ${{…}}: a name is made of letters, digits and '_'", *here, KEY)
            continue
        if name in RESERVED:
            refuse(f"{name!r} is a column of result rows; call it otherwise", *here, KEY)
        first: dict[str, int] = {}
        for i, value in enumerate(values):
            label = value.get("name") if isinstance(value, dict) else value
            if first.setdefault(str(label), i) != i:
                refuse(f"{name} takes the value {label!r} twice: its episodes would be counted as one", *here, i)
            if isinstance(label, (list, dict)) or (isinstance(value, dict) and label is None):
                hint = f"{{name: …, key: …}}, used as ${{{name}.key}}"
                refuse("a swept value is a scalar or a mapping with a name", *here, i, hint=hint)
    body = {k: v for k, v in spec.data.items() if k not in ("matrix", "headline", "tables", "cluster", "prices")}
    texts = [(path, text, [*matrix]) for path, text in _texts(body, ())]
    for i, name in enumerate(matrix):
        texts += [(path, text, [*matrix][:i]) for path, text in _texts(matrix[name], ("matrix", name))]
    for path, text, variables in texts:
        for escaped, variable in VARIABLE.findall(text):
            if escaped:
                continue
            used.add(variable.split(".")[0])
            if path[0] in SHARED:
                refuse(f"{path[0]!r} is the same for all conditions: ${{{variable}}} cannot stand in it", *path)
            if what := _no_variable(variable, matrix, variables):
                refuse(what, *path)
    if _is_of_run(spec.file):
        # With another baseline only tables may name a variable: the conditions stay those of the other runs.
        used.update(text for path, text in _texts(spec.data.get("tables"), ()))
    for name in matrix:
        if name not in used and _NAME.fullmatch(name):
            fixed = next((path for path in spec.places if path[1:] and path[0] in body and path[-1] == name), None)
            if fixed is None:
                hint = f"Insert it somewhere as ${{{name}}}, or drop it."
                refuse(f"matrix variable {name!r} is never used", "matrix", name, KEY, hint=hint)
            else:  # as where a spec fixes what the spec that it extends sweeps
                key, hint = ".".join(map(str, fixed)), f"Name the values of the sweep: `matrix: {{{name}: […]}}`."
                refuse(f"{key} is fixed here, so that matrix variable {name!r} is never used", *fixed, hint=hint)
    raise_all(errors)


def _is_of_run(file: str) -> bool:
    """Whether a run wrote the file, into its folder."""
    return (path := Path(file)).name == SPEC and path.with_name(META).is_file()


def _no_variable(variable: str, matrix: Mapping[str, list[Any]], variables: Sequence[str]) -> str | None:
    """Why `${variable}` has no value where only these `variables` do; None if it has one."""
    name, *keys = variable.split(".")
    if name not in matrix:
        return f"${{{variable}}} is not in the matrix. {near(name, variables)}"
    if name not in variables:
        return f"${{{variable}}} does not stand before this one in the matrix: a swept value may use those that do"
    for value in matrix[name]:
        if keys and not (isinstance(value, dict) and len(keys) == 1 and keys[0] in value):
            there = [k for k in value if k != "name"] if isinstance(value, dict) else []
            return f"${{{variable}}}: the swept value {value!r} has no {'.'.join(keys)!r}. {near(keys[0], there)}"
    return None


def _texts(value: Any, path: ValuePath) -> Iterable[tuple[ValuePath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _texts(item, (*path, i))
