"""Pages of the site that the repository keeps outside docs/: README, CONTRIBUTING, CHANGELOG, leaderboards (hooks of
mkdocs)."""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # the command line of this copy, whatever is installed
from command_options import with_options  # noqa: E402

PAGES = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the root's pages, with their links as seen from docs/."""
    for page, source in PAGES.items():
        text = (ROOT / source).read_text("utf-8").replace("](docs/", "](")
        text = text.replace("](results/leaderboards/README.md", "](leaderboards/index.md")
        for other, linked in PAGES.items():
            text = text.replace(f"]({linked}", f"]({other}")
        if page == "index.md":
            text = f"---\ntitle: Home\nhide: [navigation]\n---\n{text}"
        files.append(File.generated(config, page, content=text))
    for file in sorted((ROOT / "results" / "leaderboards").iterdir()):
        page = "index.md" if file.name == "README.md" else file.name
        files.append(File.generated(config, f"leaderboards/{page}", content=file.read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of pages in docs/ to the root's, as they stand on a code host, as the site's; options of commands."""
    up = "../" * page.file.src_uri.count("/")
    for target, source in PAGES.items():
        markdown = markdown.replace(f"](../{up}{source}", f"]({up}{target}")
    return with_options(markdown)
