"""A run as two tidy tables: one row per episode, one row per turn.

Rows are plain dictionaries with the same keys in the same order throughout a run; `TidyColumn` says what each holds.
Texts are as models wrote them, except that U+FFFD stands for lone surrogates, which no file in UTF-8 can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from harness.api import CorpusMetric, Metric, Move, RatioMetric
from harness.api.printable import utf8
from harness.tables import EpisodeScore
from harness.tables.cost import Usd
from harness.transcripts.costs import of_moves
from harness.transcripts.findings import readers
from harness.transcripts.view_api import RecordedTurn, Transcript

TidyKind = Literal["text", "integer", "number", "flag", "json", "texts", "messages"]
"""What a column holds where it is not None: str, int, float, bool, anything that JSON can write, a list of str, or a
list of {"role", "content"}."""

Row = dict[str, Any]

_INT64_END = 2**63


@dataclass(frozen=True, slots=True)
class TidyColumn:
    """A column of a tidy table: its name, the kind of its values, and what they say."""

    name: str
    kind: TidyKind
    about: str


def _columns(*columns: tuple[str, TidyKind, str]) -> tuple[TidyColumn, ...]:
    return tuple(TidyColumn(*column) for column in columns)


_TOKENS: Final = _columns(
    ("input_tokens", "integer", "tokens of all prompts, of inner calls where there are some; None if none is reported"),
    ("output_tokens", "integer", "tokens of all replies, reasoning included"),
    ("cached_tokens", "integer", "those of the prompts that the engine had in its cache"),
    ("reasoning_tokens", "integer", "those of the replies that were reasoning"),
    ("latency", "number", "seconds that the calls took, one after another"),
    ("cost", "number", "USD: what replies say themselves, else their tokens at the known prices; None if unknown"),
    (
        "cost_is_whole",
        "flag",
        "whether `cost` is all of it: False where a part is unknown, so that it is a lower bound",
    ),
)
_INNER: Final = _columns(
    ("inner_calls", "integer", "calls that agents' programs made of their model; `calls` are replies"),
    ("inner_input_tokens", "integer", "tokens of the prompts of these"),
    ("inner_output_tokens", "integer", "tokens of the answers to these"),
    ("inner_failed", "integer", "how many of them failed"),
    ("inner_refused", "integer", "how many more a limit did not allow"),
    ("inner_dropped", "integer", "how many that were recorded the programs did not make again after a resume"),
)
"""Of runs that have such calls."""
_FIRST: Final = _columns(
    ("run", "text", "the run's id"),
    ("spec", "text", "the spec's name"),
    ("model", "text", "the model that is evaluated, or the policy in its place"),
    ("episode", "text", "condition/case/repeat, unique in its run"),
    ("condition", "text", "the cell of the spec's matrix"),
    ("case", "text", "the case's id"),
    ("repeat", "integer", "which repetition of the case, from 0"),
)
_LAST: Final = _columns(
    ("error", "text", "why the episode failed, or 'not run'; its metrics are then None"),
    ("limited", "flag", "whether a limit of the spec kept an agent from being asked"),
    ("uses_ground_truth", "flag", "whether players knew the right answer"),
    ("agents", "integer", "how many agents took part"),
    ("rounds", "integer", "batches of turns"),
    ("turns", "integer", "turns of all agents"),
    ("failed_turns", "integer", "turns without a readable reply"),
    ("calls", "integer", "calls of models"),
    *((c.name, c.kind, c.about) for c in _TOKENS),
    ("answers", "json", "agent → its answer"),
    ("group_answer", "json", "the answer of the group"),
    ("facts", "json", "what else the protocol reports of the outcome"),
    ("models", "json", "agent → the model that played it"),
    ("costs", "json", 'agent → {"usd": what its replies cost, "is_whole": whether that is all of it}; only known ones'),
    ("policies", "json", "agent → the policy that played it"),
    ("prompt_problem", "text", "why prompts of this episode are missing or may differ from those that were sent"),
)
TURN_COLUMNS: Final = _columns(
    ("run", "text", "the run's id"),
    ("episode", "text", "the episode's id"),
    ("turn", "integer", "the turn's place in the episode, from 0"),
    ("round", "integer", "the batch that it belongs to, from 0; turns of one round are simultaneous"),
    ("agent", "text", "the agent"),
    ("index", "integer", "the agent's own turns before this one"),
    ("group", "text", "the agent's group in the spec's `agents:`"),
    ("model", "text", "the model that played the agent; None for a policy"),
    ("policy", "text", "the policy that played the agent; None for a model"),
    ("persona", "text", "the name of the agent's persona; None without one"),
    ("template", "text", "the prompt's template"),
    ("fresh", "flag", "whether a new conversation starts here"),
    ("prompt", "messages", "what the agent was sent since its last turn; for a policy, what a model would be sent"),
    ("earlier_replies", "texts", "unreadable replies before the last one"),
    ("retry_prompts", "texts", "what the agent was sent after each unreadable reply"),
    ("reply", "text", "the last reply, as the model wrote it, a line for each call of a tool; None for a policy"),
    ("tool_calls", "json", "its calls of tools, each with id, name and arguments; None without"),
    ("reasoning", "text", "the reasoning before that reply"),
    ("action", "json", "the action that was read from it, or chosen by a policy"),
    ("error", "text", "why there is no action"),
    ("error_kind", "text", "parse, limit, or the kind of failed request"),
    ("retries", "integer", "how often the agent was asked again"),
    ("calls", "integer", "calls of the model"),
    *((c.name, c.kind, c.about) for c in _TOKENS),
    ("finish_reason", "text", "why the last reply ended, as the engine says it"),
)


class Tidy:
    """Makes the rows of one run.

    Labels and metrics are columns of their own. A metric that is called like one of the columns that every run has
    becomes `metric_NAME`; a label that is called like any of these becomes `label_NAME`. The label `model` is the
    column `model`. A ratio metric also has its two parts, `NAME_numerator` and `NAME_denominator`. Findings of
    extensions (`findings`) are columns where the run has some.

    Attributes:
        episode_columns: the columns of an episode's row: what was played, labels, metrics, then everything else.
        turn_columns: the columns of a turn's row; those of a row of an inner call are `inner_rows.COLUMNS`.
        has_inner_calls: whether agents' programs had a model to call.
    """

    def __init__(
        self,
        meta: Mapping[str, Any],
        scores: Iterable[EpisodeScore],
        metrics: Mapping[str, Metric],
        folder: Path | None = None,
    ) -> None:
        """Args:
        meta: the content of run.json.
        scores: all of the run's.
        metrics: name → metric.
        folder: the run's, whose findings are to be in the rows.
        """
        self._meta = meta
        self._scores = {score.id: score for score in scores}
        taken = {column.name for column in (*_FIRST, *_LAST, *TURN_COLUMNS)}
        found = {name: _free(name, "found_", taken) for name in (readers(folder) if folder is not None else ())}
        self._columns = found
        taken = {column.name for column in (*_FIRST, *_LAST)} | {*found.values()}
        self._metrics: dict[str, tuple[str, str | None, str | None]] = {}
        metric_columns: list[TidyColumn] = []
        for metric, plugin in metrics.items():
            name = _free(metric, "metric_", taken)
            parts: tuple[str | None, str | None] = (None, None)
            if isinstance(plugin, CorpusMetric):
                metric_columns.append(TidyColumn(name, "json", f"what the metric {metric} keeps of the episode"))
            else:
                metric_columns.append(TidyColumn(name, "number", f"the metric {metric}"))
            if isinstance(plugin, RatioMetric):
                parts = (_free(f"{name}_numerator", "metric_", taken), _free(f"{name}_denominator", "metric_", taken))
                metric_columns += [
                    TidyColumn(part, "number", f"a part of the metric {metric}") for part in parts if part
                ]
            self._metrics[metric] = (name, *parts)
        kinds: dict[str, TidyKind | None] = {}
        for score in self._scores.values():
            for label, value in score.labels.items():
                if not (label == "model" and score.model == meta["model"]):
                    kinds[label] = _common(kinds.get(label), value)
        self._labels = {label: _free(label, "label_", taken) for label in kinds}
        label_columns = [
            TidyColumn(self._labels[label], kind or "text", f"the label {label}") for label, kind in kinds.items()
        ]
        more = [
            TidyColumn(column, "json", f"what `harness {name}` found out: a list") for name, column in found.items()
        ]
        self.has_inner_calls = bool(meta.get("inner"))
        inner = tuple(c for c in _INNER if self.has_inner_calls and c.name not in self._names(metric_columns))
        self.episode_columns = (*_FIRST, *label_columns, *metric_columns, *_LAST, *inner, *more)
        self.turn_columns = (*TURN_COLUMNS, *(_INNER if self.has_inner_calls else ()), *more)

    @staticmethod
    def _names(columns: Iterable[TidyColumn]) -> set[str]:
        return {column.name for column in columns}

    def rows(self, transcripts: Iterable[Transcript]) -> Iterator[tuple[Row, Iterator[Row]]]:
        """(the episode's row, its turns' rows) of every transcript, then those of episodes that were never finished."""
        left = dict(self._scores)
        for transcript in transcripts:
            if (score := left.pop(transcript.id, None)) is not None:
                yield self._with_findings(self._episode(score, transcript), transcript)
        for score in left.values():
            yield self._episode(score, None), iter(())

    def _with_findings(self, row: Row, transcript: Transcript) -> tuple[Row, Iterator[Row]]:
        """The rows of an episode and of its turns, with what was found out about them."""
        turns = turn_rows(str(self._meta["run"]), transcript, self.has_inner_calls)
        if not self._columns:
            return row, turns
        own: dict[str, list[Any]] = {column: [] for column in self._columns.values()}
        of_turns: dict[int, dict[str, list[Any]]] = {}
        for one in transcript.findings:
            if (column := self._columns.get(one.name)) is None:  # kept only since the columns are known
                continue
            own[column].append(dict(one.facts))
            for number, turn in one.turns.items():
                of_turns.setdefault(number, {}).setdefault(column, []).append(dict(turn.facts))
        nothing = dict.fromkeys(self._columns.values())
        found = {column: facts or None for column, facts in own.items()}
        return {**row, **found}, ({**turn, **nothing, **of_turns.get(turn["turn"], {})} for turn in turns)

    def _episode(self, score: EpisodeScore, transcript: Transcript | None) -> Row:
        row: Row = dict.fromkeys(column.name for column in self.episode_columns)
        row |= {key: str(self._meta[key]) for key in ("run", "spec", "model")}
        row |= {"episode": score.id, "condition": score.condition, "error": score.error}
        row |= {"limited": score.limited, "uses_ground_truth": score.uses_ground_truth}
        for label, value in score.labels.items():
            if label in self._labels:
                row[self._labels[label]] = value
        for metric, (name, top, bottom) in self._metrics.items():
            record = score.record(metric)
            row[name] = _float(score.number(metric)) if record is None else record.value
            if top and bottom and (parts := score.parts(metric)) is not None:
                row[top], row[bottom] = map(_float, parts)
        if transcript is None:
            return _encodable(row)
        moves = [turn.move for turn in transcript.turns if turn.move is not None]
        row |= {"case": transcript.case_id, "repeat": transcript.repeat, "prompt_problem": transcript.problem}
        row |= {"agents": len(transcript.agents), "turns": len(moves)}
        row |= {"rounds": len({turn.round for turn in transcript.turns})}
        row |= {"failed_turns": sum(move.error is not None for move in moves)}
        row |= _usage(moves) | _paid(transcript.usd())
        if self.has_inner_calls:  # metrics of the same names have the same numbers
            row |= {name: value for name, value in _inner(moves).items() if name in row}
        costs = {agent: usd for agent in transcript.seat_prices if (usd := transcript.usd(agent)) is not None}
        row |= {"costs": {agent: {"usd": usd.value, "is_whole": usd.whole} for agent, usd in costs.items()} or None}
        row |= {"models": dict(transcript.models), "policies": dict(transcript.policies)}
        if (outcome := transcript.outcome) is not None:
            row |= {"answers": dict(outcome.answers), "group_answer": outcome.group, "facts": dict(outcome.facts)}
        return _encodable(row)


def turn_rows(run: str, transcript: Transcript, inner: bool = False) -> Iterator[Row]:
    """One row for each turn that was played, in order; the keys are those of `TURN_COLUMNS`, and those of inner calls
    if they are asked for."""
    for turn in transcript.turns:
        if turn.move is not None:
            yield _turn(run, transcript, turn) | (_inner([turn.move]) if inner else {})


def _turn(run: str, transcript: Transcript, turn: RecordedTurn) -> Row:
    move = turn.move
    assert move is not None
    last = move.calls[-1] if move.calls else None
    values: Row = {
        "run": run,
        "episode": transcript.id,
        "turn": turn.number,
        "round": turn.round,
        "agent": turn.agent,
        "index": turn.index,
        "group": transcript.roles.get(turn.agent, "default"),
        "model": transcript.models.get(turn.agent),
        "policy": transcript.policies.get(turn.agent),
        "persona": _persona(turn),
        "template": turn.name,
        "fresh": turn.fresh,
        "prompt": [{"role": role, "content": utf8(text)} for role, text in turn.prompt],
        "earlier_replies": [utf8(call.shown) for call in move.calls[:-1]],
        "retry_prompts": list(map(utf8, turn.retries)),
        "reply": move.text,
        "tool_calls": [dict(one) for one in last.tool_calls] if last and last.tool_calls else None,
        "reasoning": last.reasoning if last else None,
        "action": move.action,
        "error": move.error,
        "error_kind": move.error_kind,
        "retries": max(len(turn.retries), len(move.calls) - 1, 0),
        **_usage([move]),
        **_paid(of_moves([move], transcript.seat_prices)),
        "finish_reason": last.finish_reason if last else None,
    }
    return _encodable({column.name: values[column.name] for column in TURN_COLUMNS})


def _persona(turn: RecordedTurn) -> str | None:
    """The name under which the agent's persona is in its context."""
    persona = (turn.context or {}).get("persona")
    name = persona.get("name") if isinstance(persona, Mapping) else None
    return name if isinstance(name, str) else None


