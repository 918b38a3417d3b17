"""Tables made visible: text, Markdown, CSV, LaTeX; published figures (`published`)."""

from .render import FORMATS, render

__all__ = ["FORMATS", "render"]
