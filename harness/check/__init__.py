"""Before anything runs: whether plugins keep their promises (`conformance`, for your tests and `harness validate`),
and what a
plan will ask for (`estimate`)."""

from .conformance import (
    Drive,
    check_channel,
    check_metric,
    check_policy,
    check_protocol,
    check_reply,
    check_task,
    check_world,
    drive,
    examine,
)

__all__ = [
    "Drive",
    "check_channel",
    "check_metric",
    "check_policy",
    "check_protocol",
    "check_reply",
    "check_task",
    "check_world",
    "drive",
    "examine",
]
