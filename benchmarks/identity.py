"""Whether a change leaves every result as it was: `python benchmarks/identity.py record|compare`.

    python benchmarks/identity.py record before.json          # on one commit: about three minutes on one core
    python benchmarks/identity.py record after.json           # on another
    python benchmarks/identity.py compare before.json after.json

`record` plays every spec of `specs/`, cut down to small conditions, offline: with its baseline policy, with a scripted
model, and a few specs with further policies. Data sets are small files of the script's own making. `compare` prints
what differs and exits with 1, or prints one line.

For each spec and model the file has these parts, each a SHA-256:

    episodes   every metric of every episode, in plan order and in the spec's order of metrics; for each condition
    outcomes   every agent's actions, every episode's outcome (answers, facts) and grade, in plan order
    rows       value, standard error and counts of every result row
    tables     every number of every table, also of the papers' figures beside them
    prompts    every model call: messages, sampling, seed, constraint, as the engine gets them; for each condition

A digest covers values, not what they are called: YAML keys, labels, titles, metrics and keys of files may be renamed.
Texts count where a model reads or writes them (messages, actions, answers); in tables only numbers count. A list counts
in its order, an object's values in an order of their own. So `compare` sees another number, answer, prompt or seed, and
another order of episodes, metrics, rows and columns. It does not see labels and titles, notes below tables, the layout
of files, error messages, times, nor two values of one object that have changed places. It plays small conditions and
few cases: what only shows in larger runs it does not see.

It uses public doors: `harness.evaluate`, the run it returns, `samples.jsonl`, and the commands `calibrate`
and `report`. A change that renames YAML keys or Python's public names renames them in `CUTS`, `data`, `play`, `parts`
and `_outcome` too.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
from harness.engines.mock import Mock

if TYPE_CHECKING:
    from harness import Run
    from harness.api import Request

SPECS = Path(harness.__file__).resolve().parent.parent / "specs"
SCHEMA = 3
SMALL_SILO = ("matrix.agents=[2, 5]", "protocol.max_rounds=8")
SMALL_MAS = ("matrix.agents=[1, 3]", "matrix.items=[1, 5]", "matrix.family=[random, desc]", "protocol.max_rounds=6")
LEVELS = "matrix.problem=[global_maximum, prefix_sum, distributed_sort, word_frequency, graph_components]"

CUTS: dict[str, tuple[str, ...]] = {
    "agentsnet_prompts": ("matrix.size=[4]",),
    "agentsnet_camoc": ("matrix.size=[4, 8]",),
    "agentsnet_scale": ("matrix.size=[20]",),
    "silo_bench": SMALL_SILO,
    "silo_camoc": (*SMALL_SILO, LEVELS),
    "silo_rcc": ("matrix.agents=[2, 5]", LEVELS),
    "silo_scaffolds": (*SMALL_SILO, LEVELS),
    "silo_silence": SMALL_SILO,
    "mas_bench": SMALL_MAS,
    "mas_coupling": SMALL_MAS,
}
"""What is changed of a spec, so that it takes seconds."""
MODEL_CUTS: dict[str, tuple[str, ...]] = {
    "agentsnet": ("matrix.size=[4, 8]",),
    "agentsnet_byzantine": ("matrix.size=[{inherits: 4}]",),
    "agentsnet_reference": ("matrix.size=[4, 8]",),
    "agentsnet_scale": ("matrix.size=[20]", "matrix.graphs=[delaunay]", "protocol.rounds=2"),
    "silo_bench": ("matrix.agents=[2]", "protocol.max_rounds=4"),
    "silo_rcc": ("matrix.agents=[2]", LEVELS, "matrix.team=[{inherits: alone}, {inherits: P2P, rounds: 5}]"),
    "silo_silence": ("matrix.agents=[2]", "protocol.max_rounds=4", LEVELS),
}
"""The same for the scripted model, where it needs smaller ones."""
MORE_POLICIES: dict[str, tuple[str, ...]] = {
    "agentsnet_quick": ("random", "all_agree", "agentsnet/saboteur"),
    "dpbench_quick": tuple(
        f"dpbench/{name}" for name in ("always_left", "chandy_misra", "odd_even", "polite", "resource_ordering")
    ),
    "mas_quick": ("mas/silent", "mas/stale_reader"),
    "silo_quick": ("silo/silent", "{use: silo/oracle, plan: chain}"),
    "arithmetic": ("random", "{use: simulated, accuracy: 0.6, malformed: 0.2, unstated: 0.2}"),
}
"""Policies besides the spec's own."""
BENCHMARKS = {
    "math": "MATH",
    "humaneval": "HumanEval",
    "mmlu_pro": "MMLU-Pro",
    "gpqa": "GPQA",
    "finqa": "FinQA",
    "legalbench": "LegalBench",
}
"""Data-set tasks, and what DarkForest's specs call them."""
QUESTIONS = 6
LIMITS = {**dict.fromkeys(BENCHMARKS, QUESTIONS), "arithmetic": 4, "darkforest_quick": 2}
"""Cases a condition, where it is more than one."""
Json = Any


