"""Extensions of someone else that are broken: a message with its place, and nothing else is worse for it."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.api.errors import PluginError
from harness.cli import main
from harness.config.editor_schema import whole_schema
from harness.config.keys import seating_keys
from harness.config.project import find
from harness.config.schema import SPEC
from harness.plugins import extension, manifests, missing_extensions
from harness.plugins.installed import OF_THE_CORE, checked
from harness.tables import TableEntry
from tests.helpers.toy import run

TOP = 'name = "echo"\nsummary = "Says things again."\n'
Capture = pytest.CaptureFixture[str]
Install = Callable[..., Path]


def forget() -> None:
    for cached in (manifests.extensions, manifests.read_all, manifests.offers):
        cached.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a package beside those that are installed: a manifest, further files, an entry point."""
    before = {*sys.modules}

    def write(manifest: str, files: dict[str, str] | None = None, entry: str = "echo = harness_echo") -> Path:
        package, info = tmp_path / "site" / "harness_echo", tmp_path / "site" / "harness_echo-1.0.dist-info"
        for folder in (package, info):
            folder.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: harness-echo\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[harness.extensions]\n{entry}\n")
        for name, text in {"__init__.py": "", "extension.toml": manifest, **(files or {})}.items():
            (package / name).write_text(text)
        monkeypatch.syspath_prepend(tmp_path / "site")
        forget()
        return package

    yield write
    for name in {*sys.modules} - before:
        if name.startswith("harness_echo"):
            del sys.modules[name]
    monkeypatch.undo()
    forget()


MISTAKES = [
    (f"{TOP}api = 'one'", "api: expected the version of the extension points, a whole number, found 'one'"),
    (f"{TOP}api = true", "api: expected the version of the extension points"),
    (f'{TOP}api = 1\n[parts]\npage = "a:b"', "parts: only extensions that ship with the harness offer these"),
    ("name = ", "cannot be read"),
    ('name = "echo"', "missing required key 'summary'"),
    ("name = 1\nsummary = ''", "name: expected a name, found 1"),
    (f"{TOP}comands = {{}}", "unknown key 'comands'. Did you mean commands?"),
    (f"{TOP}packages = 'torch'", "packages: expected a list of texts, found 'torch'"),
    (f"{TOP}needs = [1]", "needs: expected a list of texts"),
    (f"{TOP}keys = 3", "keys: expected a table, found 3"),
    (f'{TOP}[commands.say]\nrun = "a:b"', "commands.say: missing required key 'options'"),
    (f'{TOP}[commands]\nsay = "a:b"', "commands.say: expected a table with run"),
    (
        f'{TOP}[commands.say]\nrun = 1\noptions = "a:b"\nhelp = "h"\nusage = "u"',
        "commands.say.run: expected module",
    ),
    (
        f'{TOP}[commands.say]\nrun = "a:b"\noptions = "a:b"\nhelp = "h"\nusage = "u"\nexamples = "e"',
        "commands.say.examples: expected a list of texts",
    ),
    (f'{TOP}[commands.say]\nrun = "a:b"\noption = "a:b"', "commands.say: unknown key 'option'. Did you mean opt"),
    (
        f'{TOP}[commands.eval]\nrun = "a:b"\noptions = "a:b"\nhelp = ""\nusage = ""',
        "commands.eval: the harness has",
    ),
    (f'{TOP}[lists]\nsays = "a:b"', "lists.says: expected a table with run and help"),
    (f'{TOP}[lists.help]\nrun = "a:b"\nhelp = "h"', "lists.help: the harness has one of that name"),
    (f'{TOP}[lists.says]\nrun = "a:b"\nhelp = "h"\nfolders = ["x"]', "lists.says.folders: expected a table of texts"),
    (f'{TOP}[lists.says]\nrun = "a:b"\nhelp = "h"\nfolders = {{says = "x"}}', "lists.says: it has one of that name"),
    (f'{TOP}[starters]\nother = "nowhere"', "starters.other: there is no specs/__NAME__.yaml in 'nowhere'"),
    (f'{TOP}[starters]\nother = {{folder = "x", run = "a:b"}}', "starters.other: there is no folder 'x'"),
    (f'{TOP}[starters]\nother = {{folder = "x"}}', "starters.other: missing required key 'run'"),
    (f'{TOP}[starters]\nproject = "nowhere"', "starters.project: there is no harness.yaml in 'nowhere'"),
    (f'{TOP}[table_keys]\nrows = "a:b"', "table_keys.rows: the harness has one of that name"),
    (f'{TOP}[table_keys]\ncompare = "a:b"', "table_keys.compare: the extension analysis ("),
    (f'{TOP}[tables]\ntitle = {{run = "a:b", key = true}}', "table_keys.title: the harness has one of that name"),
    (f"{TOP}[tables]\ntally = 3", "tables.tally: expected module:attribute"),
    (f'{TOP}[tables]\ntally = {{run = "a:b", key = "yes"}}', "tables.tally.key: expected true or false, found 'yes'"),
    (f"{TOP}[tables]\ntally = {{key = true}}", "tables.tally: missing required key 'run'"),
    (f'{TOP}[tables]\nrating = "a:b"', "tables.rating: the extension games ("),
    (f'{TOP}[post_run]\necho = "a:b"', "post_run.echo: expected a table with run"),
    (f'{TOP}[post_run.echo]\nrun = "a:b"\nparameters = "x"', "post_run.echo.parameters: expected a list of names"),
    (f'{TOP}[post_run.echo]\nrun = "a:b"\nparameters = ["judge"]', "post_run.parameters.judge: the extension judges ("),
    (f'{TOP}[engines]\nloud = "a:b"', "engines.loud: expected the name of a module"),
    (f'{TOP}[keys]\ntwice = "key"', "keys.twice: expected module:attribute, such as command:run, found 'key'"),
    (f'{TOP}[keys]\ntask = "a:b"', "keys.task: the harness has one of that name"),
    (f'{TOP}[keys]\n"a b" = "a:b"', "keys.a b: a name has letters"),
    (f'{TOP}[projects]\necho = "nowhere"', "projects.echo: there is no harness.yaml in 'nowhere'"),
    (TOP.replace("echo", "viewer"), "two extensions are called 'viewer'; the other one is "),
]


