"""Tables made visible: text, Markdown, CSV, JSON, LaTeX."""

from .render import FORMATS, render

__all__ = ["FORMATS", "render"]
