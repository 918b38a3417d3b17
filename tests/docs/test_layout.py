"""Pages are short, and their lines fit beside code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = sorted((ROOT / "harness" / "extensions").glob("*/README.md"))
LONGEST = {
    ROOT / "README.md": 155,
    ROOT / "CONTRIBUTING.md": 138,
    ROOT / "docs" / "architecture.md": 208,
    ROOT / "docs" / "reference" / "cli.md": 510,  # a section a command: looked up, not read
    **dict.fromkeys(READMES, 40),
}
PAGES = [*LONGEST, *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", sorted(set(PAGES)), ids=lambda page: f"{page.parent.name}/{page.name}")
def test_page_fits(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    assert len(lines) <= LONGEST.get(page, 360)
    code, wide = False, []
    for number, line in enumerate(lines, 1):
        code ^= line.lstrip().startswith("```")
        if len(line) > 100 and not code and not line.lstrip().startswith(("|", "![")):
            wide.append(number)
    assert wide == []


def test_each_line_on_servers_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "reference" / "servers.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    lines = [line for line in rows if not line.startswith("| server |")]
    assert len(rows) == len(lines) + 1, "one table"
    for line in lines:
        name = re.search(r"\| `(test_\w+)::(test_\w+)` \|$", line)
        assert name is not None, f"names no test: {line}"
        file = ROOT / "tests" / "extensions" / "openai" / "dialects" / f"{name[1]}.py"
        assert file.is_file() and f"\ndef {name[2]}(" in file.read_text("utf-8"), f"no such test: {name[0]}"
    assert len(lines) > 20
