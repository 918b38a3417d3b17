"""Specs: YAML → one merged, checked, frozen value that knows the place of everything in it.

`load` follows `extends:`, applies `--set`, checks the JSON Schema and the matrix; it loads no plugin.
Next: `harness.config.resolve`, which turns its names into objects.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.config import schema, yamls
from harness.config._insertion import VARIABLE, Room, insert
from harness.config.project import Project
from harness.errors import KEY, Place, SpecError, near, raise_all
from harness.parameters import ValuePath, problems

# What a reader of two result tables would not call a difference of the benchmark, and how fast it was made.
SHOWN = ("name", "description", "headline", "tables", "cluster", "prices")
"""What decides how results are shown, and nothing that is played; `${…}` stands in none of it."""
PRESENTATION = (*SHOWN, "baseline", "generation_kwargs", "models", "executor")
ALIASES = {"include": "extends", "metric_list": "metrics"}  # lm-eval's words for the same things
# Written into every resolved spec: what is not said and what is said in so many words are the same benchmark.
DEFAULTS = {"seed": 0, "repeats": 1}
SHARED = ("models", "metrics", "executor")
"""What a run has once, whatever the matrix sweeps."""
RESERVED = ("model", "metric")
FOR_METRICS = ("headline", "tables", "baseline", "generation_kwargs")
"""What a task proposes together with metrics."""
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

    def place_in(self, variant: Variant, *path: Hashable) -> Place:
        """Where the variant's value at `path` was written: in the matrix, if `${…}` stands in its place."""
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
        body = {k: v for k, v in self.data.items() if k != "matrix" and k not in SHOWN}
        variants, room = [], Room(self.place("matrix"))
        for combination in itertools.product(*map(range, map(len, matrix.values()))):
            chosen, values = dict(zip(matrix, combination, strict=True)), dict[str, Any]()
            for variable, i in chosen.items():
                values[variable] = insert(matrix[variable][i], values, room)  # may use the variables before it
            labels = {k: v["name"] if isinstance(v, dict) else v for k, v in values.items()}
            name = ",".join(f"{k}={v}" for k, v in labels.items()) or "all"
            variants.append(Variant(name, labels, insert(body, values, room), chosen))
        return variants

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The entries of `tables:`, each with the spec's `cluster:` unless it has its own."""
        shared = {"cluster": self.data["cluster"]} if "cluster" in self.data else {}
        return [{**shared, **table} for table in self.get("tables", [])]

    def digest(self) -> str:
        """SHA-256 over everything that defines what is measured; not over presentation, models or sampling."""
        body = {k: v for k, v in self.data.items() if k not in PRESENTATION}
        return hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).hexdigest()


def load(reference: str, project: Project, overrides: Iterable[str] = (), **keys: Any) -> Spec:
    """Read a spec by path or name.

    Args:
        reference: a file, or the name of a spec of the project.
        overrides: `path=value` strings, the value being YAML; they win over the file.
        keys: top-level keys (seed, limit, …) that win over both; None leaves a key alone.

    Raises:
        SpecError: with file, line and column, all problems at once.
    """
    file = str(project.spec(reference))
    return _changed(_extended(yamls.read(Path(file)), project, (file,)), project, overrides, keys)


def parse(data: Mapping[str, Any], project: Project, overrides: Iterable[str] = (), **keys: Any) -> Spec:
    """A spec from plain data, for Python callers; arguments and errors otherwise as in `load`."""
    try:
        text = json.dumps(data, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"a spec is plain data: {error}", place=Place("<dict>")) from None
    return _changed(_extended(yamls.parse(text, "<dict>"), project, ()), project, overrides, keys)


def _changed(document: yamls.Document, project: Project, overrides: Iterable[str], keys: Mapping[str, Any]) -> Spec:
    data, places, file = document.data, document.places, document.file
    for assignment in overrides:
        _assign(data, places, assignment)
    for key, value in keys.items():
        if value is not None:
            data[key] = value
            places[(key,)] = Place(f"--{key} {value}")
    data = {key: value for key, value in data.items() if value is not None}  # `baseline:` alone takes it away
    data |= {key: value for key, value in DEFAULTS.items() if key not in data}
    spec = Spec(str(data.get("name", "")), file, data, places)
    raise_all(SpecError(what, place=spec.place(*path)) for path, what in problems(data, schema.SpecEntry))
    _check_matrix(spec)
    _add_defaults(spec, project)
    if "headline" in data and _metrics_are_others(spec):
        _adapt_headline(data, _metrics(spec))
    if "tables" not in data:
        data["tables"] = [_plain_table(spec)]
    return spec


