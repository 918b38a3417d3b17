"""The last resort: a sentence states a value only where it leaves no doubt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Reply
from harness.extensions.datasets.label import Label
from harness.extensions.datasets.letter import Letter
from harness.extensions.datasets.number import Number
from harness.extensions.networks.answers import NUMBERS, TEXT, Answer
from harness.extensions.panels.ballots import Ranking
from harness.replies import Choice
from harness.replies.conclusions import concluding, first_sentence, sentences

COLORS = Choice(("Red", "Green", "Blue"), "Answer:")
TOPICS = Label(("Travel", "Politics", "Sports"))
WORD = Answer(TEXT, "Final answer:")
RANKING = Ranking(("Ann", "Bob", "Cem"))
LIST = Answer(NUMBERS, "Answer:")


@pytest.mark.parametrize("form", [Number(), COLORS], ids=["number", "choice"])
@pytest.mark.parametrize(
    "frame",
    [
        "It could be {}.", "It may be {}.", "Maybe {} fits.", "Is it {}?", "Whether it is {} is open.",
        "P1, please take {}.", "The other robot has {}.",
        "If the first clue holds, it is {}.", "Assuming that it rains, the total is {}.", "Agent 1 says {}.",
        "Player 2's value is {}.", "P3: {}", "You could take {}.", "I will wait; so far it is {}.",
        "I cannot determine it, but some say {}.", "It is not {}.", "The value {} is one of several possible answers.",
        "So the value could be {}. But the value must", "We have {}. I have not locked mine in yet.",
        "Please send me {}.", "It was {}. The true value is not provided.",
    ],
)  # fmt: skip
def test_a_doubt_is_no_answer(form: Reply, frame: str) -> None:
    value = "42" if isinstance(form, Number) else "Green"
    assert form.parse(frame.format(value)).action is None
    assert form.parse(f"Let us think.\n\n{frame.format(value)}").action is None


@pytest.mark.parametrize("form", [Number(), COLORS], ids=["number", "choice"])
@pytest.mark.parametrize(
    "frame",
    [
        "So there we have {}.", "We end with {}.", "In summary, this leaves {}.", "My pick is {}. This talk is over.",
        "Everything points to {}. Please note that this may vary.", "I'm taking {} now. Confirm your moves.",
        "The clues lead to {}. Is there anything else I can help you with?",
    ],
)  # fmt: skip
def test_one_value_without_a_doubt_is_the_answer(form: Reply, frame: str) -> None:
    value = "42" if isinstance(form, Number) else "Green"
    assert str(form.parse(frame.format(value)).action) == value


@pytest.mark.parametrize(
    ("form", "text", "action"),
    [
        (Number(), "There are 3 possible answers: 42, 17 and 5.", None),
        (Number(), "The equation has two solutions: x = 12.75 and x = 3.5.", None),
        (Number(), "First 17, then 25, finally 42.", None),
        (Number(), "She will have $42 left when she turns 22 years old.", 42),
        (Number(), "Rounded to 2 decimal places, this leaves 42.", 42),
        (Number(), "1. One\n2. Two\n\nSo, there are 42 horses in total.", 42),
        (Number(), " 42\n\nQ: How many days are in a leap year?\nA: 366", 42),
        (Number(), "The answer must be in the format. So the total could be 17.", None),
        (Letter(4), "B: 34%, C: 33%, D: 33%. I can't separate them.", None),
        (Number(), "So x = 42 or x = 17, but x must be even, so x = 42.", None),
        (Number(), "I got 42, then halved it: 21.", 21),
        (Letter(4), "Therefore, option (C) can be eliminated.", None),
        (Letter(4), "As noted in (B), it rains.", None),
        (Letter(4), "Many would choose (C).", None),
        (Letter(4), "**B) Rome**\n\nRome is the capital; (C) is in Spain.", "B"),
        (Letter(4), "## ✅ Option B\n\n**Why not C?** It ignores friction.", "B"),
        (Letter(4), "정답은 B입니다.", "B"),
        (Letter(4), "因此选错C的人很多，故选B。", "B"),
        (Choice(("合作", "不合作"), "答案："), "我决定不合作", None),
        (TOPICS, "Category: Travel\n\nThe text is about politics and more Politics", "Travel"),
        (TOPICS, "Travel: no\nPolitics: yes\nSports: no", None),
        (TOPICS, "Travel\nPolitics", None),
        (TOPICS, '{"thought": "Travel or Politics", "mood": "Sports"}', None),
        (TOPICS, "The exhibit belongs to the Travel category.", "Travel"),
        (COLORS, "Agent 1: Red\nAgent 2: Green\nAgent 3: Blue", None),
        (COLORS, "Winner: Red\n\nRunner-up: Blue", "Red"),
        (Choice(("P1", "P2"), "Answer:"), "I agree with P1.", None),
        (Choice(("P1", "P2"), "Answer:"), "P2 stays silent. I vote to eliminate P2.", "P2"),
        (Number(), "17 is too low. 42 is my offer.", None),
        (Number(), "My limit is 42 but I offer 17.", None),
        (WORD, "Paris", "Paris"),
        (WORD, "The capital is **Paris**, as the second document shows.", "Paris"),
        (WORD, "The clues suggest something with magic, and a journey into a new world.", None),
        (WORD, 'The name in the "About" section is not provided.', None),
        (RANKING, "1. Ann\n2. Bob\n3. Cem", ["Ann", "Bob", "Cem"]),
        (RANKING, "3. Ann\n2. Bob\n1. Cem", ["Cem", "Bob", "Ann"]),
        (RANKING, "🥇 Ann\n🥈 Bob\n🥉 Cem", ["Ann", "Bob", "Cem"]),
        (RANKING, "| Rank | Name |\n|---|---|\n| 2 | Ann |\n| 1 | Bob |\n| 3 | Cem |", ["Bob", "Ann", "Cem"]),
        (RANKING, "Best: Cem\nMiddle: Bob\nWorst: Ann", ["Cem", "Bob", "Ann"]),
        (RANKING, "First place goes to Bob, second to Ann, and third to Cem.", ["Bob", "Ann", "Cem"]),
        (RANKING, "1. Bob\n2. Ann\n\nI did not like Cem.", None),
        (RANKING, "Bob > Ann = Cem", None),
        (LIST, "I have [14, 25] so far, waiting for the rest.", None),
        (LIST, "Agent 1: [14]\nAgent 2: [25]", None),
        (WORD, "Perhaps Ada", None),
        (WORD, "The code word was ruby, as Agent 2 told us.", "ruby"),
        (RANKING, "1. Ann\n1. Bob\n2. Cem", None),
        (RANKING, "From worst to best: Ann, Bob, Cem", None),
        (LIST, "- 14: seen at the gate\n- 25: has the key", [14, 25]),
        (LIST, "- [x] 14\n- [x] 25\n- [ ] 36", [14, 25]),
        (LIST, "Step 1: 14\nStep 2: 25", None),
    ],
)  # fmt: skip
def test_what_a_reply_without_a_label_says(form: Reply, text: str, action: object) -> None:
    assert form.parse(text).action == action


@given(st.text(alphabet='ab A.!? \n"*12', max_size=300))
def test_sentences_are_all_of_a_line(line: str) -> None:
    assert "".join("".join(reversed(list(sentences(line)))).split()) == "".join(line.split())
    assert first_sentence(line) in line
    assert concluding(line, lambda said: False) is None
