"""Tables made visible: text, Markdown, CSV, LaTeX."""

from .render import FORMATS, render

__all__ = ["FORMATS", "render"]
