r"""The ways in which models write a reply that they were asked for in another way.

A style takes what a reply means and returns its text, or None if it has nothing to write: a reply that is one JSON
object has no lines whose labels could be bold.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Reply, as_text
from harness.extensions.yaml_tasks.contract import ActWithFields
from harness.replies import FreeText, WrappedReply


@dataclass(frozen=True, slots=True)
class Meant:
    """What a reply means.

    Attributes:
        form: the form that was asked for.
        action: the action.
        other: another legal action, for replies that mention one without meaning it; the same if there is none.
    """

    form: Reply
    action: Action
    other: Action

    @property
    def asked(self) -> str:
        """The reply as the prompt asks for it."""
        return self.form.written(self.action)

    @property
    def said(self) -> dict[str, Any]:
        """Field → what it says, without fields that say nothing."""
        return {name: value for name, value in self.form.says(self.action).items() if value is not None}

    @property
    def lines(self) -> list[tuple[str, str]] | None:
        """(label, text) of each field; None if the reply has no lines with labels."""
        leads = {field.name: field.lead for field in self.form.fields}
        said = self.said
        is_lines = (
            not self.is_text
            and bool(said)
            and all(leads.get(name) for name in said)
            and "\n" not in "".join(map(as_text, said.values()))
        )
        return [(_label(name, leads[name]), as_text(value)) for name, value in said.items()] if is_lines else None

    @property
    def answer(self) -> str | None:
        """What the only field says, if it is an answer of one line; None for any other reply."""
        said = self.said
        value = said.get("answer")
        alone = set(said) == {"answer"} and "\n" not in as_text(value)
        return as_text(value) if alone and len(as_text(value)) <= 100 and not self.is_text else None

    @property
    def is_text(self) -> bool:
        """Whether every sign of the reply, or of what follows a marker, counts: a free text, a list of people."""
        form = self.form
        while isinstance(form, WrappedReply | ActWithFields):
            form = form.act if isinstance(form, ActWithFields) else form.inner
        return isinstance(form, FreeText) or not {"feedback", "experts"}.isdisjoint(self.said)

    @property
    def has_options(self) -> bool:
        """Whether the answer is one of finitely many words."""
        return any("enum" in field.schema for field in self.form.fields)

    @property
    def has_json(self) -> bool:
        """Whether a JSON object with its fields is a plain way to write it."""
        return not ({"calls", "experts", "feedback", "code"} & set(self.said)) and not self.is_text


def _label(name: str, lead: str) -> str:
    """What announces a field, without marks: "Final Answer" of "### Final Answer ###"."""
    bare = lead.strip(" #:*")
    return "Answer" if not bare or bare.lower() == "the answer is" else bare


@dataclass(frozen=True, slots=True)
class Style:
    """A way to write a reply.

    Attributes:
        name: what it is called in tables.
        plain: whether a person has no doubt what such a reply means.
        write: what is meant → the text; None if the style does not apply.
    """

    name: str
    plain: bool
    write: Callable[[Meant], str | None]


def _lines(form: str) -> Callable[[Meant], str | None]:
    """Each field on a line, written as `form` says."""

    def write(meant: Meant) -> str | None:
        lines = meant.lines
        return None if lines is None else "\n".join(form.format(label=a, low=a.lower(), value=b) for a, b in lines)

    return write


def _around(before: str, after: str = "") -> Callable[[Meant], str | None]:
    """The reply as asked for between two texts; nothing may be around a free text."""
    return lambda meant: None if meant.is_text else f"{before}{meant.asked}{after}"


def _object(meant: Meant, **more: Any) -> str | None:
    return json.dumps({**more, **meant.said}, ensure_ascii=False) if meant.has_json and meant.said else None


def _json(form: str = "{}", **more: Any) -> Callable[[Meant], str | None]:
    def write(meant: Meant) -> str | None:
        text = _object(meant, **more)
        return None if text is None else form.replace("{}", text)

    return write


def _members(meant: Meant, form: str, between: str, frame: tuple[str, str]) -> str | None:
    """An object whose members are written as `form` says."""
    if _object(meant) is None:
        return None
    members = [form.replace("{k}", k).replace("{v}", json.dumps(v, ensure_ascii=False)) for k, v in meant.said.items()]
    return frame[0] + between.join(members) + frame[1]


def _single_quotes(meant: Meant) -> str | None:
    text = _object(meant)
    return None if text is None or any("'" in part or "\\" in part for part in (text,)) else repr(json.loads(text))


def _elements(meant: Meant, form: str = "<{k}>{v}</{k}>") -> str | None:
    names = {name: name.replace(" ", "_") for name in meant.said}
    if not meant.has_json or not names or not all(name.isidentifier() for name in names.values()):
        return None
    return "\n".join(form.format(k=names[k], v=as_text(v)) for k, v in meant.said.items())


def _table(meant: Meant) -> str | None:
    lines = meant.lines
    rows = "\n".join(f"| {label} | {value} |" for label, value in lines or ())
    return f"| field | value |\n|---|---|\n{rows}" if lines else None


def _reversed(meant: Meant) -> str | None:
    lines = meant.lines
    return "\n".join(f"{a}: {b}" for a, b in reversed(lines)) if lines and len(lines) > 1 else None


def _one_line(meant: Meant) -> str | None:
    lines = meant.lines
    return " ".join(f"{a}: {b}" for a, b in lines) if lines and len(lines) > 1 else None


def _sentence(form: str) -> Callable[[Meant], str | None]:
    def write(meant: Meant) -> str | None:
        return None if meant.answer is None else form.replace("{}", meant.answer)

    return write


def _letters(form: str) -> Callable[[Meant], str | None]:
    """Sentences that a reply with few options has."""

    def write(meant: Meant) -> str | None:
        return form.replace("{}", meant.answer) if meant.answer is not None and meant.has_options else None

    return write


def _decoy(form: str) -> Callable[[Meant], str | None]:
    """A reply that first mentions another action, which it does not mean."""

    def write(meant: Meant) -> str | None:
        if meant.other == meant.action or meant.is_text:
            return None
        return form.replace("{other}", meant.form.written(meant.other)).replace("{asked}", meant.asked)

    return write


def _quoted_value(mark: str, end: str | None = None) -> Callable[[Meant], str | None]:
    return _lines(f"{{label}}: {mark}{{value}}{end or mark}")


THOUGHT = "Let me see. Two ways are open, and one of them is better."
STYLES: tuple[Style, ...] = (
    Style("as asked", True, lambda meant: meant.asked),
    Style("blanks around", True, lambda meant: f"\n\n  {meant.asked}  \n\n" if not meant.is_text else None),
    Style("CRLF", True, lambda meant: None if meant.is_text else meant.asked.replace("\n", "\r\n")),
    Style("prose before", True, _around(f"{THOUGHT}\n\n")),
    Style("prose and rule before", True, _around(f"{THOUGHT}\n\n---\n\n")),
    Style("<think>", True, lambda meant: f"<think>\n{THOUGHT}\n</think>\n\n{meant.asked}"),
    Style("closing </think> only", True, lambda meant: f"{THOUGHT}\n</think>\n\n{meant.asked}"),
    Style("<reasoning>", True, _around(f"<reasoning>{THOUGHT}</reasoning>\n")),
    Style("another one thought", True, _decoy("<think>\nFirst idea:\n{other}\n</think>\n{asked}")),
    Style("another one thought late", True, _decoy("{asked}\n<think>\nWhat of this?\n{other}\n</think>")),
    Style("another one in a comment", True, _decoy("<!-- not {other} -->\n{asked}")),
    Style("fenced", True, lambda meant: None if meant.is_text or "```" in meant.asked else f"```\n{meant.asked}\n```"),
    Style("fenced as text", True, lambda m: None if m.is_text or "```" in m.asked else f"```text\n{m.asked}\n```"),
    Style("labels in small letters", True, _lines("{low}: {value}")),
    Style("labels in bold", True, _lines("**{label}:** {value}")),
    Style("labels in bold, colon outside", True, _lines("**{label}**: {value}")),
    Style("labels in italics", True, _lines("*{label}:* {value}")),
    Style("labels with underscores", True, _lines("__{label}:__ {value}")),
    Style("lines in bold", True, _lines("**{label}: {value}**")),
    Style("values in bold", True, _quoted_value("**")),
    Style("values in backticks", True, _quoted_value("`")),
    Style("values in quotes", True, _quoted_value('"')),
    Style("values in curly quotes", True, _quoted_value("“", "”")),
    Style("values in brackets", True, lambda m: None if "[" in m.asked else _quoted_value("[", "]")(m)),
    Style("bullets", True, _lines("- {label}: {value}")),
    Style("starred bullets in bold", True, _lines("* **{label}:** {value}")),
    Style("numbered", False, lambda m: None if m.lines is None else
          "\n".join(f"{i}. {a}: {b}" for i, (a, b) in enumerate(m.lines, 1))),
    Style("headings", True, _lines("### {label}\n{value}\n")),
    Style("headings with colon", True, _lines("## {label}:\n\n{value}\n")),
    Style("labels above", True, _lines("{label}:\n{value}")),
    Style("labels in bold above", True, _lines("**{label}**\n{value}\n")),
    Style("blanks before the colon", True, _lines("{label} : {value}")),
    Style("full-width colon", True, _lines("{label}：{value}")),
    Style("no-break blanks", True, _lines("{label}:\u00a0{value}")),
    Style("dashes", True, _lines("{label} - {value}")),
    Style("arrows", True, _lines("{label} → {value}")),
    Style("equals signs", False, _lines("{label} = {value}")),
    Style("labels in brackets", True, _lines("[{label}] {value}")),
    Style("my …", True, _lines("My {low}: {value}")),
    Style("table", False, _table),
    Style("quoted lines", False, _lines("> {label}: {value}")),
    Style("fields in another order", True, _reversed),
    Style("one line", False, _one_line),
    Style("full stop", True, _lines("{label}: {value}.")),
    Style("words after", True, lambda m: None if m.lines is None else f"{m.asked}\n\nLet me know if you need more."),
    Style("JSON", True, _json()),
    Style("JSON, indented", True, lambda m: None if (t := _object(m)) is None else
          json.dumps(json.loads(t), indent=2, ensure_ascii=False)),
    Style("JSON in a fence", True, _json("```json\n{}\n```")),
    Style("JSON after prose", True, _json(f"{THOUGHT}\n\n{{}}")),
    Style("JSON in a fence after prose", True, _json(f"{THOUGHT}\n\n```json\n{{}}\n```\nThat is all.")),
    Style("JSON with reasoning", True, _json(reasoning=THOUGHT)),
    Style("JSON within an object", True, _json('{"response": {}}')),
    Style("JSON in a list", True, _json("[{}]")),
    Style("JSON with a trailing comma", True, lambda m: _members(m, '"{k}": {v}', ", ", ("{", ",}"))),
    Style("JSON with comments", True, lambda m: _members(m, '  "{k}": {v}', ",  // as asked\n", ("{\n", "  // so\n}"))),
    Style("JSON with single quotes", True, _single_quotes),
    Style("JSON without commas", False, lambda m: _members(m, '  "{k}": {v}', "\n", ("{\n", "\n}"))),
    Style("JSON without quotes around keys", False, lambda m: _members(m, "{k}: {v}", ", ", ("{", "}"))),
    Style("JSON after <think>", True, _json(f"<think>{THOUGHT}</think>\n{{}}")),
    Style("elements", True, _elements),
    Style("elements in one", True, lambda m: None if (t := _elements(m)) is None else f"<response>\n{t}\n</response>"),
    Style("elements in a fence", True, lambda m: None if (t := _elements(m)) is None else f"```xml\n{t}\n```"),
    Style("elements on lines", True, lambda m: _elements(m, "<{k}>\n{v}\n</{k}>")),
    Style("the answer is", True, _sentence("So the answer is {}.")),
    Style("the answer is, in bold", True, _sentence("Therefore, the answer is **{}**.")),
    Style("final answer", True, _sentence("Final answer: {}")),
    Style("final answer, in bold", True, _sentence("**Final Answer:** {}")),
    Style("therefore, in bold", True, _sentence(f"{THOUGHT}\n\nTherefore, **{{}}**")),
    Style("in a box", True, _sentence("\\boxed{{}}")),
    Style("in a box in a sentence", True, _sentence("Hence the answer is $\\boxed{{}}$.")),
    Style("alone on the last line", True, _sentence(f"{THOUGHT}\n\n{{}}")),
    Style("alone, in bold", True, _sentence("**{}**")),
    Style("is correct", True, _letters("{} is the correct answer.")),
    Style("I choose", True, _letters("I choose {}.")),
    Style("not sure", True, _letters("I think the answer is {}, but I am not sure.")),
    Style("A: …", False, _letters("A: {}")),
)  # fmt: skip
"""All styles, the asked one first."""