@pytest.mark.parametrize("manifest, words", MISTAKES)
def test_a_mistake_in_a_manifest_is_reported_and_breaks_nothing(
    manifest: str, words: str, install: Install, capsys: Capture
) -> None:
    file = install(manifest) / "extension.toml"
    [message] = [why for why in missing_extensions.missing().values() if why.startswith("cannot be used: ")]
    assert f"cannot be used: {file}: " in message and words in message
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "  viewer" not in (shown := capsys.readouterr().out) and "  validate " in shown and "  view " in shown


@pytest.mark.slow  # it counts every plugin
def test_the_list_of_all_there_is_has_a_line_for_one_that_is_broken(install: Install, capsys: Capture) -> None:
    file = install("name = ") / "extension.toml"
    assert main(["list"]) == 0
    assert f"The extension echo cannot be used: {file}: the manifest of an" in capsys.readouterr().out


def test_manifests_that_ship_have_no_mistakes() -> None:
    for file in manifests.shipped():
        assert checked(f"harness.extensions.{file.parent.name}", file).name == file.parent.name


def test_names_of_the_core_are_no_extensions() -> None:
    assert {*SPEC["properties"]} == OF_THE_CORE["keys"]
    assert {*TableEntry.__annotations__} == OF_THE_CORE["table_keys"]


def test_what_the_core_offers_is_listed_as_extensions_list_theirs() -> None:
    assert checked("harness", extension.CORE).points == extension.core().points


@pytest.mark.parametrize(
    "entry, words",
    [
        ("echo = harness_nothing", "there is no package 'harness_nothing'"),
        ("echo = harness_echo.nothing.more", "the package cannot be found: ModuleNotFoundError"),
        ("echo = harness_echo.broken", "there is no package 'harness_echo.broken'"),
        ("echo = .", "the package cannot be found: "),
    ],
)
def test_an_entry_point_that_names_no_package_is_reported(entry: str, words: str, install: Install) -> None:
    install(TOP, {"broken.py": ""}, entry)
    message = missing_extensions.missing()["echo"]
    assert message.startswith("cannot be used: entry point echo = ") and words in message


def test_a_name_that_an_extension_with_a_mistake_would_bring_says_so(install: Install, capsys: Capture) -> None:
    install(f'{TOP}[commands.say]\nrun = "a:b"\n[tables]\ntally = "a:B"')
    with pytest.raises(SystemExit, match="2"):
        main(["say"])
    err = capsys.readouterr().err
    assert "'say' comes with the extension echo, which cannot be used: " in err and "commands.say: missing" in err


