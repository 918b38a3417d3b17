"""Tables made visible: text, Markdown, CSV, LaTeX, JSON, one HTML page, figures; leaderboards; published figures; who
sent messages to whom."""

from .html import page
from .leaderboard import Comparable, RunScores, grouped, leaderboard
from .overall import overall
from .plots import draw
from .published import against, load_published
from .render import FORMATS, render
from .standings import Standings, standings

__all__ = [
    "FORMATS",
    "Comparable",
    "RunScores",
    "Standings",
    "against",
    "draw",
    "grouped",
    "leaderboard",
    "load_published",
    "overall",
    "page",
    "render",
    "standings",
]
