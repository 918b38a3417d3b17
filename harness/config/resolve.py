"""Spec + Project → Plan: the only place where names become objects, and where their fit is checked.

Next: `harness.runtime.runner`, which plays a plan.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from harness import api
from harness.api import Engine
from harness.api.errors import KEY, Place, PluginError, SpecError, UserError, near, raise_all
from harness.config.building import PlaceOf, Plugins, Reference, engine, make, policy_name, split
from harness.config.keys import SpecKey, keys_of
from harness.config.plan import Condition, Group, Plan, without_later_metrics
from harness.config.project import Project
from harness.config.prompts import PromptSet
from harness.config.proposals import complete
from harness.config.schema import GroupSize
from harness.config.spec import Spec, Variant, data_roots
from harness.engines.sampling import normalize
from harness.plugins import parameters
from harness.storage.files import short_name
from harness.tables import SIMULATED_NAME, EpisodeScore


def plan(spec: Spec, project: Project, model: Engine | None = None, plugins: Plugins | None = None) -> Plan:
    """Resolve a spec, which is completed first by what its task proposes.

    Args:
        spec: as `harness.config.spec.load` gives it.
        project: where its names are looked up.
        model: the engine under test; None lets the spec's `baseline` policy play instead.
        plugins: with which the spec has been completed, if it has.

    Raises:
        SpecError, PluginError: with the place in the spec; all conditions are checked.
    """
    plugins = plugins or Plugins(project)
    complete(spec, project, plugins)
    resolver = _Resolver(spec, plugins, model)
    conditions = resolver.conditions()
    playing, inner = set(resolver.engines), resolver.inner()
    given_inner = {inner["model"]} - spec.get("models", {}).keys() if "model" in inner else set()
    metrics = resolver.metrics(conditions)
    measured = without_later_metrics(spec, metrics, resolver.engines).digest()
    if inner:
        metrics = resolver.with_inner(metrics)
    prompts = sorted((one.name, one.digest) for one in resolver.prompt_sets.values())
    digest = hashlib.sha256(json.dumps([measured, prompts]).encode()).hexdigest()
    return Plan(
        spec=spec,
        project=project,
        conditions=conditions,
        metrics=metrics,
        engines=resolver.engines,
        model=resolver.label(conditions, playing),
        digest=digest,
        seed=int(spec.get("seed", 0)),
        repeats=int(spec.get("repeats", 1)),
        limit=spec.get("limit"),
        sampling=spec.get("generation_kwargs", {}),
        dedupe_calls=bool(spec.get("dedupe_calls", False)),
        executor=spec.get("executor", "local"),
        declared=frozenset(resolver.engines) - {"model"} - given_inner,
        keys=tuple(keys_of(spec)),
        inner=inner,
    )


def following(plan: Plan, scores: Sequence[EpisodeScore]) -> Plan | None:
    """The plan with more conditions, once all its episodes have these scores; None if there are no more.

    Its engines are those of `plan`.
    """
    spec = next((more for key in plan.keys if (more := key.next(plan, scores)) is not None), None)
    if spec is None:
        return None
    resolver = _Resolver(spec, Plugins(plan.project), plan.engines.get("model"))
    resolver.engines = dict(plan.engines)
    conditions = resolver.conditions()
    keys, inner = tuple(keys_of(spec)), resolver.inner()
    metrics = resolver.metrics(conditions)
    metrics = resolver.with_inner(metrics) if inner else metrics
    return replace(
        plan, spec=spec, conditions=conditions, engines=resolver.engines, metrics=metrics, keys=keys, inner=inner
    )


def with_baseline(spec: Spec, policy: Reference, *at: Hashable) -> Spec:
    """The spec with another policy to play where no model is given: the same benchmark, by its digest.

    `at` is where the spec itself has this policy, if it does: ("headline", "floor").
    """
    places = {path: place for path, place in spec.places.items() if path[:1] != ("baseline",)}
    if at:
        own = {path[len(at) :]: place for path, place in spec.places.items() if path[: len(at)] == at}
        places |= {("baseline", *path): place for path, place in own.items()}
    return replace(spec, data={**spec.data, "baseline": policy}, places=places)


def given_engine(name: str, given: Any, arguments: Any, project: Project, at: PlaceOf | None = None) -> Engine | None:
    """What is given as an engine, or by its name, under the parameter `name`. Raises `SpecError`, `PluginError`."""
    if not isinstance(arguments, Mapping | None):
        raise SpecError(f"{name}_args must be a mapping of the engine's fields, found {arguments!r:.60}")
    if isinstance(given, str):
        own = lambda *path: Place(f"--{name}" if path in ((), ("use",)) else f"--{name}_args")  # noqa: E731
        return engine({"use": given, **(arguments or {})}, project, at or own)
    if not isinstance(given, Engine | None):
        raise SpecError(f"{name} must be an engine or the name of one, found {given!r:.60}")
    if arguments:
        raise SpecError(f"{name}_args without the name of an engine", hint=f"Name one: {name}='mock', …")
    return given


def metrics(spec: Spec, project: Project) -> dict[str, api.Metric]:
    """The spec's metrics alone, for reading finished runs. Raises `SpecError`, `PluginError`."""
    plugins = Plugins(project)
    complete(spec, project, plugins)
    return _Resolver(spec, plugins, None).metrics(())