COMMAND = f"""{TOP}
[commands.say]
run = "command:say"
options = "command:options"
help = "say a word"
usage = "WORD"
"""
RIGHT = "def options(command): pass\ndef say(options): print('word'); return 0\n"


@pytest.mark.parametrize(
    "source, words",
    [
        (None, "commands.say.options: there is no module harness_echo.command"),
        ("def say(options): pass\ndef option(command): pass\n", "commands.say.options: harness_echo.command has no"),
        ("options = 3\n", "commands.say.options: expected a function, found int 3"),
        (f"1 / 0\n{RIGHT}", "commands.say.options: harness_echo.command cannot be imported: ZeroDivisionError"),
        (f"def {RIGHT}", "commands.say.options: harness_echo.command cannot be imported: SyntaxError"),
        (f"import no_such_package\n{RIGHT}", "the extension echo needs no_such_package, which is not installed"),
        (RIGHT.replace("pass", "command.nothing"), "command.py:1: the extension echo fails: AttributeError"),
        (RIGHT.replace("print('word')", "1 / 0"), "command.py:2: the extension echo fails: ZeroDivisionError"),
    ],
)
def test_a_command_that_is_broken_says_where_and_the_others_work(
    source: str | None, words: str, install: Install, capsys: Capture
) -> None:
    install(COMMAND, {} if source is None else {"command.py": source})
    assert main(["say"]) == 2
    err = capsys.readouterr().err
    assert words in err and "Traceback" not in err
    assert "extension.toml" in err or "command.py:" in err or "pip install --force-reinstall harness-echo" in err
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])


SHELL = """
from harness.config.keys import SpecKey
from harness.tables import TableKey, TableKind
from harness.evaluation.post_run import PostRun
from harness.runtime.executors import Executor
from typing import TypedDict

class Nothing:
    pass

class Bare(TableKind):
    pass

class Key(SpecKey):
    pass

class Odd(TableKey):
    @classmethod
    def read(cls, entry):
        return cls()

class Entry(TypedDict, total=False):
    of: str

class Unread(TableKey):
    entry = TypedDict("Odd", {"odd": int}, total=False)

class Tally(TableKind):
    entry = Entry
    needs = ("of",)
    names_metrics = "of"
    @classmethod
    def read(cls, entry):
        READ
        return cls()
    def problems(self, table):
        return []
    def check(self, table, labels, metrics):
        CHECK
        return []
    def build(self, table, scores, metrics):
        raise NotImplementedError
"""
RUN = ("eval", "--spec", "arithmetic", "--limit", "1", "--quiet", "--output_path")


@pytest.mark.parametrize(
    "point, spec, words",
    [
        (
            '[tables]\ntally = "kinds:Nothing"',
            "tables: [{title: T, kind: tally}]",
            "tally: expected a subclass of",
        ),
        (
            '[tables]\ntally = "kinds:Bare"',
            "tables: [{title: T, kind: tally}]",
            "class Bare has no build, problems",
        ),
        (
            '[table_keys]\nodd = "kinds:Bare"',
            "tables: [{title: T, rows: model, metrics: score, odd: 1}]",
            "table_keys.odd: expected a subclass of harness.tables.keys.TableKey",
        ),
        (
            '[table_keys]\nodd = "kinds:Odd"',
            "tables: [{title: T, rows: model, metrics: score, odd: 1}]",
            "table_keys.odd: the class Odd has no `entry`",
        ),
        (
            '[table_keys]\nodd = "kinds:Unread"',
            "tables: [{title: T, rows: model, metrics: score, odd: 1}]",
            "table_keys.odd: the class Unread has no `read`",
        ),
        (
            '[keys]\ntwice = "kinds:Nothing"',
            "twice: true",
            "keys.twice: expected a subclass of harness.config",
        ),
        ('[keys]\ntwice = "kinds:Key"', "twice: true", "keys.twice: its `entry` is not an annotation"),
        ('[executors]\nfar = "kinds:Nothing"', "executor: far", "executors.far: expected a subclass of"),
    ],
)
def test_a_class_of_the_wrong_kind_is_reported(
    point: str, spec: str, words: str, install: Install, tmp_path: Path, capsys: Capture
) -> None:
    file = install(f"{TOP}{point}\n", {"kinds.py": SHELL.replace("READ", "pass").replace("CHECK", "pass")})
    (tmp_path / "spec.yaml").write_text(f"extends: arithmetic\n{spec}\n")
    assert find().spec("arithmetic") and whole_schema() and seating_keys() == ["tournament"]  # asks all of them
    capsys.readouterr()
    assert main(["eval", "--spec", str(tmp_path / "spec.yaml"), "--output_path", str(tmp_path / "other")]) == 2
    err = capsys.readouterr().err
    assert f"error: {file / 'extension.toml'}: " in err and words in err


