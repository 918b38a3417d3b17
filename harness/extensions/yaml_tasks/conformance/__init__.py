"""Checks of plugins for the tests of their authors: tasks, protocols, channels, policies, metrics, replies, views,
engines."""

from .engine_checks import check_engine
from .plugin_checks import (
    NASTY,
    check_channel,
    check_metric,
    check_policy,
    check_protocol,
    check_reply,
    check_task,
    check_world,
)
from .views import check_view

__all__ = [
    "NASTY",
    "check_channel",
    "check_engine",
    "check_metric",
    "check_policy",
    "check_protocol",
    "check_reply",
    "check_task",
    "check_view",
    "check_world",
]
