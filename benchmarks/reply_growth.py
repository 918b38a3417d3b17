"""Whether the time to read a reply grows as its text does: `python benchmarks/reply_growth.py [--smoke]`.

Every form reads texts that invite a second look at each place: open brackets, half labels, the form's own example, over
and over. Prints the text that grows most for each form. Ends with 1 where a hundred times the text takes more than a
thousand times the processor time in each of three tries: a quadratic reading takes ten thousand times as much. With
`--smoke`, each form reads every sixth text, and four thousand times is allowed, because other work runs beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.api import Reply
from harness.replies.parse_guard import MAX_CHARS
from tests.core.replies.every_form import ACTIONS, FORMS, MARKER

SMOKE = "--smoke" in sys.argv[1:]
LIMIT, TRIES = 4000 if SMOKE else 1000, 3

BRACKETS = ("\\boxed{", "\\boxed{ ", "{", "[", "(", '{"answer":', "<", "<a ", "</", "`", "```\n", '"', "'", "$", "\\")
WORDS = (
    *(
        "answer: ",
        "answer is ",
        "the answer is definitely ",
        "Answer:\n",
        "ACTION: ",
        "ACTION - ",
        "<action>",
        "MESSAGE: ",
    ),
    *(
        "### ",
        "#### ",
        MARKER + " ",
        "Verdict: ",
        "Program: ",
        "Program: add(",
        "confidence: ",
        "add(1, ",
        "GRAB_LEFT ",
    ),
    *(
        "yes or ",
        "no ",
        "not ",
        "(A) ",
        "option A ",
        "A, ",
        "Paris ",
        "1,",
        "1/",
        "1,234 ",
        "-",
        "1 ",
        "0",
        ".5",
        "12345 ",
    ),
    *(
        "send_message ",
        "<send_message>",
        "<wait/>",
        "def f(x):\n ",
        "return 1\n",
        "x = (\n",
        "# c\n",
        " ",
        "\n",
        "\t\n",
    ),
    *(
        "only ",
        "the, ",
        "color ",
        "it's ",
        "reduction of 5 ",
        "is 5 ",
        "7 + ",
        "A or B, ",
        "Answer: 5 no wait, ",
        "~~a~~ ",
    ),
    *("Answer: 5\n", "- a\n", "### Answer\n", "Answer\n", "Answer - 5\n", f"{MARKER}\n", "Question: x\n", "---\n"),
    *("<b>", "<b>x</b>", "<think>", "</think>", "<answer>", "<tool_call>", "<!--", "reply(a=1)\n", "\\frac{1}{2} "),
    *(
        '{"answer": 1} ',
        'for example {"answer": 1} ',
        '"answer": 5, ',
        "| a | b |\n|---|---|\n",
        "```\nx\n```\n",
        "\n\\boxed{}",
    ),
)


def again(word: str) -> Callable[[int], str]:
    """A word so often that the text has so many characters."""
    return lambda n: word * (n // len(word))


TEXTS: dict[str, Callable[[int], str]] = {
    **{repr(word): again(word) for word in (*BRACKETS, *WORDS)},
    "closed boxes": lambda n: "\\boxed{" * (n // 8) + "}" * (n // 8),
    "boxes with room": lambda n: "\\boxed{ " * (n // 10) + "} " * (n // 10),
    "one open box": lambda n: "\\boxed{" + "\\boxed{1}" * (n // 10),
    "empty boxes": lambda n: "\\boxed{}" * (n // 9),
    "nested objects": lambda n: '{"answer":' * (n // 11) + "1" + "}" * (n // 11),
    "one key and a flood": lambda n: '{"answer": "' + "x\n" * (n // 2),
    "one label and a flood": lambda n: "Answer: " + "x" * n,
    "a flood and one label": lambda n: "x " * (n // 2) + "\nAnswer: ",
    "all options": lambda n: f"ACTION: {' / '.join(ACTIONS)}\n" * (n // 50),
    "one line of options": lambda n: " / ".join(ACTIONS) * (n // 40),
    "words": lambda n: "word " * (n // 5),
    "lines": lambda n: "a line of words.\n" * (n // 17),
    "one word": lambda n: "x" * n,
}


def best(form: Reply, text: str, tries: int) -> float:
    """Processor time of the quickest of some readings, in seconds."""
    costs = []
    for _ in range(tries):
        began = time.process_time()
        form.parse(text)
        costs.append(time.process_time() - began)
    return min(costs)


def growth(form: Reply, item: Callable[[int], str]) -> float:
    """How much more a hundred times the text takes: 100 where ten times takes ten times, or all of it less than 1 s."""
    long, short = best(form, item(MAX_CHARS // 40), 1), best(form, item(MAX_CHARS // 400), 2)
    if long <= max(12 * short, 0.01):
        return 100.0
    least = float("inf")
    for _ in range(TRIES):
        long = best(form, item(MAX_CHARS), 1)
        if long < 1:  # a second for a million characters harms nobody, and quicker readings are mostly noise
            return 100.0
        least = min(least, long / best(form, item(MAX_CHARS // 100), 3))
        if least <= LIMIT:
            break
    return least


def main() -> None:
    """Print a line for each form; fail where one is more than linear."""
    failed = False
    forms = {repr(form): (name, form, text) for name, (form, text) in FORMS.items()}
    for each, (name, form, text) in enumerate(forms.values()):
        own: dict[str, Callable[[int], str]] = {
            "the example": again(f"{text}\n"),
            "blanks, then the example": text.rjust,
            "the example, then blanks": text.ljust,
        }
        texts = list({**TEXTS, **own}.items())
        worst, kind = max((growth(form, item), kind) for kind, item in texts[each % 6 :: 6 if SMOKE else 1])
        failed |= worst > LIMIT
        print(f"{name:30} {worst:8.0f}  {kind}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