def unfit(name: str, metric: api.Metric, conditions: Sequence[Condition]) -> str | None:
    """Why a metric of this name cannot measure one of these conditions; None if it can. Their tasks learn which of
    their optional grades it needs."""
    for condition in conditions:
        task = condition.task
        inputs = (*task.grades, *task.optional_grades, *condition.protocol.facts_with(task))
        task.wanted += tuple({*metric.needs} & {*task.optional_grades} - {*task.wanted})
        if lacking := [need for need in metric.needs if need not in inputs]:
            message = f"metric {name!r} needs {lacking[0]!r}, which {condition.id!r} does not produce. "
            return message + near(lacking[0], inputs)
    return None


MAX_NAMED_MODELS = 3
"""More models of a spec are counted where runs are called after them."""


class _Resolver:
    """Makes the objects of a plan."""

    def __init__(self, spec: Spec, plugins: Plugins, model: Engine | None) -> None:
        self.spec, self.plugins, self.project, self.model = spec, plugins, plugins.project, model
        self.engines: dict[str, Engine] = {} if model is None else {"model": model}
        self.data_roots = data_roots(spec, self.project)
        self.prompt_sets: dict[str, PromptSet] = {}  # also those of contestants that sit out

    def conditions(self) -> tuple[Condition, ...]:
        conditions: list[Condition] = []
        errors = []
        for variant in self.spec.variants():
            try:
                whole = self.condition(variant)
                played = [whole]
                for key in keys_of(self.spec, variant.data):
                    played = [one for each in played for one in key.conditions(each, len(conditions))]
                conditions.extend(played)
            except (SpecError, PluginError) as error:
                errors.append(error)
        if len({str(e) for e in errors}) == 1:
            raise errors[0]
        raise_all(SpecError(str(error)) for error in errors)
        return tuple(conditions)

    def condition(self, variant: Variant) -> Condition:
        task, protocol = (
            self.plugins.get(f"{key}s", reference, functools.partial(self.spec.place_in, variant, key))
            for key, reference in (("task", self.played(variant)), ("protocol", variant.data["protocol"]))
        )
        task.stands_in(Path(self.spec.file).parent)
        task.looks_in(self.data_roots)
        self.check_fit(variant, task, protocol)
        if type(protocol).possible_agents is not api.Protocol.possible_agents:  # of its own: they must be there
            try:
                protocol.possible_agents(task.example())
            except PluginError as error:
                raise SpecError(error.message, place=self.spec.place("protocol", *error.at), hint=error.hint) from None
        seating = [key for key in keys_of(self.spec, variant.data) if key.seats_agents]
        if len(seating) > 1:
            self.refuse_second(seating[0].name, seating[1].name)
        groups = tuple(self.contestants(seating[0], variant) if seating else self.groups(variant))
        for group in groups:
            player = group.policy() if group.policy is not None else None
            if player is not None and (why := player.misfit(task)) is not None:
                own = variant.data.get("agents", {}).get(group.name)
                its = isinstance(own, Mapping) and not own.keys().isdisjoint(("policy", "baseline"))
                place = group.place if its or seating else self.spec.place("baseline")
                raise SpecError(f"this policy cannot play {split(variant.data['task'])[0]}: {why}", place=place)
        names = [group.name for group in groups]
        if (absent := next((name for name in protocol.agent_groups if name not in names), None)) is not None:
            name = split(variant.data["protocol"])[0]
            message = f"protocol {name!r} names a group {absent!r} that `agents:` does not have"
            raise SpecError(message, place=self.spec.place("protocol"), hint=near(absent, names))
        if not isinstance(structured_output := variant.data.get("structured_output", False), bool):
            message = f"'structured_output' must be true or false, found {structured_output!r:.60}"
            raise SpecError(message, place=self.spec.place_in(variant, "structured_output"))
        return Condition(variant.id, variant.labels, task, protocol, groups, structured_output)

    def played(self, variant: Variant) -> Reference:
        """The task, with the arguments that keys of extensions add."""
        reference: Reference = variant.data["task"]
        if not (keys := keys_of(self.spec, variant.data)):
            return reference
        name, given = split(reference)
        cls: Any = self.project.load("tasks", name, self.spec.place_in(variant, "task"))
        arguments: Mapping[str, Any] = given
        for key in keys:
            arguments = key.task_arguments(cls, arguments)
        return {"use": name, **arguments} if arguments != given else reference

    def refuse_second(self, first: str, second: str) -> NoReturn:
        """Two keys say who plays. Raises `SpecError`."""
        hint = f"Drop one of them; in a spec that extends another, `{second}:` without a value takes it away."
        message = f"{second}: and {first}: both say who plays"
        raise SpecError(message, place=self.spec.place(second, KEY), hint=hint)

    def contestants(self, key: SpecKey, variant: Variant) -> Iterator[Group]:
        """The players that a key seats, as groups without agents."""
        if "agents" in variant.data:
            self.refuse_second(key.name, "agents")
        models = {"model", *self.spec.get("models", {})}
        for contestant, body, path in key.contestants():
            at = functools.partial(key.place, *path)
            name = body.get("model")
            if name is not None and name not in models and self.project.file("policies", name) is not None:
                raise SpecError(f"{name!r} is a policy, not a model", place=at(), hint=f"Write {{policy: {name}}}.")
            yield self.group(contestant, body, variant, at)

    def check_fit(self, variant: Variant, task: api.Task, protocol: api.Protocol) -> None:
        """Refuse a task, or a channel, that the protocol cannot play."""

        def opens_what_is_needed(cls: type[api.Channel]) -> bool:  # whatever its parameters
            return isinstance(cls.opens, type) and issubclass(cls.opens, protocol.needs_channel)

        name, place = split(variant.data["protocol"])[0], self.spec.place("protocol")
        if (why := task.misfit(protocol.needs)) is not None:
            protocols = self.fitting("protocols", lambda cls: task.misfit(cls.needs) is None)
            tasks = self.fitting("tasks", lambda cls: issubclass(cls, protocol.needs))
            task_name = split(variant.data["task"])[0]
            message = f"protocol {name!r} needs a {_kind(protocol.needs)}; task {task_name!r}: {why}"
            hint = f"Protocols for this task: {protocols}. Tasks for this protocol: {tasks}."
            raise SpecError(message, place=place, hint=hint)
        if (why := protocol.misfit(task)) is not None:
            fits = self.fitting("protocols", lambda cls: task.misfit(cls.needs) is None and cls().misfit(task) is None)
            hint = f"Protocols for this task, as they are by default: {fits}."
            raise SpecError(f"protocol {name!r}: {why}", place=place, hint=hint)
        for key, channel in vars(protocol).items():
            if isinstance(channel, api.Channel) and not issubclass(channel.opens, protocol.needs_channel):
                message = f"protocol {name!r} needs a channel that opens a {_kind(protocol.needs_channel)}; "
                message += f"{type(channel).__name__} opens a {channel.opens.__name__}"
                fits = self.fitting("channels", opens_what_is_needed)
                raise SpecError(message, place=self.spec.place("protocol", key), hint=f"Channels that do: {fits}.")

    def fitting(self, kind: str, fits: Callable[[type[Any]], bool], most: int = 12) -> str:
        """The names of the project's plugins that fit, at most so many of them; those that do not load are left out."""
        names = []
        for entry in self.project.listing(kind):
            with contextlib.suppress(UserError, TypeError):  # or what needs parameters
                if fits(self.project.load(kind, entry.name)):
                    names.append(entry.name)
        return ", ".join(names[:most]) + (", …" if len(names) > most else "") or "none"

    def groups(self, variant: Variant) -> Iterator[Group]:
        agents: dict[str, Any] = {"default": "model", **(variant.data.get("agents") or {})}
        for name, value in agents.items():
            body: dict[str, Any] = {"model": value} if isinstance(value, str) else (value or {})
            place = functools.partial(self.spec.place, "agents", name)
            sizes = {key: body[key] for key in GroupSize.__annotations__ if key in body}
            keys = [key for key in sizes if key != "scored"]
            if name == "default" and keys:
                message = f"default has the agents in no other group; it takes no {keys[0]}:"
                raise SpecError(message, place=place(keys[0]))
            if name != "default" and not keys:
                raise SpecError(f"group {name!r} needs share:, count: or agents:", place=place())
            if len(keys) > 1:
                raise SpecError(f"group {name!r} has {' and '.join(sorted(keys))}; give one", place=place(keys[1]))
            wrong = parameters.problems(sizes, GroupSize)  # the matrix has put its values in by now
            raise_all(SpecError(f"group {name!r}: {what}", place=place(*path)) for path, what in wrong)
            sizes |= {"agents": tuple(sizes["agents"])} if "agents" in sizes else {}
            yield replace(self.group(name, body, variant, place), **sizes, place=place(*keys))

    def group(self, name: str, body: Mapping[str, Any], variant: Variant, place: PlaceOf) -> Group:
        """Who plays, and with which prompts; `place`: of what is in `body`."""
        model, policy = self.player(body, variant, place)
        at = place("prompts") if "prompts" in body else self.spec.place("prompts")
        prompts = self.prompts(body.get("prompts", variant.data["prompts"]), at)
        key = "generation_kwargs"
        sampling = _words(variant.data.get(key) or {}, self.spec.place(key)) | _words(body.get(key) or {}, place(key))
        return Group(name, prompts, model, policy, sampling, place=place())

    def player(
        self, body: Mapping[str, Any], variant: Variant, place: PlaceOf
    ) -> tuple[str | None, Callable[[], api.Policy] | None]:
        """(model name, None) or (None, policy factory)."""
        if "policy" in body:
            if "model" in body:
                raise SpecError("an agent has either a model or a policy", place=place("policy"))
            return None, self.policy(body["policy"], functools.partial(place, "policy"))
        name = str(body.get("model", "model"))
        if name != "model":
            models = self.spec.get("models", {})
            if name not in models:
                hint = near(name, ["model", *models])
                raise SpecError(f"there is no model {name!r}", place=place("model"), hint=hint)
            if self.model is not None or not body.get("baseline"):
                if name not in self.engines:
                    at = functools.partial(self.spec.place, "models", name)
                    self.engines[name] = engine(models[name], self.project, at)
                return name, None
        if self.model is not None:
            return "model", None
        reference = body.get("baseline") or variant.data.get("baseline")
        if reference is None:
            hint = (
                "Give --model (e.g. --model vllm --model_args pretrained=…) or name a policy as baseline: in the spec."
            )
            raise SpecError("no model was given and the spec has no baseline", place=place(), hint=hint)
        own = functools.partial(place, "baseline")
        shared = functools.partial(self.spec.place, "baseline")
        return None, self.policy(reference, own if body.get("baseline") else shared)

    def inner(self) -> dict[str, str]:
        """Add the inner engines of agent programs; name of an engine → name of its inner one."""
        if not any(one.calls_models for one in self.engines.values()):
            return {}
        from harness.config.inner_engines import add_inner  # what only agents of people's own need

        return add_inner(self.engines, self.spec, self.project)

    def with_inner(self, metrics: dict[str, api.Metric]) -> dict[str, api.Metric]:
        """The metrics, with those of inner calls."""
        from harness.config.inner_engines import with_inner  # as `add_inner`

        return with_inner(metrics, self.project)

    def policy(self, reference: Reference, place_of: PlaceOf) -> Callable[[], api.Policy]:
        cls, arguments = self.plugins.parts("policies", reference, place_of)
        make(cls, arguments, place_of)  # wrong values show now, not in the middle of a run
        policy: Callable[..., api.Policy] = cls
        return functools.partial(policy, **arguments)

    def prompts(self, name: str, place: Place) -> PromptSet:
        if name not in self.prompt_sets:
            self.prompt_sets[name] = self.project.prompts(name, place)
        return self.prompt_sets[name]

    def metrics(self, conditions: tuple[Condition, ...]) -> dict[str, api.Metric]:
        metrics: dict[str, api.Metric] = {}
        errors = []
        for i, entry in enumerate(self.spec.get("metrics", [])):
            place = functools.partial(self.spec.place, "metrics", i)
            use, arguments = split(entry)
            name = str(arguments.pop("name", use))
            if name in metrics:
                errors.append(SpecError(f"two metrics are called {name!r}; give one a name:", place=place()))
                continue
            if self.project.file("metrics", str(use)) is None:
                from harness.config.unknown_metrics import refuse  # what only a mistake needs

                refuse(self.project, str(use), conditions, place("use"))
            metric: api.Metric = self.plugins.get("metrics", {"use": use, **arguments}, place)
            metrics[name] = metric
            if (why := unfit(name, metric, conditions)) is not None:
                errors.append(SpecError(why, place=place()))
        for key in keys_of(self.spec):
            errors += [SpecError(what, place=key.place(*path)) for what, path in key.check_metrics(metrics)]
        raise_all(errors)
        return metrics

    def label(self, conditions: tuple[Condition, ...], playing: Container[str]) -> str:
        """Who is under test, as tables call it. Players that know the right answer, and people, are always named."""
        engines = [engine for name, engine in self.engines.items() if name in playing]
        name = self._label(conditions, engines)
        people = sorted({short_name(engine.model) for engine in engines if engine.asks_people})
        return " + ".join([name, *(person for person in people if person not in name.split(" + "))])

    def _label(self, conditions: tuple[Condition, ...], engines: Sequence[Engine]) -> str:
        labels = {group.ground_truth_label for c in conditions for group in c.groups if group.ground_truth_label}
        simulated = [labels.pop() if len(labels) == 1 else SIMULATED_NAME] if labels else []
        pools = [models for key in keys_of(self.spec) if (models := key.models()) is not None]
        if self.model is not None:
            groups = [group for condition in conditions for group in condition.groups]
            seats = any(group.policy is None and group.model in (None, "model") for group in groups)
            others = [engine for engine in engines if engine is not self.model]
            if seats or not others or any("model" in models for models in pools):
                return " + ".join([short_name(self.model.model), *simulated])
            engines = others  # it only answers what their programs ask
        seated = all("model" in models for models in pools)
        seated &= any(group.policy is not None for condition in conditions for group in condition.groups)
        policies = [v.data["baseline"] for v in self.spec.variants() if seated and v.data.get("baseline")]
        real = sorted(
            {
                policy_name(policy)
                for policy in policies
                if not self.project.load("policies", split(policy)[0]).uses_ground_truth
            }
        )
        own = sorted({short_name(engine.model) for engine in engines})
        if not pools and (real or simulated):
            own = []
        elif len(own) > MAX_NAMED_MODELS:
            own = [f"{len(own)} models"]
        return " + ".join([*([",".join(real)] if real else []), *simulated, *own]) or "policies"


def _words(sampling: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """generation_kwargs in one vocabulary, so that a later level wins over an earlier one's synonym."""
    try:
        return normalize(sampling)
    except UserError as error:
        raise SpecError(error.message, place=place, hint=error.hint) from None


def _kind(cls: type[Any]) -> str:
    """A class by its name and the first line of its docstring, which says what it is."""
    return f"{cls.__name__} ({(inspect.getdoc(cls) or '').splitlines()[0].rstrip('.')})"
