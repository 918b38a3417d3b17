"""Puts what commands print now into pages of the documentation that show something else.

    python -m tests.helpers.refresh_docs docs/how-to/judge.md …    # without a page: all of them

Each ```text block that no command of its page prints becomes the lines of an output that are most like it. Look at the
difference before you commit it.
"""

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.docs.test_docs import PAGES, blocks, outputs
from tests.helpers.fake_openai import FakeOpenAI


def refreshed(text: str, display: list[str]) -> tuple[str, float]:
    """The lines of an output that are most like a text, and how like they are, from 0 to 1."""
    old = words(text.splitlines())
    first = text.strip().splitlines()[0].strip()
    best, score = text, 0.0
    for output in display:
        lines = output.splitlines()
        starts = [i for i, line in enumerate(lines) if line.strip() == first] or range(len(lines))
        for start in (i for i in starts if lines[i].strip()):
            seen: Counter[str] = Counter()
            for end in range(start, len(lines)):
                seen += words([lines[end]])
                like = 2 * (seen & old).total() / max(seen.total() + old.total(), 1)
                if like > score + 1e-9 and lines[end].strip():
                    best, score = "\n".join(lines[start : end + 1]), like
    return best, score


def words(lines: list[str]) -> Counter[str]:
    """The words of lines, without rules."""
    return Counter(word for line in lines for word in line.split() if not re.fullmatch("-+", word))


def main(pages: list[Path]) -> None:
    with FakeOpenAI(lambda body: "{} ### Final Answer ### 0") as fake:
        for page in pages:
            with tempfile.TemporaryDirectory() as where:
                display = outputs(page, Path(where), fake.url)
            for _, body in blocks(page, "text"):
                if not any(body.strip() in output for output in display):
                    new, like = refreshed(body, display)
                    print(f"{page}: {body.strip().splitlines()[0]!r}: {like:.0%} alike")
                    page.write_text(page.read_text("utf-8").replace(f"```text\n{body}", f"```text\n{new}\n"), "utf-8")


if __name__ == "__main__":
    main([Path(name).resolve() for name in sys.argv[1:]] or [page for page in PAGES if blocks(page, "text")])
