"""Reply forms: what a model wrote becomes an action, whatever it wrote, in linear time."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.extensions.networks import messages
from harness.extensions.networks.messages import Messages
from harness.replies import Choice, literals
from tests.helpers.linear import steps
from tests.helpers.samples import examples

MARKER = "### Final Answer ###"
YES_NO = Choice(("Yes", "No"), MARKER)
GROUPS = Choice(tuple(f"Group {k}" for k in range(1, 13)), MARKER)
TO = ("Emma", "Alan", "Mary Ann")
MESSAGES = Messages(TO)
REFERENCE = Messages(("Emma", "Alan"), parsing="reference", known=("Emma", "Alan", "Bob"))

# What breaks parsers, at any size: nesting, quotes that never close, runs of blanks and marks, bad Unicode.
NASTY: dict[str, Callable[[int], str]] = {
    "braces": lambda n: "{" * n,
    "open objects": lambda n: '{"a":' * (n // 5),
    "nested": lambda n: '{"a":' * (n // 6) + "1" + "}" * (n // 6),
    "open strings": lambda n: '{"' * (n // 2),
    "late open strings": lambda n: "\n" * (n // 2) + '{"' * (n // 4),
    "one string under many objects": lambda n: '{"a":' * 900 + '"' + "x" * n,
    "one number under many objects": lambda n: '{"a":' * 900 + "1" * n,
    "trailing commas": lambda n: '{"a":[1,],' * (n // 10),
    "trailing commas inside": lambda n: '{"Emma":[' + "[1,]," * (n // 5) + "1]}",
    "lists": lambda n: '{"Emma":' + "[" * n,
    "objects": lambda n: '{"Emma":"x"}' * (n // 12),
    "empty objects": lambda n: "{}" * (n // 2),
    "quotes": lambda n: '"' * n,
    "NUL": lambda n: "\0" * n,
    "surrogates": lambda n: "\ud800" * n,
    "escaped breaks": lambda n: '{"Emma\\n":' * (n // 10),
    "blanks": lambda n: " " * n,
    "hashes": lambda n: "#" * n,
    "markers": lambda n: MARKER * (n // 20),
    "words of the marker": lambda n: "final " * (n // 6),
    "blanks in the marker": lambda n: ("### final" + " " * 999) * (n // 1008),
    "decoration": lambda n: "### final answer ###" + "*" * n,
}
FORMS = (
    YES_NO,
    Choice(("Yes", "No")),
    Choice(("Yes", "No"), MARKER, "reference"),
    Choice(("Yes", "No"), "ANSWER:"),
    MESSAGES,
    REFERENCE,
)
texts = (
    st.text()
    | st.text(alphabet='{}[]",:\\n Emma#Final Answer1\ud800\0')
    | st.binary().map(lambda data: data.decode("latin1"))
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NASTY)
def test_a_long_text_of_anything_is_read(name: str) -> None:
    for form in FORMS:
        parsed = form.parse(NASTY[name](200_000))
        assert (parsed.action is None) == (parsed.error is not None)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NASTY)
def test_twice_the_text_takes_twice_the_steps(name: str) -> None:
    for form in FORMS:
        assert steps(form, NASTY[name](20_000)) <= 2.2 * steps(form, NASTY[name](10_000)) + 100


@pytest.mark.parametrize("form", FORMS)
@given(text=texts)
def test_no_text_raises_and_every_action_is_legal(form: Choice | Messages, text: str) -> None:
    parsed = form.parse(text)
    assert (parsed.action is None) == (parsed.error is not None)
    if isinstance(form, Choice):
        assert parsed.action is None or parsed.action in form.options
    elif parsed.action is not None:
        assert set(parsed.action) <= set(form.to)
        json.dumps(parsed.action).encode()
        assert "".join(parsed.action.values()).encode("utf-8") is not None  # no lone surrogates


# ------------------------------------------------------------------------------------------- choice


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("### Final Answer ### Group 3", "Group 3"),
        ("I think so.\n\n### Final Answer ###\nGroup 3\n", "Group 3"),
        ("## final answer ##: **group 3**.", "Group 3"),
        ("#### FINAL ANSWER ####: 'Group 12'", "Group 12"),
        ("### **Final Answer** ###\n\n[Group  3]", "Group 3"),
        ("### Final Answer\nGroup 1", "Group 1"),
        ("### Final Answer ### “Group 11”", "Group 11"),
        ("### Final Answer ###\n```\nGroup 2\n```", "Group 2"),
        ("### Final Answer ### _Group 1_", "Group 1"),
        ("### Final Answer ### Group 1 because Group 2 is taken", "Group 1"),
        ("### Final Answer ### Group 1\nNo: ### Final Answer ### Group 2", "Group 2"),
        ("Write '### Final Answer ###', then the group. ### Final Answer ### Group 5", "Group 5"),
        ("### Final Answer ### Group 5. I wrote '### Final Answer ###', followed by my answer", "Group 5"),
        ("### Final Answer ### Group 13", None),
        ("### Final Answer ### Group 1.5", None),
        ("### Final Answer ### Group 123", None),
        ("### Final Answer ### My group is Group 1", "Group 1"),
        ("### Final Answer ### Group 1 or Group 2", None),
        ("### Final Answer ### Group 1/Group 2", None),
        ("Final Answer: Group 1", "Group 1"),
        ("# Final Answer # Group 1", "Group 1"),
        ("## Final Answer\n\n**Group 12**\n", "Group 12"),
        ("Final answer - Group 12", "Group 12"),
        ("Group 1", "Group 1"),
        ("So it is.\n\nGroup 12.", "Group 12"),
        ('{"reasoning": "Group 2 is taken", "answer": "Group 1"}', "Group 1"),
        ("<answer>Group 1</answer>", "Group 1"),
        ("Well. The answer is **Group 1**.", "Group 1"),
        ("So my answer: Group 12", "Group 12"),
        ("Therefore, Group 12.", "Group 12"),
        ("### Final Answer ### Group 1, Group 2", None),
        ("### Final Answer ### Group 1, Group 2 is taken", "Group 1"),
        ("### Final Answer ### Group 1 (or Group 12)", None),
        ("Group 1 or Group 2", None),
        ("I take Group 1", "Group 1"),
        ("", None),
    ],
)
def test_choice_after_a_marker(text: str, answer: str | None) -> None:
    assert GROUPS.parse(text).action == answer


@pytest.mark.parametrize(
    ("options", "said", "answer"),
    [
        (("No", "None"), "None", "None"),
        (("Yes", "No"), "None", None),
        (("Yes", "No"), "Not me", None),
        (("0", "1"), "1.0", None),
        (("0", "1"), "1.", "1"),
        (("0", "1"), "10", None),
        (("Jose", "Joseph", "None"), "Joseph", "Joseph"),
        (("Jose", "None"), "Joseph", None),
        (("Mary", "Ann"), "Mary-Ann", None),
        (("Mary", "Ann"), "Mary's group", None),
        (("Mary", "Ann"), "Mary - she asked me", "Mary"),
        (("bob", "Bob"), "Bob", "Bob"),
        (("bob", "Bob"), "BOB", None),
        (("(a)", "(b)"), "(a)", "(a)"),
        (("C++", "C"), "C++", "C++"),
    ],
)
def test_options_end_at_words_and_the_longest_wins(options: tuple[str, ...], said: str, answer: object) -> None:
    assert Choice(options, MARKER).parse(f"{MARKER} {said}").action == answer
    assert Choice(options, "ANSWER:").parse(f"Reasons.\nANSWER: {said}").action == answer


def test_a_marker_is_no_part_of_a_word() -> None:
    form = Choice(("GRAB", "WAIT"), "ACTION:")
    assert form.parse("REACTION: GRAB\nACTION: wait").action == "WAIT"
    assert form.parse("REACTION: GRAB").action is None
    assert form.parse("**ACTION**: GRAB").action == "GRAB"


@pytest.mark.parametrize(
    ("text", "answer"), [("Yes", "Yes"), (" **yes**. \n", "Yes"), ("Yes, I am", "Yes"), ("Yes No", None), ("", None)]
)
def test_the_whole_reply(text: str, answer: str | None) -> None:
    assert Choice(("Yes", "No")).parse(text).action == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("### Final Answer ### Group 12", "Group 1"),  # the prefix rule of the published code
        ("### Final Answer ###\n Group 2 ### Final Answer ### Group 3", "Group 2"),
        ("### Final Answer ### x ### Final Answer ### Group 3", "Group 3"),
        ("### Final Answer ###: Group 2", None),
        ("### Final Answer ### 'Group 2'", None),
        ("### final answer ### Group 2", None),
        ("### Final Answer ### group 2", None),
        ("### Final Answer ### Final Answer ### Group 4", "Group 4"),
    ],
)
def test_the_reference_reading_of_choices(text: str, answer: str | None) -> None:
    assert Choice(GROUPS.options, MARKER, "reference").parse(text).action == answer


@given(st.lists(st.text(st.characters(categories=("L", "N")), min_size=1), min_size=1, unique=True), st.data())
def test_what_constrained_decoding_writes_is_read(options: list[str], data: st.DataObject) -> None:
    form = Choice(tuple(options), MARKER)
    shards = data.draw(st.sampled_from(form.constraint()["choice"]))
    assert f"{MARKER} {form.parse(shards).action}" == shards
    assert form.noop is None


def test_the_complaint_names_the_options() -> None:
    assert YES_NO.parse("maybe").error == (
        "no valid answer was found after '### Final Answer ###'; the valid answers are: 'Yes', 'No'"
    )
    assert "(99 in all)" in (Choice(tuple(map(str, range(99)))).parse("?").error or "")


# ----------------------------------------------------------------------------------------- messages


@given(st.dictionaries(st.sampled_from(TO), st.text(st.characters(exclude_categories=["Cs"]))), st.booleans())
def test_well_formed_messages_come_back(sent: dict[str, str], ascii_only: bool) -> None:
    text = json.dumps(sent, ensure_ascii=ascii_only)
    assert MESSAGES.parse(text).action == sent
    assert MESSAGES.parse(f"I think {{this}} is best.\n```json\n{text}\n```\nDone.").action == sent


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("{}", {}),
        ('{"Emma": "hi\nyou"}', {"Emma": "hi\nyou"}),
        (r'{"Emma": "hi\nyou"}', {"Emma": "hi\nyou"}),
        ('{"Emma": "<parameter>"}', {"Emma": "<parameter>"}),
        ('{"Emma": "a", "Alan": "b",}', {"Emma": "a", "Alan": "b"}),
        ('{"Emma": "a" , \n }', {"Emma": "a"}),
        ('{"Emma": "a", "Stranger": "b"}', {"Emma": "a"}),
        ('{" emma ": "a", "MARY ANN": "b"}', {"Emma": "a", "Mary Ann": "b"}),
        ('{"Emma": 5, "Alan": true, "Mary Ann": null}', {"Emma": "5", "Alan": "true"}),
        ('{"Emma": {"x": [1, 2.5, "é",],}}', {"Emma": '{"x":[1,2.5,"é"]}'}),
        ('{"Emma": {"Alan": "b"}}', {"Emma": '{"Alan":"b"}'}),
        ('{"Emma": "draft"} or rather {"Emma": "final"}', {"Emma": "final"}),
        ('{"Emma": "a"}\n{"Alan": "b"}', {"Emma": "a", "Alan": "b"}),
        ('[{"Emma": "a"}, {"Alan": "b"}, {"mary ann": "c"}]', {"Emma": "a", "Alan": "b", "Mary Ann": "c"}),
        ('{"messages": [{"Emma": "a"}, {"Alan": "b"}]}', {"Emma": "a", "Alan": "b"}),
        ('{"Emma": "1", "Alan": "2"} no: {"Emma": "3"} {"Alan": "4"}', {"Emma": "3", "Alan": "4"}),
        ('{"Emma": "1", "Alan": "2"} no: {"Emma": "3"}', {"Emma": "3"}),
        ('{"Emma": "a"}\nIf I had nothing to say I would write {}.', {"Emma": "a"}),
        ('{} is silence, so {"Emma": "a"} and not `{}`', {"Emma": "a"}),
        ('{"Emma": "a"} No, better:\n```json\n{}\n```\n', {}),
        ('{"Emma": "a"}\n{}', {}),
        ("I say nothing: {}.", {}),
        ('{"Emma": null}\n{"Alan": "b"}', {"Alan": "b"}),
        ('{"Emma": "a"} and {"note": "b"}', {"Emma": "a"}),
        ('{"thoughts": "…", "messages": {"Emma": "a"}}', {"Emma": "a"}),
        ('{"messages": [{"to": "Emma"}, {"Emma": "a"}]}', {"Emma": "a"}),
        ('{"Emma": "\\ud83d\\ude00"}', {"Emma": "😀"}),
        ('{"Emma": "\\ud83d"}', {"Emma": "\ufffd"}),
        ('{"Emma": "\ud800x"}', {"Emma": "\ufffdx"}),
        ('{"Emma": "{\\"Alan\\": \\"b\\"}"}', {"Emma": '{"Alan": "b"}'}),
        ("{'Emma': 'a'}", {"Emma": "a"}),
        ('{"Stranger": "a"}', None),
        ('["Emma"]', None),
        ("Emma: hi", None),
        ("", None),
    ],
)
def test_messages(text: str, sent: dict[str, str] | None) -> None:
    assert MESSAGES.parse(text).action == sent


@pytest.mark.parametrize(
    ("text", "dropped"),
    [
        ("", 0),
        ("no object", 0),
        ('{"Emma": "a"}\n{"Alan": "b"} and {}', 0),
        ('{"Emma": "a", "Bob": "b", "Cy": null}', 1),
        ('{"Emma": "1", "Alan": "2"} no: {"Emma": "3"} {"Alan": "4"}', 2),
        ('{"Emma": "a"}\n{}', 1),
        ('{"Emma": "a"} ' * 5000, 4999),
    ],
)
def test_messages_that_are_not_sent_are_counted(text: str, dropped: int) -> None:
    assert MESSAGES.dropped(text) == dropped


@given(st.lists(st.sampled_from(['{"Emma": "a"}', '{"Alan": "b", "Bob": "c"}', "{}", "[", "]", "{", " x ", "\n", ","])))
def test_every_message_is_sent_or_counted(pieces: list[str]) -> None:
    text = "".join(pieces)
    written = text.count('"a"') + 2 * text.count('"b"')
    assert len(MESSAGES.parse(text).action or ()) + MESSAGES.dropped(text) == written


def test_messages_end_at_their_limit() -> None:
    assert Messages(("Emma",), max_chars=3).parse('{"Emma": "hello"}').action == {"Emma": "hel"}


def test_nesting_is_capped() -> None:
    def nested(depth: int) -> str:
        return '{"Emma": ' + "[" * depth + "]" * depth + "}"

    assert MESSAGES.parse(nested(literals.MAX_DEPTH - 3)).action is not None
    assert MESSAGES.parse(nested(literals.MAX_DEPTH)).action is None


def test_only_the_end_of_an_endless_reply_is_searched() -> None:
    end = '{"Emma": "a"}'
    assert MESSAGES.parse("x" * messages.MAX_TEXT + end).action == {"Emma": "a"}
    assert MESSAGES.parse(end + "x" * messages.MAX_TEXT).action is None


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('{"Emma": "a"} {"Alan": "b"}', {"Alan": "b"}),
        ('Hm {x}. {"Emma": "a"}', {"Emma": "a"}),
        ('{"Emma": "a", "Bob": "b"}', {"Emma": "a"}),  # a known name that is no neighbor
        ("{}", {}),
        (r'{"Emma": "a\nb"}', None),  # an escaped line break
        ('{"Emma": "a",}', None),
        ('{"Emma": "a"} }', None),
        ('{"Emma": "a", "Nobody": "b"}', None),
        ('{"Emma": 5}', None),
        (r'{"Emma": "a",\n "Alan": "b"}', {"Emma": "a", "Alan": "b"}),
        ('{"Emma": "{"} and more ", "Alan": "b"}', None),
    ],
)
def test_the_reference_reading_of_messages(text: str, sent: dict[str, str] | None) -> None:
    assert REFERENCE.parse(text).action == sent


def plain_reference(text: str) -> dict[str, str] | None:
    """The published code's rule as it is told in words: quadratic, and without any care."""
    text = text.replace("\\n", "\n")
    for start in range(len(text)):
        if text[start] == "{":
            try:
                value = json.loads(text[start : text.rfind("}") + 1])
            except ValueError:
                continue
            if set(value) <= {"Emma", "Alan", "Bob"} and all(isinstance(v, str) for v in value.values()):
                return {name: value[name] for name in value if name in ("Emma", "Alan")}
    return None


