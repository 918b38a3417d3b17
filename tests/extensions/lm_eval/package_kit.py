"""The package's own evaluation of a task, and ours, with one model that both ask: a function of the exact text."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import harness
from harness.api import Request, derive_seed
from harness.config.project import builtin
from harness.config.proposals import complete
from harness.config.spec import Spec, parse
from harness.engines.likelihoods import LikelihoodRequest
from harness.engines.mock import Mock
from tests.helpers.mock_scores import mock_scores

DATA = Path(__file__).parents[2] / "data" / "lm_eval"
WORDS = ("a", "e", "Answer: i", "no idea", "o u", "", "sunrise", "E or e", "a\n\nb")
RESAMPLES = 50


class Oracle:
    """Answers every text by a draw that depends on it alone, and writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, ...]] = Counter()
        self._times: dict[str, int] = defaultdict(int)

    def reply(self, text: str) -> str:
        self.asked["generate", text] += 1
        self._times[text] += 1
        return random.Random(derive_seed(text, self._times[text])).choice(WORDS)

    def likelihood(self, context: str, text: str) -> tuple[float, bool]:
        bare = context.rstrip()  # a context's last blanks belong to what follows, as models of both encode them
        context, text = bare, context[len(bare) :] + text
        self.asked["score", context, text] += 1
        rng = random.Random(derive_seed(context, text))
        return -rng.expovariate(0.3), rng.random() < 0.3

    def rolling(self, text: str) -> float:
        self.asked["rolling", text] += 1
        return -float(len(text)) * random.Random(derive_seed(text)).random()


def rendered(messages: Sequence[Mapping[str, str]], begun: bool) -> str:
    """A conversation as a made-up chat template has it; `begun`: the last message is the beginning of the reply."""
    texts = [f"<{message['role']}>{message['content']}" for message in messages]
    return "</>".join(texts) + ("" if begun else "</><assistant>")


def evaluated(names: list[Any], oracle: Oracle, **options: Any) -> dict[str, Any]:
    """What the package's `simple_evaluate` gives for these tasks of `DATA`."""
    from lm_eval.api.model import LM
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.tasks import TaskManager

    class Asked(LM):  # type: ignore[misc]
        tokenizer_name = "none"

        def generate_until(self, requests: Any, **_: Any) -> list[str]:
            return [oracle.reply(request.args[0]) for request in requests]

        def loglikelihood(self, requests: Any, **_: Any) -> list[tuple[float, bool]]:
            return [oracle.likelihood(*request.args) for request in requests]

        def loglikelihood_rolling(self, requests: Any, **_: Any) -> list[float]:
            return [oracle.rolling(request.args[0]) for request in requests]

        def apply_chat_template(self, chat_history: Any, add_generation_prompt: bool = True) -> str:
            return rendered(chat_history, not add_generation_prompt)

    manager = TaskManager(include_path=str(DATA), include_defaults=False)
    found = simple_evaluate(
        Asked(), tasks=names, task_manager=manager, bootstrap_iters=RESAMPLES, torch_random_seed=None, **options
    )
    return dict(found or {})


def played(task: Mapping[str, Any], oracle: Oracle, folder: Path, protocol: Any = "single") -> harness.Run:
    """A run of the same tasks here."""
    body = {"name": "t", "task": {"use": "lm_eval", "include_path": str(DATA), **task}, "protocol": protocol}
    spec = complete(parse(body, builtin()), builtin())
    for entry in spec.data["metrics"]:
        if isinstance(entry, dict) and entry["use"] == "lm_eval":
            entry["bootstrap_iters"] = RESAMPLES
    return played_by(spec, oracle, folder)


def played_by(spec: Spec, oracle: Oracle, folder: Path) -> harness.Run:
    """A run of a spec."""

    def text_of(request: Request | LikelihoodRequest) -> str:
        messages = request.thread.messages
        if not request.thread.chat:
            return request.thread.text
        begun = [{"role": "assistant", "content": request.prefill}] if request.prefill else []
        return rendered([*messages, *begun], bool(begun))

    def score(request: LikelihoodRequest) -> list[list[float | bool]]:
        if request.rolling:
            return [[oracle.rolling(one.text), False] for one in request.continuations]
        contexts = [text_of(request) if one.context is None else one.context for one in request.continuations]
        texts = [c if isinstance(c, str) else rendered(c, c[-1]["role"] == "assistant") for c in contexts]
        return [list(oracle.likelihood(c, one.text)) for c, one in zip(texts, request.continuations, strict=True)]

    reply: Callable[[Request], str] = lambda request: oracle.reply(text_of(request))  # noqa: E731
    return harness.evaluate(spec, Mock(function=mock_scores(score, reply)), output_path=folder, project=builtin())


FUNCTIONS = """def docs(documents):
    raise ValueError('no such column')


def grade(document, results):
    return {'acc': 1 / 0}


def picky(document, results):
    if results[0] == 'boom':
        raise KeyError(results[0])
    return {'acc': float(results[0] == document['answer'])}
"""


def own_task(folder: Path, **keys: Any) -> Path:
    """Write the task `own` of 3 documents, its data and functions; a value of `process_…` names a function."""
    folder.mkdir(exist_ok=True)
    files = {split: folder / f"{split}.jsonl" for split in ("train", "test")}
    for file in files.values():
        rows = [{"question": f"{i}+1?", "answer": str(i + 1)} for i in range(3)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "functions.py").write_text(FUNCTIONS)
    config = {
        "task": "own",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {split: str(file) for split, file in files.items()}},
        "training_split": "train",
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n"]},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        **keys,
    }
    functions = {key: config.pop(key) for key in ("process_docs", "process_results") if key in config}
    if "process_results" in functions:
        config["metric_list"][0]["metric"] = "acc"
    lines = [yaml.safe_dump(config), *(f"{key}: !function functions.{name}\n" for key, name in functions.items())]
    (folder / "own.yaml").write_text("".join(lines))
    return folder
