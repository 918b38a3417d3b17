"""Pictures of the viewer, taken in Debian's Chromium: `python docs/images/make.py` calls `take`."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import sync_playwright

import harness
from harness.api import Completion, Request
from harness.engines.mock import Mock
from harness.extensions.blame.blame import blamed
from harness.extensions.blame.blame_command import as_json
from harness.extensions.blame.findings import keep
from harness.extensions.replay import replayed
from harness.runtime.options import Options

LED = (
    "matrix.problem=[consensus]",
    "matrix.graphs=[small_world]",
    "agents={default: model, liar: {count: 1, policy: {use: faulty, of: agentsnet/classical, at: 3}}}",
)
LEFT = ("baseline=dpbench/always_left", "matrix.condition=[sim3nc]", "repeats=1")
"""The stories of docs/how-to/replay.md."""
SIDES = {"a": "arithmetic-small", "b": "arithmetic-large"}
CASE = "terms=16/1/0"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def colorist(request: Request) -> Completion:
    """Says which group it takes and why; agents wait for neighbors before them in the alphabet."""
    messages = request.thread.messages
    system, user = messages[0]["content"], messages[-1]["content"]
    name = re.search(r"Your name is (\w+)", system)[1]
    neighbors = re.search(r"neighbors \(([^)]*)\)", system)[1].split(", ")
    groups = int(re.search(r"exactly (\d+) groups", system)[1])
    heard = {}
    for message in messages:
        found = re.findall(r"Message from (\w+):\s+I take Group (\d+)", message["content"])
        heard |= {neighbor: int(group) for neighbor, group in found}
    before = [neighbor for neighbor in neighbors if neighbor < name]
    taken = {heard[neighbor] for neighbor in before if neighbor in heard}
    mine = min(set(range(1, groups + 1)) - taken)
    known = ", ".join(f"{neighbor} is in Group {heard[neighbor]}" for neighbor in before if neighbor in heard)
    why = f"{known}. The first group that is free is Group {mine}." if known else f"I start with Group {mine}."
    if "final answer" in user.lower().partition("elaborate")[2]:
        text = f"{why}\n\n### Final Answer ###\nGroup {mine}"
    else:
        letters = dict.fromkeys(neighbors, f"I take Group {mine}.")
        text = f"{why} I tell my neighbors.\n\n```{json.dumps(letters)}```"
    random.seed(request.id)
    tokens = sum(len(message["content"]) for message in messages) // 4
    return Completion(text, None, "stop", tokens, len(text) // 4, tokens * 3 // 4, latency=random.uniform(0.4, 2.1))


def make_runs(folder: Path, models: Sequence[Mock]) -> None:
    """A run of each family; policies play, and stand-ins for models. Of arithmetic one for each of `models`."""
    for one in models:
        sums = ["matrix.terms=[2,4,8,16]"]
        harness.evaluate("arithmetic", one, overrides=sums, output_path=folder / f"arithmetic-{one.model}")
    sizes = ["matrix.size=[16]", "matrix.graphs=[delaunay,small_world]", "matrix.problem=[coloring,consensus]"]
    model = Mock(model="stand-in", function=colorist)
    harness.evaluate("agentsnet_quick", model, overrides=sizes, output_path=folder / "agentsnet-stand-in")
    harness.evaluate("dpbench_quick", overrides=["task.philosophers=5"], output_path=folder / "dpbench-random")
    harness.evaluate("silo_quick", output_path=folder / "silo-oracle")
    harness.evaluate("darkforest_quick", output_path=folder / "darkforest-simulated", limit=20)
    led = harness.evaluate("agentsnet_quick", overrides=LED, output_path=folder / "led")
    keep(led.folder, as_json(blamed(led)))
    left = harness.evaluate("dpbench_quick", overrides=LEFT, output_path=folder / "left", limit=1)
    replayed(left, left.scores[0].id, change={1: "WAIT"}, options=Options(output_path=folder / "waited"))


def take(folder: Path, models: Sequence[Mock]) -> None:
    """Write `viewer-*.png` into a folder."""
    with tempfile.TemporaryDirectory() as temporary:
        runs = Path(temporary) / "results"
        make_runs(runs, models)
        command = [sys.executable, "-um", "harness", "view", str(runs), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as viewer:
            url = re.search(r"http://\S+", viewer.stdout.readline())[0]
            try:
                _pictures(url, folder)
            finally:
                viewer.terminate()


def _pictures(url: str, folder: Path) -> None:
    def episode(run: str, match: str, page: str = "episode", **more: object) -> str:
        rows = None
        while rows is None:
            with contextlib.suppress(urllib.error.HTTPError):  # its journal is being read
                rows = json.load(urllib.request.urlopen(f"{url}api/runs/{run}/episodes?limit=500"))["episodes"]
        name = next(row["id"] for row in rows if re.search(match, row["id"]))
        return f"#/runs/{run}/{page}?{urlencode({'id': name, **more})}"

    pages = {
        "network": ("light", 1280, 860, episode("agentsnet-stand-in", "coloring.*delaunay", round=3)),
        "table": ("light", 1280, 860, episode("dpbench-random", "sim3c/.*/1$", round=4)),
        "panel": (
            "dark",
            1280,
            860,
            episode("darkforest-simulated", "expert_and_pair,method=darkforest/4/", round=2, agent="Coordinator"),
        ),
        "blame": ("light", 1280, 1060, episode("led", "", agent="Douglas")),
        "versions": ("light", 1280, 860, episode("waited", "", page="versions")),
        "leaderboard": ("light", 1280, 560, "#/leaderboard"),
        "compare": ("light", 1280, 860, f"#/compare?{urlencode(SIDES)}"),
        "pair": (
            "dark",
            1280,
            500,
            f"#/compare/episode?{urlencode({**SIDES, 'one': CASE, 'other': CASE})}",
        ),
        "phone": ("light", 400, 860, episode("silo-oracle", "BP,agents=5,problem=global", round=2)),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, (scheme, width, height, hash) in pages.items():
            viewport = {"width": width, "height": height}
            context = browser.new_context(color_scheme=scheme, viewport=viewport, base_url=url, reduced_motion="reduce")
            page = context.new_page()
            page.goto(f"/{hash}")
            page.wait_for_selector(".turn.now, .version.parts, .board table, .cases", timeout=120_000)
            if name == "leaderboard":
                page.get_by_role("button", name="arithmetic", exact=True).click()
            page.evaluate("document.fonts.ready")
            file = folder / f"viewer-{name}.png"
            page.screenshot(path=file)
            Image.open(file).quantize(128).save(file, optimize=True)
            context.close()
        browser.close()
