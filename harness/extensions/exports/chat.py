"""A run as conversations to train on: `sft.jsonl`, `replies.jsonl`, `dpo.jsonl` or `kto.jsonl`.

The columns are those of TRL's data sets (https://huggingface.co/docs/trl/dataset_formats); weights of messages are
those of OpenAI's fine-tuning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError, Place, near
from harness.config.plan import Plan, case_digest
from harness.engines.tool_calls import offered
from harness.evaluation.run import Run
from harness.transcripts.reader import Transcripts
from harness.transcripts.view_api import Transcript

from .chat_episodes import Chosen, check_seats, chosen
from .chat_holdout import refuse_evaluation_cases
from .chat_messages import ChatReader, TrainingConversation
from .chat_pairs import Pair, ReplyPairs, unweighted
from .form import ExportForm
from .texts import as_json

KINDS: Final = ("sft", "replies", "dpo", "kto")
_PAIRS: Final = ("dpo", "kto")
_TOOLS: Final = "tools"


@dataclass(frozen=True)
class _Source:
    """A run to train on, with what reads it and its chosen episodes."""

    run: Run
    reader: Transcripts
    plan: Plan
    chosen: Chosen


class _Rows:
    """A JSONL file whose rows all have the same columns; by default a row that is there already is not written again.

    `tools` is a JSON text: loaders of data sets would make one type of the parameters of all tools. A file has the
    column where a row of it has tools.
    """

    def __init__(self, path: Path, by_reward: bool, keep_duplicates: bool) -> None:
        """`by_reward`: whether rows of other rewards teach something else."""
        self.path, self.by_reward, self.keep_duplicates = path, by_reward, keep_duplicates
        self.count = self.repeated = 0
        self._file = path.open("x", encoding="utf-8")
        self._seen: set[bytes] = set()
        self._bare = bytearray()  # whether each row has no tools

    def write(self, learned: dict[str, Any], tools: Sequence[Any], facts: dict[str, Any]) -> bool:
        """Add a row, unless one teaches the same; whether it was added. Raises `OSError`."""
        learned |= {_TOOLS: as_json(offered(tools))} if tools else {}
        digest = hashlib.sha256(as_json([learned, facts["reward"] if self.by_reward else None]).encode()).digest()[:16]
        if digest in self._seen:
            self.repeated += 1
            if not self.keep_duplicates:
                return False
        self._seen.add(digest)
        self._bare.append(not tools)
        self._file.write(as_json({**learned, **facts}) + "\n")
        self.count += 1
        return True

    def close(self) -> None:
        """Write what is left, and the column `tools` where some rows have it. Raises `OSError`."""
        self._file.close()
        if not any(self._bare) or all(self._bare):
            return
        whole = self.path.with_suffix(".whole")
        with self.path.open(encoding="utf-8") as rows, whole.open("x", encoding="utf-8") as file:
            for line, is_bare in zip(rows, self._bare, strict=True):
                file.write(f'{line.rstrip()[:-1]}, "{_TOOLS}": "[]"}}\n' if is_bare else line)
        whole.replace(self.path)


@dataclass
class _Export:
    """An export under way: what it writes, and what it has left out."""

    kind: str
    rows: _Rows
    pairs: ReplyPairs
    wanted: Callable[[str, str], bool]
    chats: ChatReader = field(default_factory=ChatReader)
    episodes: int = 0
    replies: int = 0
    unlearned: int = 0
    problems: dict[str, int] = field(default_factory=dict)

    def add(self, source: _Source, transcript: Transcript) -> None:
        """Add an episode. Raises `OSError`."""
        self.episodes += 1
        if transcript.problem is not None:
            self.problems[transcript.problem] = self.problems.get(transcript.problem, 0) + 1
        digest = case_digest(transcript.case) if transcript.case is not None else ""
        reward = source.chosen.rewards[transcript.id]
        prompts = {
            group.name: group.prompts
            for condition in source.plan.conditions
            if condition.id == transcript.condition
            for group in condition.groups
        }

        def is_wanted(agent: str, group: str) -> bool:
            if not self.wanted(agent, group):
                return False
            if group in prompts and not prompts[group].chat:  # a text that the model goes on with
                reason = f"whose prompts ({prompts[group].name}) are one text and no messages"
                self.chats.left_out[reason] += sum(turn.agent == agent for turn in transcript.turns)
                return False
            return True

        for conversation in self.chats.read(transcript, is_wanted):
            facts = {
                "reward": reward,
                "run": str(source.run.meta["run"]),
                "episode": transcript.id,
                "condition": transcript.condition,
                "case": transcript.case_id,
                "case_digest": digest,
                "agent": conversation.agent,
                "group": conversation.group,
                "player": transcript.models.get(conversation.agent) or transcript.policies.get(conversation.agent),
            }
            self._write(conversation, facts)

    def _write(self, conversation: TrainingConversation, facts: dict[str, Any]) -> None:
        if self.kind in _PAIRS:
            self.pairs.add(conversation, facts)
        elif self.kind == "sft":
            if self.rows.write({"messages": conversation.messages}, conversation.tools, facts):
                weights = [one["weight"] for one in conversation.messages if "weight" in one]
                self.replies += sum(weights)
                self.unlearned += len(weights) - sum(weights)
        else:
            for place in conversation.learned:
                prompt = [*map(unweighted, conversation.messages[:place])]
                reply = unweighted(conversation.messages[place])
                self.rows.write({"prompt": prompt, "completion": [reply]}, conversation.tools, facts)

    def write_pairs(self) -> int:
        """Write all pairs; returns how many of them were not there. Raises `OSError`."""
        count = 0
        for pair in self.pairs.pairs():
            facts = {key: value for key, value in pair.facts.items() if key != "reward"}
            rows = [({"prompt": pair.prompt, **learned}, more) for learned, more in _rows_of(pair, self.kind)]
            count += sum(self.rows.write(learned, pair.tools, {**more, **facts}) for learned, more in rows) > 0
        return count


def _rows_of(pair: Pair, kind: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    if kind == "dpo":
        better, worse = pair.rewards
        rewards = {"chosen_reward": better, "rejected_reward": worse}
        yield {"chosen": [pair.better], "rejected": [pair.worse]}, rewards
        return
    for reply, label, reward in zip((pair.better, pair.worse), (True, False), pair.rewards, strict=True):
        yield {"completion": [reply], "label": label}, {"reward": reward}


def _check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise DataError(f"there is no kind {kind!r:.100}", place=Place("--kind"), hint=near(kind[:100], KINDS))
    return kind


def _files(run: Run, *, kind: str = "sft", **others: Any) -> tuple[str, ...]:
    return (f"{_check_kind(kind)}.jsonl",)


def _write(
    run: Run,
    folder: Path,
    *,
    kind: str = "sft",
    runs: Sequence[Run] = (),
    where: str | None = None,
    reward: str | None = None,
    agent: Sequence[str] = (),
    group: Sequence[str] = (),
    holdout: Sequence[str] = (),
    keep_duplicates: bool = False,
) -> str:
    """Write the rows of one kind; one episode at a time is in memory.

    Args:
        run: a finished run.
        folder: where to.
        kind: one of `KINDS`.
        runs: further runs to train on.
        where, reward: as for `chosen`.
        agent, group: whose replies to learn from: of these agents, and of agents in these groups; none for all.
        holdout: specs and runs that are kept for evaluation.
        keep_duplicates: whether a row is written as often as it was played.

    Raises:
        UserError: an option names what is not there or what pairs cannot be, the runs hold cases that are kept, or
            nothing is left to write.
        OSError: the file cannot be written.
    """
    if keep_duplicates and kind in _PAIRS:
        message = "a pair counts each reply once, with the mean reward of the episodes in which it was given"
        raise DataError(message, place=Place("--keep_duplicates"), hint="Leave it out, or take --kind sft or replies.")
    sources = [_source(one, where, reward) for one in _distinct([run, *runs], kind)]
    check_seats([one.plan for one in sources], agent, group)
    refuse_evaluation_cases([(one.run, one.plan, one.chosen.rewards) for one in sources], holdout, run.project)

    def wanted(name: str, of: str) -> bool:
        return (not agent or name in agent) and (not group or of in group)

    rows = _Rows(folder / _files(run, kind=kind)[0], kind not in _PAIRS, keep_duplicates)
    with ReplyPairs(folder) as pairs:
        export = _Export(kind, rows, pairs, wanted)
        for source in sources:
            for transcript in source.reader:
                if transcript.id in source.chosen.rewards:
                    export.add(source, transcript)
        count = export.write_pairs() if kind in _PAIRS else rows.count
    rows.close()
    return _summary(export, sources, count)


def _distinct(runs: Sequence[Run], kind: str) -> Sequence[Run]:
    """The runs. Raises `DataError` if one is given twice, or pairs are to be made of runs of several specs."""
    folders = [run.folder.resolve() for run in runs]
    if len(set(folders)) < len(folders):
        raise DataError("a run is given twice", hint="Name each run once.")
    if kind in _PAIRS and len(names := sorted({run.spec.name for run in runs})) > 1:
        message = f"pairs come from runs of one spec, and these played {', '.join(names)}"
        raise DataError(message, hint="Export each spec's runs by themselves.")
    return runs


def _source(run: Run, where: str | None, reward: str | None) -> _Source:
    picked, reader = chosen(run, where, reward), run.reader()
    if reader.plan is None:
        raise DataError(f"{run.folder}: {reader.problem}", hint="Conversations are rendered from the run's spec.")
    return _Source(run, reader, reader.plan, picked)


def _summary(export: _Export, sources: Sequence[_Source], count: int) -> str:
    """What was written and left out, in lines. Raises `DataError` if nothing was written."""
    are_pairs, pairs = export.kind in _PAIRS, export.pairs
    of = f"of {pairs.prompts:,} prompts, with"
    left = [(number, f"turns {why}") for why, number in export.chats.left_out.items()]
    repeated = 0 if export.rows.keep_duplicates or not count else export.rows.repeated
    left += [
        (sum(one.chosen.failed for one in sources), "episodes that failed or were not run"),
        (sum(one.chosen.others for one in sources), "episodes that --where does not choose"),
        (pairs.single, f"{of} one reply alone"),
        (pairs.ties, f"{of} replies of equal reward"),
        (repeated, "rows that are there already"),
    ]
    lines = [f"left out: {number:,} {what}" for number, what in left if number]
    if not count:
        more = "Repeats, or several runs of the spec, give other replies to the same prompts." if are_pairs else None
        what = "no pair of replies" if are_pairs else "no reply"
        raise DataError("; ".join([f"there is {what} to learn from", *lines]), hint=more)
    unlearned = f", and {export.unlearned:,} of weight 0" if export.unlearned else ""
    what = {
        "sft": f"{count:,} conversations, {export.replies:,} replies to learn from{unlearned}",
        "replies": f"{count:,} replies",
        "dpo": f"{count:,} pairs of replies",
        "kto": f"{count:,} pairs of replies, {export.rows.count:,} rows",
    }[export.kind]
    rewards = ", ".join(dict.fromkeys(one.chosen.reward for one in sources))
    notes = (f"note: {number:,} episodes: {why}" for why, number in export.problems.items())
    return "\n".join([f"{what}, from {export.episodes:,} episodes; reward: {rewards}", *lines, *notes])


_TAKES: Final = ("kind", "runs", "where", "reward", "agent", "group", "holdout", "keep_duplicates")
FORM: Final = ExportForm(_files, _write, takes=_TAKES)
