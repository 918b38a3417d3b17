"""Replies of several fields: an act with what is said beside it, such as a message to other agents."""

from .contract import Contract, Value
from .with_message import ActionWithMessage, MessageLine

__all__ = ["ActionWithMessage", "Contract", "MessageLine", "Value"]