@dataclass(frozen=True)
class Job:
    """One spec with one model: `baseline`, `mock`, or a policy as YAML."""

    spec: str
    model: str

    @property
    def name(self) -> str:
        """How the file calls it."""
        return f"{self.spec} · {self.model}"


def jobs(names: Iterable[str]) -> list[Job]:
    """Everything that is played for these specs."""
    return [Job(name, model) for name in names for model in ("baseline", "mock", *MORE_POLICIES.get(name, ()))]


class Model:
    """Answers in the form that the prompt asks for, by the call's seed; one reply in nine cannot be read.

    Attributes:
        calls: (the call's id, digest of everything that it shows the model and samples with).
        example: the first call's messages.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.example = ""

    def __call__(self, request: Request) -> str:
        messages, sampling, constraint = request.thread.messages, request.sampling, request.constraint
        texts = [[message["role"], message["content"]] for message in messages]
        self.example = self.example or "\n\n".join(f"--- {role}\n{text}" for role, text in texts)
        self.calls.append((request.id, digest([texts, values(sampling), request.seed, values(constraint)])))
        return reply("\n".join(text for _, text in texts[:2]), texts[-1][1], random.Random(request.seed))


def reply(head: str, last: str, rng: random.Random) -> str:
    """A reply to a conversation that begins with `head` and ends with `last`."""
    if rng.random() < 1 / 9:
        return "I do not know what to say {"
    if marks := re.findall(r"\[([A-Za-z-]+) (\d+)\]", head + last):
        benchmark, k = marks[0]
        return _panel(last) or answer(benchmark, int(k), rng.random() < 2 / 3) + "\nConfidence: 0.8"
    if "### Final Answer ###" in last:
        options = re.findall(r"'([^'\n]+)'", last.split("valid options:")[-1])
        return f"Let me see.\n### Final Answer ### {rng.choice(options or ['Yes', 'No'])}"
    if neighbors := re.search(r"neighbors \(([^)\n]+)\)", head):
        names = neighbors[1].split(", ")
        return json.dumps({name: f"I take {rng.randrange(4)}." for name in names if rng.random() < 0.8})
    if "GRAB_LEFT" in head:
        action = rng.choice(("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT"))
        return f"THINKING: so be it\nMESSAGE: I will take {rng.choice(('left', 'right'))}\nACTION: {action}"
    if "in angle brackets" in head:
        return "".join(
            rng.choice(
                (
                    '<send_message target_id="1">[1, 2]</send_message>\n',
                    "<broadcast_message>[3]</broadcast_message>\n",
                    "<receive_messages/>\n",
                    "<list_agents/>\n",
                    "<wait/>\n",
                    f"<submit_result>{rng.choice(('7', '[1, 2, 3]', '{}'))}</submit_result>\n",
                )
            )
            for _ in range(3)
        )
    if "fenced code blocks" in head:
        commands = re.findall(r"```\n([^`]+)\n```", head)
        return "\n".join(f"```\n{rng.choice(commands)}\n```" for _ in range(3))
    return _panel(last) or f"The answer is {rng.randrange(9)}.\nFinal answer: {rng.randrange(9)}\nConfidence: 0.7"


def _panel(last: str) -> str:
    """What methods that combine answers ask besides the question."""
    if "of their numbers in one line" in last:
        return "0,1,2"
    if "Give each a score" in last:
        numbers = re.findall(r"^Answer (\d+):", last, re.MULTILINE)
        return json.dumps({number: 1 / len(numbers) for number in numbers})
    return "Not yet.\nVerdict: revise" if "Criticise this answer" in last else ""


def question(benchmark: str, k: int) -> dict[str, Json]:
    """A row of a data set whose right answer is k, k + 1, (B) or Yes."""
    mark = f"[{benchmark} {k}]"
    gold = {"gold_program": f"add({k}, 1)", "gold_execution_answer": float(k + 1)}
    rows: dict[str, dict[str, Json]] = {
        "MATH": {"problem": f"{mark} What is {k}?", "answer": str(k), "unique_id": str(k)},
        "HumanEval": {
            "task_id": f"HumanEval/{k}",
            "prompt": f'def f() -> int:\n    """{mark}"""\n',
            "test": f"def check(candidate):\n    assert candidate() == {k}\n",
            "entry_point": "f",
        },
        "MMLU-Pro": {
            "question_id": k,
            "question": f"{mark} Is it?",
            "options": ["no", "yes", "never"],
            "answer": "B",
            "category": "law",
            "cot_content": "A: Let's think step by step. The answer is (B).",
        },
        "GPQA": {"question": f"{mark} Is it? The options are: (A) no (B) yes (C) never (D) often.", "gold_answer": "B"},
        "FinQA": {"id": k, "question": f"{mark} What is one more?", "context": f"It was {k} .", **gold},
        "LegalBench": {
            "id": k,
            "task": "own",
            "text": f"{mark} Is it?",
            "answer": "Yes",
            "answer_choices": ["Yes", "No"],
        },
    }
    return rows[benchmark]


def answer(benchmark: str, k: int, right: bool) -> str:
    """A reply to such a question in its benchmark's form."""
    value = k if right else k + 7
    choice = "B" if right else "A"
    return {
        "MATH": f"It is \\boxed{{{value}}}",
        "HumanEval": f"```python\ndef f() -> int:\n    return {value}\n```",
        "MMLU-Pro": f"The answer is ({choice}).",
        "GPQA": f"The answer is ({choice}).",
        "FinQA": f"Program: add({value}, 1)",
        "LegalBench": f"Final Answer: {'Yes' if right else 'No'}",
    }[benchmark]