def _add_defaults(spec: Spec, project: Project) -> None:
    """Add the prompt set and the metrics that the task proposes, where the spec has none; with metrics go tables, and
    parameters of the protocol.

    Only such specs load plugins here: those of their first condition. Raises `SpecError` for a task without proposals.
    """
    data = spec.data
    lacking = [key for key in ("prompts", "metrics") if key not in data]
    if not lacking:
        return
    from harness.config import building

    variant = spec.variants()[0]
    name, _ = building.split(variant.data["protocol"])
    protocol = project.load("protocols", name, spec.place("protocol"))
    at = functools.partial(spec.place_in, variant, "task")
    task = building.make(*building.parts_of("tasks", variant.data["task"], project, at), at)
    proposals = {**task.spec_defaults(protocol)}
    if missing := [key for key in lacking if key not in proposals]:
        keys = f"missing required key{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
        what = building.split(variant.data["task"])[0]
        raise SpecError(f"{keys}: task {what!r} proposes none", place=spec.place())
    wanted = ("metrics", *FOR_METRICS, "description") if "metrics" in lacking else ("description",)
    for key in ("prompts", *wanted):
        if key in proposals and key not in data:
            data[key] = proposals[key]
            spec.places[(key,)] = spec.place("task")
    if "tables" in wanted and data.get("tables") is proposals.get("tables") is not None:
        data["tables"] = [_swept(table, spec) for table in proposals["tables"]]
    own = {"use": data["protocol"]} if isinstance(data["protocol"], str) else data["protocol"]
    if "metrics" in lacking and "protocol" in proposals and VARIABLE.search(own["use"]) is None:
        data["protocol"] = {**proposals["protocol"], **own}
    raise_all(SpecError(f"proposed by the task: {what}", place=at()) for _, what in problems(data, schema.SpecEntry))


def _swept(table: Mapping[str, Any], spec: Spec) -> dict[str, Any]:
    """A table that a task proposes, with the spec's name as title where it has none, and a row for each condition."""
    rows = [table["rows"]] if isinstance(table["rows"], str) else [*table["rows"]]
    return {"title": spec.name, **table, "rows": rows + [name for name in spec.get("matrix", {}) if name not in rows]}


def _metrics_are_others(spec: Spec) -> bool:
    """Whether metrics were replaced after the headline was written: by an option, or by a spec that extends another."""
    cell, metrics = spec.place("headline", "cell").file, spec.place("metrics").file
    order = [2 if file.startswith("--") else int(file == spec.file) for file in (cell, metrics)]
    return order[0] < order[1] or (cell != metrics and order == [0, 0])


def _adapt_headline(data: dict[str, Any], metrics: Sequence[str]) -> None:
    """Leave out of the headline of a spec that was extended or given other metrics what is about metrics it lacks."""
    headline = data.pop("headline")
    if headline["cell"] in metrics:
        beside = [name for name in headline.get("beside", ()) if name in metrics]
        data["headline"] = {**headline, **({"beside": beside} if "beside" in headline else {})}


def _plain_table(spec: Spec) -> dict[str, Any]:
    """The table of a spec that declares none: a row for each model and condition, a column for each metric."""
    return {
        "title": spec.name,
        "rows": ["model", *spec.get("matrix", {})],
        "columns": "metric",
        "cell": list(dict.fromkeys(_metrics(spec))),
        "aggregate": "pooled",
        "error": "sem",
    }


def _metrics(spec: Spec) -> list[str]:
    """What the spec calls its metrics."""
    return [metric_name(entry) for entry in spec.get("metrics")]


def metric_name(entry: str | Mapping[str, Any]) -> str:
    """What tables call an entry of `metrics:`."""
    return entry if isinstance(entry, str) else str(entry.get("name", entry["use"]))


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
        _fill_in(data.get("matrix"), None, document.place)
        return yamls.Document(data, document.file, places)
    here = places.get(("extends",), document.place())
    if not isinstance(base, str):
        raise SpecError("extends: names one spec", place=here)
    file = str(project.spec(base, here).resolve())
    if file in via:
        raise SpecError(f"extends itself through {' → '.join(via)}", place=here)
    if len(via) >= yamls.MAX_DEPTH:
        raise SpecError(f"extends more than {yamls.MAX_DEPTH} specs, one another", place=here)
    below = _extended(yamls.read(Path(file)), project, (*via, file))
    _fill_in(data.get("matrix"), below.data.get("matrix"), document.place)
    return yamls.Document(over(below.data, data), document.file, {**below.places, **places})