def test_keys_of_tables_may_be_called_as_the_core_calls_something_within(
    install: Install, tmp_path: Path, capsys: Capture
) -> None:
    source = SHELL.replace("READ", "pass").replace("CHECK", "pass").replace("of: str", "of: str\n    summed: int")
    keys = "".join(f"{name} = 'kinds:{name.title()}'\n" for name in ("added", "derived", "cells"))
    for name in ("added", "derived", "cells"):
        source += f"class {name.title()}(Odd):\n    entry = TypedDict('Entry', {{{name!r}: int}})\n"
    install(f"{TOP}[table_keys]\n{keys}[tables]\ntally = 'kinds:Tally'\n", {"kinds.py": source})
    spec = tmp_path / "spec.yaml"
    plain = "{title: A, rows: model, metrics: score, added: 1, derived: 1, cells: 1}"
    spec.write_text(f"extends: arithmetic\ntables: [{plain}, {{title: B, kind: tally, of: score, summed: 1}}]\n")
    assert main(["validate", str(spec)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("where", ["READ", "CHECK"])
def test_a_kind_of_table_that_raises_is_a_mistake_of_its_entry(
    where: str, install: Install, tmp_path: Path, capsys: Capture
) -> None:
    source = SHELL.replace(where, "1 / 0").replace("READ", "pass").replace("CHECK", "pass")
    install(f'{TOP}[tables]\ntally = "kinds:Tally"\n', {"kinds.py": source})
    spec = tmp_path / "spec.yaml"
    spec.write_text("extends: arithmetic\ntables:\n  - {title: T, kind: tally, of: score}\n")
    assert main(["validate", str(spec), "arithmetic"]) == 2
    out, err = capsys.readouterr()
    assert "arithmetic: ok" in out
    message = "the kind of table harness_echo.kinds.Tally fails: ZeroDivisionError: division by zero (kinds.py:"
    assert f"{spec}:3:" in err and message in err


@pytest.mark.parametrize(
    "line, words",
    [("1 / 0", "ZeroDivisionError: division by zero (found.py:2)"), ("return ['x']", "TypeError: ")],
)
def test_findings_that_raise_cost_no_transcript(
    line: str, words: str, install: Install, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = f'{TOP}[findings.echo]\nrun = "found:found"\nfile = "echo.json"\n'
    install(manifest, {"found.py": f"def found(folder, transcript):\n    {line}\n"})
    done = run(tmp_path / "run", limit=1)
    (done.folder / "echo.json").write_text("{}")
    assert [one.findings for one in done.transcripts()] == [()] * len(done.scores)
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"findings of echo are left out: {words}")


def test_options_that_an_extension_cannot_add_do_not_stop_a_run(
    install: Install, tmp_path: Path, capsys: Capture
) -> None:
    manifest = f'{TOP}[post_run.echo]\nrun = "after:Echo"\nparameters = ["echo"]\neval = "after:options"\n'
    install(manifest, {"after.py": "def options(command): command.add_argument('--model')\n"})
    assert main([*RUN, str(tmp_path / "run")]) == 0
    assert "echo" not in capsys.readouterr().err, "options of extensions are not asked for"
    assert main([*RUN, str(tmp_path / "run"), "--no-resume", "--overwrite"]) == 0
    assert "warning: the extension echo adds no options: " in capsys.readouterr().err


def test_a_project_with_a_mistake_brings_no_plugins(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    package = install(TOP)
    (package / "plugins").mkdir()
    (package / "plugins" / "harness.yaml").write_text("nonsense: 1\n")
    (package / "extension.toml").write_text(f'{TOP}[projects]\necho = "plugins"\n')
    forget()
    with pytest.warns(UserWarning, match=r"the extension echo has no plugins: .*harness\.yaml:1:1"):
        assert find().files("tasks")


def test_a_starter_with_programs_is_copied_without_what_pip_made_of_them(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = install(TOP)
    for folder in ("specs", "metrics/__pycache__"):
        (package / "starter" / folder).mkdir(parents=True)
    (package / "starter/specs/__NAME__.yaml").write_text("extends: arithmetic\n")
    (package / "starter/metrics/__NAME__.py").write_text("about = '__NAME__'\n")
    (package / "starter/metrics/__pycache__/__NAME__.cpython-311.pyc").write_bytes(b"\xa7\r\r\n")
    (package / "extension.toml").write_text(f'{TOP}[starters]\ncheer = "starter"\n')
    forget()
    assert main(["new", str(tmp_path / "mine")]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    assert main(["new", "task", "loud", "--kind", "cheer"]) == 0
    assert "pyc" not in capsys.readouterr().out  # nor is what Python makes of the copies listed
    assert Path("metrics/loud.py").read_text() == "about = 'loud'\n"
    assert not [*Path("metrics").rglob("loud*.pyc")]


def test_an_extension_of_someone_else_says_what_to_install(install: Install) -> None:
    install(f'{TOP}extra = "loud"\npackages = ["no_such_package", "no_such.package"]\n')
    why = "needs no_such_package and no_such.package: pip install 'harness-echo[loud]'"
    assert missing_extensions.missing()["echo"] == why


PARTS = f"""{TOP}
[engines.parrot]
run = "birds.parrot"
extra = "birds"
packages = ["no_such_parrot"]

[lists.songs]
run = "songs:songs"
help = "what can be sung"
packages = ["json", "no_such_song"]
"""


def test_an_engine_and_a_list_of_someone_else_say_what_they_alone_need(install: Install, capsys: Capture) -> None:
    package = install(PARTS, {"songs.py": "import no_such_song\n"})
    (package / "birds").mkdir()
    (package / "birds/parrot.py").write_text("import no_such_parrot\n")
    birds, songs = "pip install 'harness-echo[birds]'", "pip install --force-reinstall harness-echo"
    why = f"needs no_such_parrot for engines.parrot: {birds}; no_such_song for lists.songs: {songs}"
    assert missing_extensions.missing()["echo"] == why
    assert main(["list", "tasks", "--songs"]) == 2
    said = capsys.readouterr().err
    assert "the extension echo needs no_such_song, which is not installed" in said and f"Install it: {songs}" in said
    assert main(["eval", "--spec", "arithmetic", "--model", "parrot"]) == 2
    assert "no_such_parrot" in capsys.readouterr().err


def test_manifests_are_read_for_their_own_package(tmp_path: Path) -> None:
    file = tmp_path / "extension.toml"
    file.write_text(TOP)
    assert checked("harness_echo", file, "harness-echo").distribution == "harness-echo"
    file.write_text("name = ")
    with pytest.raises(PluginError, match=r"extension\.toml"):
        checked("harness_echo", file)


SEATS = """
from harness.config.keys import SpecKey

class Duel(SpecKey):
    entry = bool

class Melee(Duel):
    pass
"""


def test_two_keys_that_both_seat_agents_are_refused(install: Install, tmp_path: Path, capsys: Capture) -> None:
    entries = [f'{name} = {{run = "seats:{name.title()}", seats_agents = true}}' for name in ("duel", "melee")]
    install("\n".join([f"{TOP}[keys]", *entries, ""]), {"seats.py": SEATS})
    spec = tmp_path / "spec.yaml"
    spec.write_text("extends: arithmetic\nduel: true\nmelee: true\n")
    assert main(["validate", str(spec)]) == 2
    assert f"{spec}:3:1: melee: and duel: both say who plays" in capsys.readouterr().err


def test_a_project_of_an_extension_may_build_on_the_built_in_one(
    install: Install, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"harness.yaml": "parents: [harness_builtin]\n"}
    package = install(f"{TOP}api = 1\n[projects]\necho = '.'", files)
    (package / "specs").mkdir()
    (package / "specs" / "song.yaml").write_text("extends: arithmetic\nname: song\n")
    for folder in (package, package.parent):  # where its author works, and where its users do
        monkeypatch.chdir(folder)
        assert main(["validate", "song"]) == 0
        assert capsys.readouterr() == ("song: ok\n", "")