def data(spec: str) -> list[str]:
    """Changes that give a spec small files, written into the working directory, in place of its data sets."""
    if spec in BENCHMARKS:
        files = {
            "test": _file(BENCHMARKS[spec], 0),
            "train": _file(BENCHMARKS[spec], 0),
            "validation": _file(BENCHMARKS[spec], 50),
        }
        return [f"task={json.dumps({'use': spec, 'data_files': files})}"]
    if not spec.startswith("darkforest") or spec == "darkforest_quick":
        return []
    only = {"darkforest_disclosure": ("GPQA",), "darkforest_panels": ("FinQA",)}.get(spec, BENCHMARKS.values())
    everywhere = dict.fromkeys(("second", "third", "coordinator"), "model")
    entries = []
    for name in only:
        here = {"test_split": "test", "process_docs": {"where": "1"}}
        task: dict[str, Json] = {**here, "data_files": {"test": _file(name, 0)}}
        if name == "MMLU-Pro":
            task["num_fewshot"] = 0
        learn = {**here, "data_files": {"test": _file(name, 50)}, "dataset_path": None}
        entries.append({"inherits": name, "task": task, "fit": learn, **everywhere})
    changes = [f"matrix.benchmark={json.dumps(entries)}"]
    if spec == "darkforest_panels":
        changes.append("models=null")
        changes += [f"agents.{agent}.model=model" for agent in ("fourth", "fifth", "head")]
    return changes


