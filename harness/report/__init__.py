"""Tables made visible: text, Markdown, CSV, LaTeX; published figures."""

from .published import against, load_published
from .render import FORMATS, render

__all__ = ["FORMATS", "against", "load_published", "render"]