parts = st.sampled_from(
    ['{"Emma": "a"', ', "Alan": "b"', "}", "{", "{}", '"', ": ", "\\n", " ", "\n", "[1]", "x", '"Bob": 1']
)


@settings(max_examples=examples(300))
@given(st.lists(parts, max_size=12).map("".join))
def test_the_reference_reading_is_the_plain_rule(text: str) -> None:
    assert REFERENCE.parse(text).action == plain_reference(text)


def test_the_schema_admits_what_is_read() -> None:
    from jsonschema import Draft202012Validator

    form = Messages(("Emma", "Alan"), max_chars=5)
    schema = Draft202012Validator(form.constraint()["json"])
    assert schema.is_valid({"Emma": "hello"}) and schema.is_valid(form.noop)
    assert not schema.is_valid({"Emma": "hello!"})
    assert not schema.is_valid({"Bob": "hello"})


def test_the_complaint_names_the_neighbors() -> None:
    assert (MESSAGES.parse("?").error or "").endswith("names of your neighbors: Emma, Alan, Mary Ann")
    assert "(21 in all)" in (Messages(tuple(map(str, range(21)))).parse("?").error or "")


HI, YO = "I am in Group 1.", "take 2, it's free"


@pytest.mark.parametrize(
    "text",
    [
        '{"Emma": "%s", // my choice\n "Alan": "%s" /* for him */}',
        '# to both\n{\n  # Emma first\n  "Emma": "%s",\n  "Alan": "%s",  # then Alan\n}',
        "{“Emma”: “%s”, “Alan”: “%s”}",
        "{„Emma“: „%s“, „Alan“: „%s“}",
        '{”Emma”: ”%s”, "Alan": “%s”}',
        '{"Emma": "%s", "Alan": "%s"',
        '```json\n{\n"Emma": "%s",\n"Alan": "%s"\n```',
        '"Emma": "%s",\n"Alan": "%s"}',
        '{"Emma": "%s"\n"Alan": "%s"}',
        '[{"to": "Emma", "message": "%s"}, {"to": "Alan", "message": "%s"}]',
        '{"messages": [{"recipient": "emma", "content": "%s"}, {"recipient": "ALAN", "content": "%s"}]}',
        '{"to": "Emma", "message": "%s"}\n{"to": "Alan", "message": "%s"}',
        '{"messages": {"Emma": "%s", "Alan": "%s"}}',
        '[{"Emma": "%s"}, {"Alan": "%s"}]',
        '<think>{"Emma": "no", "Mary Ann": "no"}</think>{"Emma": "%s", "Alan": "%s"}',
        '{"Emma": "%s", "Alan": "%s", "Mary Ann": "and then it was cut of',
    ],
)
def test_messages_in_json_that_is_none(text: str) -> None:
    """Comments, curly quotes, a missing brace or comma, lists of addressed messages, a cut-off reply."""
    written = text % (HI, YO)
    assert MESSAGES.parse(written).action == {"Emma": HI, "Alan": YO}
    assert MESSAGES.dropped(written) == (1 if "cut of" in text else 0)


def test_a_message_to_several_neighbors_and_to_an_unknown_one() -> None:
    assert MESSAGES.parse('{"to": ["Emma", "Alan"], "message": "hi"}').action == {"Emma": "hi", "Alan": "hi"}
    text = '[{"to": "Emma", "message": "hi"}, {"to": "Zoe", "message": "yo"}]'
    assert MESSAGES.parse(text).action == {"Emma": "hi"} and MESSAGES.dropped(text) == 1
    assert Messages(("to", "message")).parse('{"to": "a", "message": "b"}').action == {"to": "a", "message": "b"}


@pytest.mark.parametrize("text", ['"Emma": "hi"', 'I told "Emma": hello', '{"Emma": "cut of', "{Emma", '{"Zoe": "hi"'])
def test_what_names_a_neighbor_and_is_no_object_is_no_message(text: str) -> None:
    assert MESSAGES.parse(text).action is None
