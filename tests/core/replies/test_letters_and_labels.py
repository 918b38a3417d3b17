"""Letters of options and labels: every plausible way to write them, and the traps of articles, pronouns and lists."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.datasets.label import Label, canonical_label
from harness.extensions.datasets.letter import Letter
from harness.replies import Choice

CITIES = Letter(("Paris", "Rome", "Berlin", "The Hague", "Oslo", "Bonn", "Kiel", "Ulm", "Linz", "Graz"))
YES_NO = Label(("Yes", "No"))
LETTERS = Label(("a", "b"))
RELEVANT = Label(("relevant", "irrelevant"))
LAWS = Label(("UCC", "Common Law"))
PARTS = Label(("analysis", "procedural history", "rule"))
DIGITS = Label(tuple("01234"))


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("The answer is (B).", "B"), ("Answer: C", "C"), ("**Answer:** (D)", "D"), ("Answer:\n\n(A)", "A"),
        ("answer: 'B'", "B"),
        ("The answer is definitely B", "B"), ("The answer is most likely option (C)", "C"), ("the answer is (b)", "B"),
        ("The best answer is the letter F, since", "F"), ("The correct answer is option **E**.", "E"),
        ("I choose J", "J"),
        ("Therefore, the correct choice is D.", "D"), ("The answer is A because of this", "A"), ("answer is A.", "A"),
        ("The answer is:\n\nB. Rome", "B"), ("The answer is (A) Paris.", "A"), ("The answer is **C) Berlin**", "C"),
        (r"\boxed{B}", "B"), (r"\boxed{\text{(b)}}", "B"), (r"The answer is $\boxed{C}$", "C"), (r"\boxed{Oslo}", "E"),
        (r"Final Answer: $\text{B}$", "B"), ("answer is (A). No wait, answer is (C).", "C"),
        ("answer is (A).\nNo.\n\nB", "B"),
        ("Answer: Paris", "A"), ("so\nthe hague", "D"), ("Paris", "A"), ("so\n\n**B**", "B"), ("so\nB.", "B"),
        ("A", "A"),
        ("B. Rome", "B"), ("B) because of it", "B"), ("B, because of it", "B"), ("I say (C)", "C"), ("b", "B"),
        ("(j)", "J"),
        ("not (B) but (C)", "C"), ("(C), not (B)", "C"), ("(C) is wrong, so option D", "D"),
        ("option D: (C) is wrong", "D"),
        # the traps
        ("answer is a proton", None), ("The answer is A proton", None), ("The answer is I think it is B", "B"),
        ("answer is I'm", None), ("I think it is a good one", None), ("a good one\nI would say", None),
        ("the answer is b", "B"), ("So the answer is c.", "C"), ("Answer: a\nbecause it is so", "A"),
        ('{"answer": "B"}', "B"), ('{"reasoning": "(A) is wrong", "answer": "(c)"}', "C"),
        ("<answer>J</answer>", "J"), ("So.\n<answer>Rome</answer>", "B"), ("Final Answer: Option C: the third", "C"),
        ("c: the third", "C"), ("### Answer\nB", "B"), ("Answer - B", "B"),
        ("<answer>C. the third</answer>", "C"), ("Answer - C) third", "C"), ("[ANSWER] B", "B"),
        ("Answer: <b>", "B"),
        ("Option A or option B", None), ("option A and B", None), ("Could be (A) or maybe (B)", None),
        ("(A) as well as (B)", None), ("Answer: A; B", None), ("Answer: A (or B)", None),
        ("(A) Paris or (B) Rome", None),
        ("Both (A) and (B)", None), ("(A) or (B)", None), ("**A** and **B**", None), ("It is (A), (B) or (C)", None),
        ("The answer is a good one", None), ("the answer is b or c", None),
        ("The answer is not B", None), ("The answer is B or C", None), ("Answer: A/B/C/D", None),
        ("Answer: A, B, C, or D", None),
        ("The answer is probably (a), (b) and so", None), ("The answer is (K)", None),
        ("The answer is Definitely", None),
        ("", None), ("A is B and C is D, he said", None),
    ],
)  # fmt: skip
def test_letters(text: str, letter: str | None) -> None:
    assert CITIES.parse(text).action == letter


ENDINGS = (
    "So B.", "Thus, B.", "Therefore, B", "Therefore (B).", "Hence B is correct.", "So the answer is B.", "So it's B.",
    "So it must be B.", "So, option B.", "So I choose B.", "B is the correct answer.", "B is correct.",
    "Option B is the right choice.", "(B) is the best answer.", "B must be right.", "B seems to be the best option.",
    "B it is.", "B, I think.", "B, because Rome is it.", "**B** is correct.", "Ans: B", "ans. B", "Correct: B",
    "Correct answer: B", "Final: B", "Final answer - B", "My answer: B", "Solution: B", "Choice: B", "A: B",
    "I'd go with B.", "I would say B.", "I think it is B.", "I think B.", "I believe the answer is B", "I pick B",
    "I'll go with option B.", "My choice is B.", "My pick: B", "I vote for B.", "It is B.", "That leaves B.",
    "The only one left is B.", "By elimination, B.", "Everything points to B.", "This makes B the correct choice.",
    "The right one is B", "It has to be (B).", "It can't be A, so B.", "Only B fits.", "→ B", "✅ B", "B - Rome",
    "B (Rome)", "Answer is: B", "Choose B.", "Select (B).", "The letter is B", "In conclusion, B.",
    "I think B, but I am not sure", "I am going with B!", "Answer => B", "Answer = B", "I'm leaning towards B.",
    "I am confident in B.", "Definitely B.", "Correct option: **B**", "So: B", "Final choice: (B)",
    "The statement that holds is B.", "B. Rome", "B: Rome", "So B, Rome.", "The best choice would be B.", "Answer B",
    "Option B", "Option B.", "option (B)", "I settle on B.", "That would be B.", "Verdict: B", "Result: B",
    "The answer: B", 'the correct choice is "B".', "Clearly B.", "B!", "[B]", "<B>", "Ans-B", "ANSWER: B",
    "Answer is B, final.", "The answer's B.", "Its B.", "It's B", "B for sure.", "Answer (B)",
    "The correct answer would be B.", "The answer must be B", "I choose option B: Rome.", "So my final answer is B",
)  # fmt: skip
NO_ENDINGS = (
    "A or B.", "So A or B.", "It is not B.", "So not B.", "B is not correct.", "B is incorrect.",
    "Either A or B is correct.", "So A proton is heavy.", "I think A good one is there.", "I think I know.",
    "He moves from A to B.", "If so, B is correct.", "So B or C.", "Only A and B fit.", "Vitamin A", "It isn't B.",
    "So B is wrong.", "I rule out B.", "We eliminate B.", "I have no idea.", "Is it B?", "Could be B or C",
    "I cannot say whether B is right.", "So, A is false and B too", "Therefore, both A and B.",
    "I would not choose B.", "I choose neither A nor B.", "The answer could be A, B or C.", "Is B correct?",
    "Choose A or B.", "The options are A, B.",
)  # fmt: skip


def test_a_letter_in_a_later_sentence_leaves_no_earlier_one_stated() -> None:
    assert Letter(4).parse("Option D contradicts the second. That leaves, I would think, B.").action in (None, "B")
    assert Choice(("A", "B"), "Answer:").parse('So the answer is "a rise in prices", i.e. option (B).').action == "B"


@pytest.mark.sampled(40)
@pytest.mark.parametrize("before", ["", "Rome and Paris are cities. A is wrong.\n\n", "The answer is (A)? No.\n"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_plain_endings(ending: str, before: str) -> None:
    """Of these a quarter was unread once; "A: B" was A."""
    assert Letter(("Paris", "Rome", "New York", "Oslo")).parse(before + ending).action == "B"
    assert Label(("a", "b", "c")).parse(ending).action == "b"


@pytest.mark.parametrize("ending", NO_ENDINGS)
def test_endings_that_state_no_letter(ending: str) -> None:
    assert Letter(("Paris", "Rome", "New York", "Oslo")).parse(ending).action is None


@pytest.mark.parametrize("odd", ["\u0130", "\u0131", "\u212a", "\uff22", "\u0412", "\u0392", "ß"])
@pytest.mark.parametrize(
    "frame", ["{}", "({})", "The answer is ({}).", "Answer: {}", "So {}.", "\\boxed{{{}}}", "option {}"]
)
def test_only_ascii_letters_are_letters(odd: str, frame: str) -> None:
    """Without regard to case İ and ı are I for Python, and the sign of Kelvin is K."""
    assert Letter(26).parse(frame.format(odd)).action is None
    assert Label(("i", "k", "b")).parse(frame.format(odd)).action is None


def test_letters_beyond_the_options_are_none() -> None:
    assert Letter(4).parse("The answer is (E).").action is None
    assert Letter(5).parse("The answer is (E).").action == "E"
    assert Letter(("Paris", "Rome")).options == ("A", "B")
    assert Letter(("Paris", "paris ")).parse("Paris").action is None, "two options with the same text"
    assert Letter(("B", "A")).parse("Answer: B").action == "B", "an option's text that is a letter is no answer"


@pytest.mark.parametrize("choices", [0, 27, (), ("x",) * 27])
def test_impossible_numbers_of_options(choices: int | tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="1 to 26 options"):
        Letter(choices)


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    "way",
    [
        "The answer is ({}).", "I think (A) is wrong, a lot.\n\nAnswer: {}", "So\n\\boxed{{{}}}",
        "I considered it.\n**{}**",
        "The correct answer is definitely option {}, since x is a number.", "Final Answer: {}. Some text", "{}",
        "Words.\n({}) it",
        "The answer is **{}**", "Answer: \\text{{{}}}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("letter", "ABCDEFGHIJ")
def test_every_letter_in_every_way(way: str, letter: str) -> None:
    assert CITIES.parse(way.format(letter)).action == letter


@pytest.mark.parametrize(
    ("form", "text", "label"),
    [
        (YES_NO, "Final Answer: yes", "Yes"), (YES_NO, "**Final Answer:** **Yes**", "Yes"),
        (YES_NO, "Answer: (NO).", "No"),
        (YES_NO, "Final Answer: yes\nFinal Answer: no", "No"), (YES_NO, "Final Answer:\nNo", "No"),
        (YES_NO, "'yes'", "Yes"),
        (YES_NO, "true", "Yes"), (YES_NO, "Answer: False", "No"), (YES_NO, "The answer is no, since", "No"),
        (YES_NO, '{"answer": "no", "why": "yes"}', "No"), (YES_NO, '{"answer": true}', "Yes"),
        (YES_NO, "Answer: [Yes]", "Yes"),
        (YES_NO, "{'final_answer': 'Yes'}", "Yes"), (YES_NO, "Yes, there is no breach", "Yes"),
        (YES_NO, "It is a clear no", "No"),
        (YES_NO, "There is no doubt.\nYes.", "Yes"), (YES_NO, "Final answer: \\boxed{Yes}", "Yes"),
        (YES_NO, "Please answer yes or no", None), (YES_NO, "Answer yes/no:", None),
        (YES_NO, "Final Answer: Yes or No", None),
        (YES_NO, "<answer>no</answer>", "No"), (YES_NO, "Answer - yes", "Yes"),
        (YES_NO, "I would say no because", "No"),
        (YES_NO, "Answer: no evidence either way", None), (YES_NO, "Final Answer: No clue", None),
        (YES_NO, "The answer is no longer known", None), (YES_NO, '{"answer": "no evidence"}', None),
        (YES_NO, '{"answer": ["Yes", "No"]}', None), (YES_NO, "Final Answer: yes | no", None),
        (YES_NO, "Yes, no", None),
        (YES_NO, "Is it yes? Hard to say.", None), (YES_NO, "Yes, no doubt about it", "Yes"),
        (YES_NO, "Final Answer: No, it is not", "No"), (YES_NO, "The answer is no because of this", "No"),
        (YES_NO, "Yes or No", None), (YES_NO, "Yes and no", None), (YES_NO, "Both yes and no", None),
        (YES_NO, "There is no evidence either way", None), (YES_NO, "No one knows", None),
        (LETTERS, "c: text", None), (LETTERS, "a: text", "a"), (LETTERS, "b) text", "b"),
        (YES_NO, "nothing, know", None), (YES_NO, "", None),
        (Label(("True", "False")), "Answer: yes", "True"), (Label(("True", "False")), "false", "False"),
        (Label(("yes", "no", "true")), "Answer: false", None), (Label(("yes", "no", "true")), "Answer: true", "true"),
        (LETTERS, "Final Answer: (B)", "b"), (LETTERS, "Final Answer: a", "a"), (LETTERS, "B", "b"),
        (LETTERS, "a", "a"),
        (LETTERS, "Answer: Option B", "b"), (LETTERS, "**A**", "a"), (LETTERS, "Answer: A. something", "a"),
        (LETTERS, "I pick (B)", "b"), (LETTERS, "it is a matter", None), (LETTERS, "Answer: a matter of taste", None),
        (LETTERS, "Answer: C", None), (LETTERS, "Final Answer: A or B", None),
        (RELEVANT, "irrelevant", "irrelevant"), (RELEVANT, "The text is Irrelevant", "irrelevant"),
        (RELEVANT, "Answer: relevant, not irrelevant", "relevant"), (RELEVANT, "It is not relevant", None),
        (LAWS, "Final Answer: common law", "Common Law"), (LAWS, "Final Answer: ucc.", "UCC"),
        (LAWS, "the UCC applies", "UCC"),
        (PARTS, "Answer: Procedural_History", "procedural history"),
        (PARTS, "it is Procedural  History", "procedural history"),
        (PARTS, "Answer: ruler", None), (DIGITS, "Final Answer: 3", "3"), (DIGITS, "3", "3"),
        (DIGITS, '{"answer": 2}', "2"),
        (DIGITS, "section 3 holds", None), (DIGITS, "Answer: 3.5", None), (DIGITS, "Answer: 10", None),
        (DIGITS, "Answer: 7", None),
    ],
)  # fmt: skip
def test_labels(form: Label, text: str, label: str | None) -> None:
    assert form.parse(text).action == label


@pytest.mark.parametrize("form", [YES_NO, LETTERS, RELEVANT, LAWS, PARTS, DIGITS], ids=lambda form: form.labels[0])
@pytest.mark.parametrize(
    "way",
    [
        "Final Answer: {}", "Some thoughts, a bit.\n**Final Answer:** **{}**", "Answer: ({})", "{}.",
        "The answer is {}.",
        "It is so.\nFinal Answer: “{}”", "```json\n{{'answer': '{}'}}\n```",
    ],
)  # fmt: skip
def test_every_label_in_every_way(form: Label, way: str) -> None:
    for label in form.options:
        output = label.upper() if form is LETTERS else label
        assert form.parse(way.format(output)).action == label
        assert form.parse(json.dumps({"answer": label})).action == label


@pytest.mark.parametrize("labels", [(), ("yes", "Yes."), ("a b", "a_b")])
def test_labels_must_differ(labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="labels must be given and differ"):
        Label(labels)


@given(st.text(max_size=40))
def test_the_canonical_form_of_a_label_is_one(text: str) -> None:
    assert canonical_label(canonical_label(text)) == canonical_label(text)