def _usage(moves: Sequence[Move]) -> Row:
    """Sums over moves; None if none of them says it."""
    calls = [call for move in moves for call in move.calls]
    row: Row = {"calls": len(calls)}
    for column in _TOKENS[:-2]:
        name = column.name
        known = [call.latency for call in calls] if name == "latency" else [move.used(name) for move in moves]
        reported = [value for value in known if value is not None]
        row[name] = sum(reported) if reported else None
    return row


def _paid(amount: Usd | None) -> Row:
    return {"cost": amount and amount.value, "cost_is_whole": None if amount is None else amount.whole}


def _inner(moves: Iterable[Move]) -> Row:
    """Sums over the turns of agents whose programs had a model to call; None without any."""
    usages = [move.inner_calls for move in moves if move.inner_calls is not None]
    names = {column.name: column.name.removeprefix("inner_") for column in _INNER}
    return {name: sum(getattr(one, field) for one in usages) if usages else None for name, field in names.items()}


def _encodable(row: Row) -> Row:
    return {name: utf8(value) if isinstance(value, str) else value for name, value in row.items()}


def _free(name: str, prefix: str, taken: set[str]) -> str:
    """`name`, with the prefix as often as it takes to be free."""
    while name in taken:
        name = f"{prefix}{name}"
    taken.add(name)
    return name


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _common(kind: TidyKind | None, value: Any) -> TidyKind | None:
    """The narrowest kind that holds the values so far and this one; None if there are none yet."""
    own: TidyKind = "json"
    if isinstance(value, bool):
        own = "flag"
    elif isinstance(value, int):
        own = "integer" if -_INT64_END <= value < _INT64_END else "json"
    elif isinstance(value, float):
        own = "number"
    elif isinstance(value, str):
        own = "text"
    elif value is None:
        return kind
    if kind is None or kind == own:
        return own
    return "number" if {kind, own} == {"integer", "number"} else "json"
