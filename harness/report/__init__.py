"""Tables made visible: text, Markdown, CSV, LaTeX, JSON, one HTML page, figures; leaderboards; published figures; who
sent messages to whom."""

from .html import page
from .leaderboard import RunScores, leaderboard
from .plots import draw
from .published import against, load_published
from .render import FORMATS, render

__all__ = ["FORMATS", "RunScores", "against", "draw", "leaderboard", "load_published", "page", "render"]