def _file(benchmark: str, first: int) -> str:
    rows = [question(benchmark, first + k) for k in range(QUESTIONS)]
    path = Path(f"{benchmark}-{first}.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.name


def play(job: Job, limit: int | None) -> tuple[Run, Model]:
    """Play a job in the working directory, which is empty."""
    changes = [*CUTS.get(job.spec, ()), *data(job.spec)]
    model = Model()
    if job.model == "mock":
        changes += MODEL_CUTS.get(job.spec, ())
    elif job.model != "baseline":
        changes.append(f"baseline={job.model}")
    if job.spec.startswith("darkforest"):
        fixed = "It is \\boxed{50}, so the answer is (B).\nProgram: add(50, 1)\nFinal Answer: Yes\nConfidence: 0.8"
        engine = ["--model", "mock", "--model_args", f"text={json.dumps(fixed)}"] if job.model == "mock" else []
        overrides = [word for one in changes for word in ("--set", one)]
        command("calibrate", "--spec", job.spec, "--quiet", "--allow_code_execution", *engine, *overrides)
    run = harness.evaluate(
        job.spec,
        Mock(function=model) if job.model == "mock" else None,
        overrides=changes,
        limit=limit or LIMITS.get(job.spec, 1),
        repeats=2 if job.spec.startswith("dpbench") else None,
        output_path="run",
        log_samples=True,
        allow_code_execution=True,
    )
    return run, model


def command(*words: str) -> str:
    """What `harness WORDS` prints. Raises `RuntimeError` with its errors where it fails."""
    done = subprocess.run([sys.executable, "-m", "harness", *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"harness {words[0]}: {done.stderr.strip()[-600:]}")
    return done.stdout


def record(names: Sequence[str], limit: int | None) -> dict[str, Json]:
    """Play everything; `{name of the job: its parts}`."""
    entries: dict[str, Json] = {}
    for job in jobs(names):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                entries[job.name] = parts(*play(job, limit))
                text = f"{entries[job.name]['count']} episodes"
            except (Exception, SystemExit) as error:  # what cannot be played is part of the record
                text = f"cannot be played: {type(error).__name__}: {str(error).splitlines()[0]}"
                entries[job.name] = {"cannot": text.replace(folder, "").replace(str(SPECS.parent), "")}
        print(f"{job.name}: {text}, {time.perf_counter() - began:.1f} s", flush=True)
    return entries


def parts(run: Run, model: Model) -> dict[str, Json]:
    """The record of one run; the working directory holds its folder `run`."""
    conditions = list(dict.fromkeys(score.condition for score in run.scores))
    numbers = [[score.condition, [*score.numbers.values(), bool(score.error)]] for score in run.scores]
    calls: dict[str, list[str]] = {name: [] for name in conditions}
    for name, call in model.calls:
        calls[next(part for part in _prefixes(name) if part in calls)].append(call)
    samples = map(json.loads, Path("run/samples.jsonl").read_text(encoding="utf-8").splitlines())
    outcomes = {sample["episode"]: _outcome(sample) for sample in samples}
    rows = [[row["value"], row["stderr"], row["n"], row["failed"]] for row in run.rows]
    tables = json.loads(command("report", "run", "--with_published", "--format", "json"))
    return {
        "count": len(run.scores),
        "calls": len(model.calls),
        "conditions": [name[:120] for name in conditions],
        "episodes": {
            "sha256": digest([line for _, line in numbers]),
            "by_condition": [digest([line for at, line in numbers if at == name])[:12] for name in conditions],
        },
        "outcomes": {
            "sha256": digest([outcomes[score.id] for score in run.scores]),
            "by_condition": [
                digest([outcomes[score.id] for score in run.scores if score.condition == name])[:12]
                for name in conditions
            ],
        },
        "rows": {"sha256": digest(rows)},
        "tables": {"sha256": digest(figures([{**table, "schema": None} for table in tables]))},
        "prompts": {
            "sha256": digest(sorted(call for _, call in model.calls)),  # of shared calls any condition's may be asked
            "by_condition": [f"{digest(sorted(one))[:12]} {len(one)} calls" for one in calls.values()],
            "example": model.example[:1500],
        },
        "headline": Path("run/tables.md").read_text(encoding="utf-8").splitlines()[:60],
    }


def _prefixes(name: str) -> Iterable[str]:
    """A call's id without its last part, without its last two, …: one of them is the condition."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _outcome(sample: Mapping[str, Json]) -> Json:
    """Who did what in which turn, and what came of it, of one line of samples.jsonl."""
    moves = [[[move["s"], values(move.get("a"))] for move in batch] for batch in sample["moves"]]
    return [moves, values(sample["outcome"]), values(sample["grade"])]


def values(data: Json) -> Json:
    """The values without the keys: lists in their order, an object's values sorted, without empty ones."""
    if isinstance(data, Mapping):
        results = [values(value) for value in data.values()]
        return sorted((value for value in results if value not in (None, [])), key=_text)
    return [values(value) for value in data] if isinstance(data, list | tuple) else data


def figures(data: Json) -> Json:
    """The same of numbers alone."""
    if isinstance(data, Mapping):
        results = [figures(value) for value in data.values()]
        return sorted((value for value in results if value not in (None, [])), key=_text)
    if isinstance(data, list | tuple):
        return [value for value in map(figures, data) if value is not None]  # notes and titles are texts
    return data if isinstance(data, int | float) else None


def _text(data: Json) -> str:
    return json.dumps(data, ensure_ascii=True, default=str)


def digest(data: Json) -> str:
    """SHA-256 of plain data."""
    return hashlib.sha256(_text(data).encode()).hexdigest()


def compare(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[str]:
    """What differs, in lines; a job that only one of them has counts too."""
    lines: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            lines.append(f"{name}: only in the {'new' if before is None else 'old'} file")
        elif "cannot" in before or "cannot" in after:
            if before.get("cannot") != after.get("cannot"):
                lines += [f"{name}:", f"  old: {before.get('cannot', 'was played')}"]
                lines.append(f"  new: {after.get('cannot', 'was played')}")
        else:
            lines += _differences(name, before, after)
    return lines


def _differences(name: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> list[str]:
    lines = [
        f"{name}: {what} {before[what]} → {after[what]}" for what in ("count", "calls") if before[what] != after[what]
    ]
    for part in ("episodes", "outcomes", "rows", "tables", "prompts"):
        if before[part]["sha256"] == after[part]["sha256"]:
            continue
        lines.append(f"{name}: {part} differ")
        pairs = zip(
            after["conditions"], before[part].get("by_condition", ()), after[part].get("by_condition", ()), strict=False
        )
        differing = [f"    {at}: {was} → {now}" for at, was, now in pairs if was != now]
        lines += differing[:8]
        if len(differing) > 8:
            lines.append(f"    … {len(differing)} of {len(after['conditions'])} conditions")
        if part == "prompts":
            lines += _lines(before[part]["example"].splitlines(), after[part]["example"].splitlines())
        if part == "tables":
            lines += _lines(before["headline"], after["headline"])
    return lines


def _lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The first lines that differ."""
    differing = [(was, now) for was, now in zip(before, after, strict=False) if was != now]
    return [f"    {sign} {line}" for was, now in differing[:6] for sign, line in (("-", was), ("+", now))]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="play every spec and write what came out")
    recording.add_argument("file", type=Path)
    recording.add_argument("--spec", nargs="+", default=sorted(path.stem for path in SPECS.glob("*.yaml")))
    recording.add_argument("--limit", type=int, help="cases a condition (default: by spec, mostly 1)")
    comparing = commands.add_parser("compare", help="say what differs; exit with 1 if anything does")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--spec", nargs="+", help="only these specs")
    arguments = parser.parse_args()
    if arguments.command == "record":
        file = arguments.file.resolve()
        entries = record(arguments.spec, arguments.limit)
        body = {"schema": SCHEMA, "limit": arguments.limit, "entries": entries}
        file.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (arguments.old, arguments.new))
    if old["limit"] != new["limit"] or old["schema"] != new["schema"]:
        raise SystemExit("the files were recorded with different limits or by different versions of this script")
    before, after = (
        {
            name: entry
            for name, entry in body["entries"].items()
            if arguments.spec is None or name.split(" · ")[0] in arguments.spec
        }
        for body in (old, new)
    )
    if lines := compare(before, after):
        print("\n".join(lines))
        return 1
    print(f"equal: {len(after)} records of {len({name.split(' · ')[0] for name in after})} specs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
