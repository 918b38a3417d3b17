"""The core names no extension: words of theirs stand in none of its modules, whether code, text or comment.

Names of benchmarks are allowed: examples have them, and sources of formulas.
"""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = (
    *("judge", "judges", "judged", "judging", "tournament", "tournaments", "rating", "ratings", "swiss", "elo"),
    *("glicko", "lm_eval", "textarena", "openspiel", "pettingzoo", "viewer", "ray", "sandbox", "sandboxed", "human"),
    *("wandb", "discussion", "discussions", "debate", "calibration", "leaderboard", "leaderboards", "vllm", "openai"),
)
KNOWN: dict[str, int] = {
    "__init__.py": 1,
    "api/engine.py": 1,
    "cli/evaluate.py": 2,
    "cli/options.py": 2,
    "cli/parser.py": 1,
    "cli/results.py": 2,
    "cli/trust.py": 1,  # an example of a key
    "config/permissions.py": 1,
    "config/prompt_templates.py": 2,  # of Jinja
    "config/resolve.py": 1,
    "engines/chat_tokens.py": 3,  # a module of a library, an extra to install
    "engines/engine_output.py": 3,  # names of loggers
    "engines/sampling.py": 2,
    "engines/text_tokens.py": 1,
    "engines/tool_calls.py": 3,  # whose errors it reads, and in whose form it sends
    "evaluation/eval_options.py": 5,  # options that an editor completes: a name and its type cannot be looked up
    "evaluation/rescore.py": 3,
    "evaluation/stages.py": 2,
    "plugins/needed_approval.py": 1,
    "replies/answers.py": 1,  # these two: words that models write
    "replies/extract.py": 1,
    "replies/fields.py": 1,
    "runtime/run_schema.py": 1,
    "runtime/call_messages.py": 1,
    "runtime/run_json.py": 6,
    "runtime/open_episodes.py": 1,
    "runtime/open_episode.py": 1,
    "runtime/options.py": 2,
    "transcripts/reader.py": 1,  # a key of run.json
}
"""Module of the core → how many of these words it has. Each number may only get smaller, and the list shorter."""
_WORD = re.compile(rf"(?<![a-z])({'|'.join(WORDS)})(?![a-z])", re.IGNORECASE)


def counts() -> dict[str, Counter[str]]:
    found = {}
    for file in sorted((ROOT / "harness").rglob("*.py")):
        name = file.relative_to(ROOT / "harness")
        if name.parts[0] != "extensions":
            words = Counter(match[0].lower() for match in _WORD.finditer(file.read_text("utf-8")))
            if words:
                found[name.as_posix()] = words
    return found


def test_no_module_of_the_core_has_a_word_of_an_extension() -> None:
    found = counts()
    more = {name: dict(words) for name, words in found.items() if words.total() > KNOWN.get(name, 0)}
    assert more == {}
    assert {name: words.total() for name, words in found.items()} == KNOWN, "fewer than KNOWN has: say so there"
