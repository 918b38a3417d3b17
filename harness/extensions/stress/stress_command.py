"""`harness stress`: a table of what is read of a stand-in model's replies, and how far the headline moves."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.api import Case, Move, Reply, derive_seed
from harness.cli import options as opt
from harness.cli.usage import Parser
from harness.config import resolve, spec
from harness.config.plan import Plan
from harness.config.project import Project, find
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from harness.runtime.steps import Steps

from .foreign_replies import foreign_trials
from .parse_verdicts import VERDICTS, Trial, counts, is_exact, name_of, trials
from .stand_in import PLAIN, StandIn
from .styles import STYLES

BATCHES = 40
"""Batches of an episode whose forms are looked at."""
MAX_SHOWN_REPLIES = 5
"""Replies of each kind of failure that are printed."""


def options(command: Parser) -> None:
    """The options of `harness stress`."""
    opt.add(command, *opt.SPEC)
    group = command.group("more")
    group.add_argument("--parse_only", action="store_true", help="only read replies: play no run for the headline")
    group.add_argument(
        "--min_parse_rate",
        type=opt.share,
        default=0.97,
        metavar="SHARE",
        help="the share of plain replies that must be read",
    )


def stress(options: argparse.Namespace) -> int:
    """Print the table and the headlines; 1 where replies are misread, dropped, or too few are read."""
    project = find()
    changes = [*options.overrides, *([f"task.data_dir={options.data_dir}"] if options.data_dir else [])]
    loaded = spec.load(options.spec, project, changes, limit=options.limit, seed=options.seed, repeats=options.repeats)
    plan = resolve.plan(loaded, project, StandIn(PLAIN).engine("stand-in"))
    forms = forms_of(plan)
    found = [one for form in forms for one in (*trials(form), *foreign_trials(form))]
    for line in lines(found):
        print(line)
    undeclared = sorted({name_of(form) for form in forms if not form.examples})
    if undeclared:
        print(f"no replies can be written for: {', '.join(undeclared)}")
    if not options.parse_only:
        print()
        for line in headlines(loaded, project):
            print(line)
    exact = {name_of(form) for form in forms if is_exact(form)}
    tolerant = (one for one in found if one.form not in exact)
    totals = sum(counts(tolerant).values(), Counter())
    bad = totals["misread"] + totals["dropped"]
    return int(bool(bad) or totals["plain read"] < options.min_parse_rate * totals["plain"])


def forms_of(plan: Plan) -> list[Reply]:
    """The different forms that the first episodes of each condition ask for, a few of each type."""
    forms: dict[str, list[Reply]] = {}
    for condition in plan.conditions:
        case = condition.task.example()
        for form in _forms(condition.protocol, condition.task, case):
            seen = forms.setdefault(name_of(form), [])
            if len(seen) < 3 and all(form.fields != one.fields for one in seen):
                seen.append(form)
    return [form for seen in forms.values() for form in seen]


def _forms(protocol: object, task: object, case: Case) -> Iterator[Reply]:
    import random

    with Steps(protocol, task, case, random.Random(0)) as game:  # type: ignore[arg-type]
        while game.batch is not None and game.number < BATCHES:
            moves = []
            for turn in game.batch:
                yield turn.reply
                examples = turn.reply.examples
                rng = random.Random(derive_seed(game.number, turn.agent))
                action = rng.choice(examples) if examples else turn.reply.noop
                moves.append(Move(turn.agent, turn.name, action))
            game.send(moves)


def lines(found: Iterable[Trial]) -> Iterator[str]:
    """The table: a form per row; below it replies that were misread or dropped, and plain ones that were refused."""
    found = list(found)
    width = max((len(one.form) for one in found), default=4) + 2
    yield f"{'form':{width}}" + "".join(f"{word:>9}" for word in ("replies", *VERDICTS)) + f"{'of plain ones':>15}"
    for name, row in counts(found).items():
        numbers = [sum(row[verdict] for verdict in VERDICTS), *(row[verdict] for verdict in VERDICTS)]
        share = f"{100 * row['plain read'] / row['plain']:.1f} % read" if row["plain"] else ""
        yield f"{name:{width}}" + "".join(f"{number:>9}" for number in numbers) + f"{share:>15}"
    for verdict in VERDICTS[1:]:
        some = [one for one in found if one.verdict == verdict and (one.style.plain or verdict != "refused")]
        for one in list({(one.form, one.style.name): one for one in some}.values())[:MAX_SHOWN_REPLIES]:
            yield f"{verdict}: {one.form}, {one.style.name}: {one.text!r:.120} → {one.got!s:.120}"


def headlines(loaded: spec.Spec, project: Project) -> Iterator[str]:
    """The headline of the same meant replies, as asked for and in all plain styles."""
    values = []
    for name, styles in (("as asked", STYLES[:1]), ("in all styles", PLAIN)):
        stand_in = StandIn(styles)
        with tempfile.TemporaryDirectory() as folder:
            plan = resolve.plan(loaded, project, stand_in.engine("stand-in"))
            done = execute(plan, Options(output_path=Path(folder) / "run"))
            value = done.headline.cell(done.scores).value
        failed = Counter(one.verdict for one in stand_in.trials)
        values.append(value)
        text = "no number" if value is None else f"{value:.4f}"
        yield f"{done.headline.title}, {name}: {text} ({failed['read']} of {len(stand_in.trials)} replies read)"
    before, after = values
    if before is not None and after is not None:
        yield f"shift: {after - before:+.4f}"
