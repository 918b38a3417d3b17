"""The base of MAS-Bench's scripted agents, which reads the results of the three backends."""

from __future__ import annotations

import re

from harness.api import Facts

from ..silo._agent import Agent

_FROM = re.compile(r"(?:broadcast )?from Agent-\d+: ")


class Commander(Agent):
    """A scripted agent of sharded tasks that reads the results of its commands."""

    def _texts(self, observation: Facts) -> list[str]:
        """Return the messages and values among the results."""
        texts = []
        for result in observation["results"]:
            if result["ok"] and result["call"] == "receive_messages":
                texts += _FROM.split(result["text"])
            elif result["ok"] and result["call"] == "read_file":
                texts.append(result["text"].removeprefix("content="))
        return [text.removesuffix(" | ") for text in texts]
