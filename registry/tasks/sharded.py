"""Any question about data that is cut into shards, declared in YAML."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, fields
from typing import Annotated, Any, Literal, TypedDict

from harness.api import Action, Case, Facts, Outcome, PluginError, Range, Reply, near, plugin
from harness.extensions.networks import cuts
from harness.extensions.networks.answers import (
    INTEGER,
    INTEGERS,
    NUMBER,
    NUMBERS,
    ROWS,
    TABLE,
    TEXT,
    TRUTH,
    AnswerForm,
    normalize,
    one_of,
    same,
)
from harness.extensions.networks.sharded import Items, ShardedTask, credit_for
from harness.extensions.yaml_tasks.expressions import (
    RANDOM,
    CompiledExpression,
    Expression,
    ExpressionError,
    Names,
    compiled,
    is_number,
    names,
    random_functions,
)
from harness.extensions.yaml_tasks.reply_fields import ReplyEntry, ReplyFields
from harness.extensions.yaml_tasks.wordings import Wording
from harness.extensions.yaml_tasks.yaml_task import YamlTask

FORMS = {
    "integer": INTEGER, "number": NUMBER, "text": TEXT, "truth": TRUTH, "integers": INTEGERS, "numbers": NUMBERS,
    "rows": ROWS, "table": TABLE,
}  # fmt: skip
FormName = Literal["integer", "number", "text", "truth", "integers", "numbers", "rows", "table"]
CREDITS = ("number", "exact", "entries", "cells", "sequence")
MAX_DRAWS = 1_000
"""How often an input is drawn again until `until` holds."""
DONE = AnswerForm("the word done", one_of(["done"]).schema)
"""The answer of agents that are not asked."""
RESERVED = ("agents", "per_agent", "answer", "truth", "agent", "item", "place")


class FormEntry(TypedDict, total=False):
    """A form: `one_of` or a name, with words of its own."""

    one_of: Annotated[list[str], "the answer is one of these words"]
    form: FormName
    words: Annotated[str, "the form in words, for agents"]


class CutEntry(TypedDict, total=False):
    """How data is cut: `by` or `overlap`."""

    by: Annotated[Expression, "the number of the agent that gets `item`, which stands at `place`"]
    overlap: Annotated[int, Range(ge=1), "consecutive parts, each with so many items of those after it"]


@plugin
class Sharded(YamlTask, ShardedTask):
    """A question about data that is cut into shards, one per agent. Expressions say what is drawn and what is right.

    An instance depends on `problem`, `agents`, `items`, the seed and its own number, and on what is drawn. The right
    answer follows from what agents hold: `truth` sees the shards and the public facts, and nothing else.

    Expressions know `agents`, the number of agents, and `per_agent`, which is `items`. Those about answers also know
    `shards` (a list, by agent number), `data` (the shards put together), the `public` facts and the values of `let`.

    Attributes:
        problem: the problem's name, in ids and seeds.
        agents: the number of agents, and of shards.
        items: the number of items per agent, as far as `draw` uses it.
        instances: the number of instances.
        whole: a single agent has all data: the baseline without communication.
        draw: name → expression, drawn in this order; later ones may use earlier ones, and functions of chance. `data`
            is what is cut: a list, a text, or a mapping of them. Instead of it `shards` can list the shards themselves.
        until: draws everything again until this holds. It sees what is drawn and the values of `let`.
        cut: how `data` is cut. "contiguous": consecutive parts of equal size. "interleaved": dealt out in turn.
            "random": parts of the items in random order. `{by: …}`: every item to the agent whose number the expression
            over `item` and `place` gives. `{overlap: k}`: consecutive parts, each with the first k items after it.
        public: the drawn facts that all agents know.
        question: the question in words, a template over `agents`, `per_agent` and the public facts.
        let: name → expression, values on the way to the right answer, in this order.
        truth: the right answer; with `answers: own` the list of all agents' answers.
        answers: who must know the answer. "all": every agent. "one": Agent-0 alone; the others submit the word done.
            "own": every agent has an answer of its own.
        form: the form of an answer: one of the names, `{one_of: [words]}`, or `{form: name, words: in words}`. With
            `one_of` agents read the list, unless `words` says something else.
        reply: what agents write beside the answer, each on its line: `{reason: text, answer: , confidence: {number:
            [0, 1]}}`.
        digits: the decimals that the task asks for; any rounding is right. Without it numbers are exact.
        tolerance: how far a number may be from the right one.
        right: whether an answer is right, an expression over `answer`, `truth` and `agent` (a number), where several
            answers are; by default those equal to `truth`.
        credit: the credit for a wrong answer. "number": 1 within one per cent. "exact": 0. "entries": the share of
            right places of a list or table. "cells": the same for rows. "sequence": the longest common subsequence. Or
            an expression over `answer`, `truth` and `agent`, from 0 to 1.
        needs: the numbers of the agents whose shards decide the answer of `agent`, or a list of such lists of which any
            one is enough; failure modes use it. By default all.
        level: a label for tables.
    """

    prompts = "sharded/standard"

    problem: str
    items: Items = 20
    draw: dict[str, Expression]
    until: Expression | None = None
    cut: Literal["contiguous", "interleaved", "random"] | CutEntry = "contiguous"
    public: list[str] = field(default_factory=list)
    question: str
    let: dict[str, Expression] = field(default_factory=dict)
    truth: Expression
    answers: Literal["all", "one", "own"] = "all"
    form: FormName | FormEntry = "integer"
    reply_: ReplyEntry = field(default_factory=dict)
    digits: Annotated[int, Range(ge=0, le=15)] | None = None
    tolerance: Annotated[float, Range(ge=0)] | None = None
    right: Expression | None = None
    credit: Literal["number", "exact", "entries", "cells", "sequence"] | Expression = "exact"
    needs: Expression | None = None
    level: str = ""
    domain: Literal["paper", "hardened"] = field(default="paper", init=False)  # SILO-Bench's own tasks have another

    def __post_init__(self) -> None:
        self._beside = ReplyFields(self.reply_, "answer")
        own = (f.name for f in fields(self) if f.init and (f.name != "reply_" or self.reply_))
        self._declared = {name: getattr(self, name) for name in own}
        base = ("agents", "per_agent")
        known = [*base]
        for name in self.draw:
            self._check_name("draw", name)
        self._draws: list[tuple[str, CompiledExpression]] = []
        for name, text in self.draw.items():
            self._draws.append((name, _compiled(text, known, functions=RANDOM)))
            known.append(name)
        options: Mapping[str, Any] = self.cut if isinstance(self.cut, dict) else {}
        if isinstance(self.cut, dict) and len(options) != 1:
            raise PluginError("cut has either by or overlap", at=("cut",))
        self._by = _compiled(options["by"], known, ("item", "place")) if "by" in options else None
        self._overlap: int = options.get("overlap", 0)
        self._check_input()
        facts = [*base, *self.public]
        secret = {name: "Add it to `public`." for name in self.draw if name not in ("data", "shards")}
        self._asked = Wording("question", self.question, facts, remedies=secret)
        known = [*facts, "shards", "data"]
        self._lets: list[tuple[str, CompiledExpression]] = []
        for name, text in self.let.items():
            self._check_name("let", name, (*facts, *self.draw))
            self._lets.append((name, self._solving(text, known)))
            known.append(name)
        drawn = [*base, *self.draw, *self.let]
        self._until = None if self.until is None else _compiled(self.until, drawn)
        self._until_late = self._until is not None and not self._until.uses.isdisjoint(self.let)
        self._truth = self._solving(self.truth, known)
        self._right = self._judging(self.right, known)
        if self.credit.isidentifier() and self.credit not in (*CREDITS, *known, "answer", "truth", "agent"):
            raise PluginError(f"there is no credit {self.credit!r}", hint=near(self.credit, CREDITS), at=("credit",))
        self._credit = self._judging(None if self.credit in CREDITS else self.credit, known)
        self._needs = None if self.needs is None else self._solving(self.needs, known, ("agent",))
        solving = [self._truth, self._right, self._credit, self._needs, *(value for _, value in self._lets)]
        self._whole = any("data" in one.uses for one in solving if one is not None)
        self._form = self._answer_form()
        self._last: tuple[Case | None, Facts] = (None, {})

    def _check_name(self, parameter: str, name: str, taken: Sequence[str] = ()) -> None:
        """Raise `PluginError` for a name that no value can have."""
        if name in (*RESERVED, *taken) or (parameter == "let" and name in ("data", "shards")):
            raise PluginError(f"{name!r} has a meaning here already; choose another name", at=(parameter, name))
        try:
            compiled("0", (name,))
        except ExpressionError as error:
            raise PluginError(error.message, at=(parameter, name)) from None

    def _check_input(self) -> None:
        """Raise `PluginError` where what is drawn, cut and public do not fit together."""
        inputs = [name for name in ("data", "shards") if name in self.draw]
        if len(inputs) != 1:
            raise PluginError(
                "draw has both data and shards" if inputs else "draw has neither data nor shards",
                hint="data is cut, one part an agent; shards lists the parts themselves.",
                at=("draw",),
            )
        if inputs == ["shards"] and self.cut != "contiguous":
            raise PluginError("shards are not cut; cut takes data", hint="Draw data, or drop cut.", at=("cut",))
        drawn = [name for name in self.draw if name not in inputs]
        for place, name in enumerate(self.public):
            if name in inputs:
                raise PluginError(f"{name} is what agents hold in parts; not all of them know it", at=("public", place))
            if name not in drawn:
                raise PluginError(f"{name!r} is not drawn", hint=near(name, drawn), at=("public", place))

    def _solving(self, text: str, known: Sequence[str], arguments: Sequence[str] = ()) -> CompiledExpression:
        """An expression over what agents hold."""
        try:
            return _compiled(text, known, arguments)
        except ExpressionError as error:
            secret = [name for name in self.draw if name not in known]
            try:
                fit = compiled(text, (*known, *secret), arguments, RANDOM)
            except ExpressionError:
                raise error from None
            hidden = ", ".join(name for name in secret if name in fit.uses)
            raise ExpressionError(
                f"{hidden}: drawn, but known to no agent" if hidden else "chance is for draw alone",
                place=error.place,
                hint="The right answer follows from the shards and the public facts."
                + (" Add it to public, or to the data, or work it out in let." if hidden else ""),
            ) from None

    def _judging(self, text: str | None, known: Sequence[str]) -> CompiledExpression | None:
        return None if text is None else self._solving(text, known, ("answer", "truth", "agent"))

    def _answer_form(self) -> AnswerForm:
        if isinstance(self.form, str):
            return FORMS[self.form]
        form: Mapping[str, Any] = self.form
        if {*form} not in ({"one_of"}, {"one_of", "words"}, {"form", "words"}):
            raise PluginError("form has either one_of, or form and words", at=("form",))
        if "one_of" in form:
            words = [*dict.fromkeys(form["one_of"])]
            strange = next((word for word in words if normalize(word) != word), None)
            if strange is not None or not words:
                what = (
                    f"{strange!r} is no word: it is read as {normalize(strange)!r}" if words else "there are no words"
                )
                raise PluginError(f"one_of: {what}", at=("form", "one_of"))
            return AnswerForm(form.get("words", f"one of these words: {', '.join(words)}"), one_of(words).schema)
        return AnswerForm(form["words"], FORMS[form["form"]].schema)

    # ------------------------------------------------------------------------------------- instances

    def draw_input(self, rng: random.Random, n: int) -> tuple[Sequence[Any], Facts]:
        """Draw until `until` holds, then cut. Raises `PluginError`."""
        drawn = names({**random_functions(rng), "agents": n, "per_agent": self.items})  # all tries share its steps
        for _ in range(MAX_DRAWS):
            for name, value in self._draws:
                drawn[name] = _plain(value.value(drawn))
            shards = self._shards(drawn, n, rng) if self._until_late else []
            worked_out = self._worked_out({**drawn}, shards) if self._until_late else {}
            if self._until is None or self._until.value({**drawn, **worked_out}):
                shards = shards if self._until_late else self._shards(drawn, n, rng)
                return shards, {name: drawn[name] for name in self.public}
        raise ExpressionError.of(self.until, f"until does not hold for any of {MAX_DRAWS:,} draws")

    def _shards(self, drawn: Names, n: int, rng: random.Random) -> Sequence[Any]:
        if "shards" in self.draw:
            shards = drawn["shards"]
            if not isinstance(shards, list) or len(shards) != n:
                count = f"it has {len(shards)}" if isinstance(shards, list) else f"it is {shards!r:.40}"
                raise ExpressionError.of(self.draw["shards"], f"shards lists one shard for each of {n} agents; {count}")
            return shards
        try:
            return cuts.cut(drawn["data"], n, self._places(drawn, n, rng))
        except ExpressionError:
            raise
        except PluginError as error:
            text = self.draw["data"] if self._by is None else self._by.text
            raise ExpressionError.of(text, error.message, error.hint) from None

    def _places(self, drawn: Names, n: int, rng: random.Random) -> Callable[[Any], cuts.Positions]:
        if self._by is not None:
            number = self._by.on(drawn)
            return lambda values: cuts.keyed(values, n, number)
        if self.cut == "interleaved":
            return lambda values: cuts.interleaved(len(values), n)
        if self.cut == "random":
            return lambda values: cuts.shuffled(len(values), n, rng)
        return lambda values: cuts.contiguous(len(values), n, self._overlap)

    def whole_input(self, shards: Sequence[Any]) -> Any:
        """The shards put together: in the order before the cut, or by agents if that is not known."""
        if self.cut == "interleaved":
            return cuts.put_together(shards, cuts.dealt)
        overlap = self._overlap
        return cuts.put_together(shards, (lambda parts: cuts.without_overlap(parts, overlap)) if overlap else None)

    def labels(self, shards: Sequence[Any]) -> Facts:
        """The level, if there is one."""
        return {"level": self.level} if self.level else {}

    # --------------------------------------------------------------------------------------- answers

    def _values(self, shards: Sequence[Any], public: Facts) -> Names:
        """What expressions about answers know."""
        values: Names = {"agents": len(shards), "per_agent": self.items, **public}
        space = names(values)
        worked_out = self._worked_out(space, shards)
        return {**values, "shards": space["shards"], "data": space["data"], **worked_out}

    def _worked_out(self, space: Names, shards: Sequence[Any]) -> Facts:
        """The values of `let`. `space` gets them too, and the shards and the data for them."""
        space |= {"shards": [*shards], "data": self.whole_input(shards) if self._whole else None}
        for name, value in self._lets:
            space[name] = value.value(space)
        return {name: space[name] for name in self.let}

    def solve(self, shards: Sequence[Any], public: Facts) -> Any:
        """The value of `truth`. Raises `PluginError` if it has not the form of the answer."""
        truth = normalize(self._truth.value(names(self._values(shards, public))))
        own = self.answers == "own"
        if own and (not isinstance(truth, list) or len(truth) != len(shards)):
            count = f"one answer for each of {len(shards)} agents"
            raise ExpressionError.of(self.truth, f"truth is {truth!r:.60}; with `answers: own` it lists {count}")
        for one in truth if own else [truth]:
            if not self._form.fits(one):
                raise ExpressionError.of(self.truth, f"truth is {one!r:.60}, which is not {self._form.words}")
        return [truth, *["done"] * (len(shards) - 1)] if self.answers == "one" else truth

    def segmented(self, public: Facts) -> bool:
        """Whether agents have different answers to submit."""
        return self.answers != "all"

    def whole_answer(self, answers: Sequence[Any], public: Facts) -> Any:
        """The answer, or the answers of all agents put together."""
        if self.answers != "own":
            return answers[0]
        if not isinstance(answers[0], (list, dict)):
            raise PluginError(
                "the answers of all agents make no answer of one agent with all data",
                hint="With `whole: true` and `answers: own` an answer is a list or a table.",
                at=("whole",),
            )
        return cuts.put_together(answers)

    def needed_agents(self, agent: int, shards: Sequence[Any], public: Facts) -> Sequence[int]:
        """The value of `needs`, as bits by number."""
        if self._needs is None:
            return super().needed_agents(agent, shards, public)
        value = self._needs.value(names(self._values(shards, public)), agent)
        sets = value if isinstance(value, list) and any(isinstance(one, list) for one in value) else [value]
        numbers = [one if isinstance(one, list) else [one] for one in sets]
        if any(type(i) is not int or not 0 <= i < len(shards) for one in numbers for i in one):
            raise ExpressionError.of(self.needs, f"needs is {value!r:.60}; it lists numbers of agents, or such lists")
        return [sum(1 << i for i in {*one}) for one in numbers]

    # ------------------------------------------------------------------------------- prompts and grades

    def asked(self, public: Facts) -> str:
        """The question, and who answers it."""
        text = self._asked({"agents": self.agents, "per_agent": self.items, **public})
        if self.answers != "one" or self.alone:
            return text
        return (
            f"{text}\nAgent-0 alone answers. The others submit the word done when Agent-0 needs nothing more of them."
        )

    def answer_form(self, agent: int) -> AnswerForm:
        """The declared form; the word done for agents that are not asked."""
        return DONE if self.answers == "one" and agent else self._form

    def form_words(self, agent: int) -> str:
        """The form in words."""
        return DONE.words if self.answers == "one" and agent else super().form_words(agent)

    def answers_count(self, agent: int) -> bool:
        """Agents that are not asked are not graded."""
        return self.answers != "one" or agent == 0

    def solution(self, case: Case) -> Outcome:
        """The right answer of every agent."""
        right = dict(zip(case.agents, case.target, strict=True))
        return Outcome(right, group=case.target[0])

    def context(self, case: Case, agent: str) -> Facts:
        """The context of sharded tasks, with the declaration, from which scripted agents make the task again."""
        context = {**super().context(case, agent), "problem": self.problem, "declared": self._declared}
        return {**context, "task": "\n\n".join(filter(None, (context["task"], *self._beside.words("your answer"))))}

    @property
    def beside(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the fields of `reply`."""
        return self._beside.names

    def reply(self, case: Case, agent: str) -> Reply:
        """A value of the declared form, and the fields of `reply` beside it."""
        return self._beside.around(super().reply(case, agent))

    def is_right(self, case: Case, agent: int, answer: Action) -> bool:
        """Equal to the truth as far as `digits` or `tolerance` ask for it; or what `right` says."""
        truth = case.target[agent]
        if self._right is None:
            return same(answer, truth, self.digits, self.tolerance)
        return bool(self._judged(self._right, case, agent, answer))

    def credit_of(self, case: Case, agent: int, answer: Action) -> float:
        """By the rule or the expression of `credit`."""
        if self._credit is None:
            return credit_for(self.credit, answer, case.target[agent], self.digits, self.tolerance)
        value = self._judged(self._credit, case, agent, answer)
        if not isinstance(value, bool) and not is_number(value):
            raise ExpressionError.of(self.credit, f"credit is {value!r:.60}; it must be a number from 0 to 1")
        return min(1.0, max(0.0, float(value)))

    def _judged(self, expression: CompiledExpression, case: Case, agent: int, answer: Action) -> Any:
        """Its value for an answer; 0 for one of another form, or where it fails for this one and not for the truth."""
        if not self.answer_form(agent).fits(answer):
            return 0
        if self._last[0] is not case:
            shards = [case.private[name]["shard"] for name in case.agents]
            self._last = case, self._values(shards, case.public["known"])
        truth = case.target[agent]
        try:
            return expression.value(names(self._last[1]), answer, truth, agent)
        except ExpressionError:
            expression.value(names(self._last[1]), truth, truth, agent)  # fails too if the mistake is the author's
            return 0


def _compiled(
    text: str, known: Sequence[str], arguments: Sequence[str] = (), functions: Collection[str] = ()
) -> CompiledExpression:
    """Compile; a function's name that is a key here gets a hint. Raises `ExpressionError`."""
    try:
        return compiled(text, known, arguments, functions)
    except ExpressionError as error:
        if "items is a function" in error.message:
            error.hint = "The key `items` is `per_agent` in expressions."
        raise


def _plain(value: Any) -> Any:
    """The value as JSON has it: keys of mappings are texts."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list) and not {dict, list}.isdisjoint(map(type, value)):
        return [_plain(one) for one in value]
    return value