def _fill_in(matrix: Any, base: Any, place_of: Callable[..., Place]) -> None:
    """Complete the swept values of `matrix` from those of the spec it extends.

    A name stands for the base's mapping of that name, where all values there are mappings. A mapping with `like: NAME`
    takes over what it does not say itself from one before it, else from one of the base's.
    """
    for variable, values in matrix.items() if isinstance(matrix, dict) else ():
        below = base.get(variable) if isinstance(base, dict) else None
        below = below if isinstance(below, list) else []
        inherited = {str(value.get("name")): value for value in below if isinstance(value, dict)}
        values_by_name = dict(inherited)
        for i, value in enumerate(values if isinstance(values, list) else ()):
            if isinstance(value, dict):
                if "like" in value:
                    like = str(value["like"])
                    if like not in values_by_name:
                        message = f"{variable}: no value before this one is called {like!r}"
                        place = place_of("matrix", variable, i, "like")
                        raise SpecError(message, place=place, hint=near(like, values_by_name))
                    own = {
                        key: over(values_by_name[like].get(key), item) for key, item in value.items() if key != "like"
                    }
                    values[i] = {**values_by_name[like], **own}
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


def _assign(data: dict[str, Any], places: dict[ValuePath, Place], assignment: str) -> None:
    place = Place(f"--set {assignment}")
    path, equals, text = assignment.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if keys[0] == "prices":  # what follows is one model's name, whatever dots it has
        keys = [key.strip() for key in path.split(".", 1)]
    keys[0] = ALIASES.get(keys[0], keys[0])
    if not equals or not all(keys):
        raise SpecError("expected path=value, e.g. --set task.samples=1", place=place)
    if keys[0] == "extends":
        hint = "Give the other spec as --spec, or write a spec of your own that extends it."
        raise SpecError("what a spec extends cannot be set", place=place, hint=hint)
    try:
        value = yamls.parse(text, str(place)).data
    except SpecError as error:
        raise SpecError(f"the value cannot be read: {error.message}", place=place) from None
    here: Any = data
    steps: list[Hashable] = []
    for i, key in enumerate(keys[:-1]):
        step = _step(here, key, keys[:i], place)
        if isinstance(here, dict):
            if isinstance(here.get(key), str) and key in ("task", "protocol", "baseline"):
                here[key] = {"use": here[key]}  # a bare name takes parameters
            if key not in here and i == 0 and schema.SPEC["properties"].get(key, {}).get("type") == "object":
                here[key] = {}  # a mapping that the spec may have and does not
            if not isinstance(here.get(key), dict | list):
                mappings = [str(k) for k, v in here.items() if isinstance(v, dict | list)]
                raise SpecError(f"{'.'.join(keys[: i + 1])!r} is no mapping. {near(key, mappings)}", place=place)
        steps.append(step)
        here = here[step]
    steps.append(_step(here, keys[-1], keys[:-1], place))
    if keys[0] == "matrix":
        change = {keys[1]: value} if len(keys) == 2 else value
        _fill_in(change, data.get("matrix"), lambda *_: place)
        value = change[keys[1]] if len(keys) == 2 else change
    here[steps[-1]] = value
    for below in [path for path in places if path[: len(steps)] == tuple(steps)]:
        del places[below]  # what stood there is gone
    places[tuple(steps)] = place


def _step(here: Any, key: str, way: Sequence[str], place: Place) -> Hashable:
    """The key of `here` that one word of a `--set` path means: an entry's number, counted from 0, in a list."""
    if isinstance(here, dict):
        return key
    what = f"{'.'.join(way)!r}"
    if not isinstance(here, list):
        raise SpecError(f"{what} is no mapping", place=place)
    if not (key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(here)):
        raise SpecError(f"{what} has {len(here)} entries, numbered from 0: there is no {key!r}", place=place)
    return int(key)


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
    for name in matrix:
        if name not in used and _NAME.fullmatch(name):
            hint = f"Insert it somewhere as ${{{name}}}, or drop it."
            refuse(f"matrix variable {name!r} is never used", "matrix", name, KEY, hint=hint)
    raise_all(errors)


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
