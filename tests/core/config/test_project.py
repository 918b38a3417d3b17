"""Projects: plugins by path, listing without import, broken files never skipped."""

import sys
from pathlib import Path

import pytest

from harness.api.errors import Place, PluginError, SpecError, UserError
from harness.config import project
from harness.config.project import builtin
from harness.plugins.approvals import BUILTIN
from harness.plugins.manifests import offers

TOY = Path(__file__).parents[2] / "toy"


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def make(root: Path, marker: str = "name: mine\n") -> project.Project:
    write(root, "harness.yaml", marker)
    return project.find(root)


METRIC = """from harness.api import Metric, plugin
@plugin
class M(Metric):
    '''Mine.

    More.'''
    def measure(self, episode): return None
"""


def test_found_by_walking_up() -> None:
    assert project.find(TOY / "registry" / "tasks").name == "toy"
    assert project.find(Path("/")).name == BUILTIN


def test_names_are_paths_and_descriptions_are_docstrings(tmp_path: Path) -> None:
    mine = make(tmp_path)
    write(tmp_path, "metrics/deep/er/m.py", METRIC)
    write(tmp_path, "metrics/deep/_helper.py", "raise SystemExit")
    listed = mine.listing("metrics")
    assert [(entry.name, entry.description, entry.problem) for entry in listed] == [("deep/er/m", "Mine.", None)]
    loaded = mine.load("metrics", "deep/er/m")
    assert loaded().measure(None) is None


def test_no_generic_name_reaches_the_module_table() -> None:
    project.find(TOY).load("metrics", "agreed")
    assert not {"metrics", "registry", "prompts", "specs"} & set(sys.modules)


def test_plugins_pickle() -> None:
    import pickle

    result = project.find(TOY).load("policies", "coin")(bias=0.25)
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_child_sees_its_parents_and_wins_over_them(tmp_path: Path) -> None:
    child = make(tmp_path / "child", f"name: child\nparents: [{TOY}]\n")
    write(tmp_path / "child", "metrics/agreed.py", METRIC)
    assert child.load("metrics", "agreed").__doc__.startswith("Mine.")
    assert child.load("metrics", "parse_retries").__doc__.startswith("Re-asks")
    assert child.load("tasks", "pick").__doc__.startswith("Everybody must name")
    assert [p.name for p in child.lineage()] == ["child", "toy"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nonexistent_package_xyz\n" + METRIC, "cannot be imported: ModuleNotFoundError"),
        ("def broken(:\n", "cannot be imported: SyntaxError"),
        ("x = 1\n\ny = 1 / 0\n" + METRIC, "m.py:3:1"),
        ("raise SystemExit(3)\n", "cannot be imported: SystemExit"),
        ("x = 1\n", "found 0 tagged classes"),
        (METRIC + METRIC.replace("class M", "class N"), "found 2 tagged classes"),
        ("from harness.api import plugin\n@plugin\nclass M:\n    pass\n", "is not a subclass of Metric"),
        ("from harness.api import Metric, plugin\n@plugin\nclass M(Metric):\n    pass\n", "does not define measure"),
    ],
)
def test_broken_plugins_say_why(tmp_path: Path, text: str, says: str) -> None:
    mine = make(tmp_path)
    write(tmp_path, "metrics/m.py", text)
    with pytest.raises(PluginError) as caught:
        mine.load("metrics", "m")
    assert says in str(caught.value)
    assert "m.py" in str(caught.value)


def test_a_broken_file_is_listed_as_broken(tmp_path: Path) -> None:
    mine = make(tmp_path)
    write(tmp_path, "metrics/bad.py", "def (:")
    write(tmp_path, "metrics/untagged.py", "x = 1")
    problems = {entry.name: entry.problem for entry in mine.listing("metrics")}
    assert "SyntaxError" in str(problems["bad"])
    assert "no class tagged" in str(problems["untagged"])


def test_unknown_names_show_near_matches() -> None:
    with pytest.raises(PluginError, match=r"there is no metric 'agred'(.|\n)*Did you mean agreed"):
        project.find(TOY).load("metrics", "agred")
    with pytest.raises(PluginError, match="there is no prompt set"):
        project.find(TOY).prompts("toy/lout")
    with pytest.raises(SpecError, match="Did you mean toy"):
        project.find(TOY).spec("toyy")


def test_a_folder_of_templates_learns_what_makes_it_a_prompt_set(tmp_path: Path) -> None:
    for folder in ("mine/prompts/radio", "loose/prompts/lamp", "loose/specs"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("mine/prompts/radio", "loose/prompts/lamp"):
        (tmp_path / folder / "start.j2").write_text("Hello")
    (tmp_path / "mine/harness.yaml").write_text("name: mine\n")
    own = project.find(tmp_path / "mine")
    with pytest.raises(PluginError, match=r"prompts/radio has no prompts\.yaml\. Write one"):
        own.prompts("radio")
    outside = r"prompts counts in a project only: put a harness\.yaml beside it, with parents: \[harness_builtin\]"
    for spec in ("loose/radio.yaml", "loose/specs/radio.yaml"):
        with pytest.raises(PluginError, match=rf"{outside}, and a prompts\.yaml into"):
            own.prompts("lamp", Place(str(tmp_path / spec)))
    (tmp_path / "loose/prompts/lamp/prompts.yaml").write_text("description: Hello.\n")
    with pytest.raises(PluginError, match=rf"{outside}\."):
        own.prompts("lamp", Place(str(tmp_path / "loose/radio.yaml")))


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("nam: x\n", "unknown key 'nam'"),
        ("parents: [nowhere]\n", "no project at"),
        ("parents: ['.']\n", "its own parent"),
        ("a: [", "broken YAML"),
        ("parents: toy\n", "'parents' must be a list, found text 'toy'"),
        ("parents:\n", "'parents' must be a list, found nothing"),
        ("parents: [3]\n", "entry 0 of 'parents' must be text"),
        ("name: 3\n", "'name' must be text"),
        ("- name\n", "this must be a mapping"),
    ],
)
def test_a_bad_marker_is_refused_with_its_place(tmp_path: Path, marker: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        make(tmp_path, marker)
    assert says in str(caught.value)
    assert "harness.yaml:1" in str(caught.value)


def test_prompt_sets_that_are_their_own_base(tmp_path: Path) -> None:
    mine = make(tmp_path)
    write(tmp_path, "prompts/a/prompts.yaml", "base: b\n")
    write(tmp_path, "prompts/b/prompts.yaml", "base: a\n")
    with pytest.raises(PluginError, match="its own base"):
        mine.prompts("a")


def test_a_prompt_set_may_leave_its_keys_empty_and_no_more(tmp_path: Path) -> None:
    mine = make(tmp_path)
    write(tmp_path, "prompts/a/prompts.yaml", "description:\nbase:\n")
    assert mine.prompts("a").description == "" and mine.listing("prompts")[0].description == ""
    write(tmp_path, "prompts/a/prompts.yaml", "base: [b]\n")
    with pytest.raises(SpecError, match=r"prompts.yaml:1:7: not a prompt set's description: 'base' must be text"):
        mine.prompts("a")


def test_engines_of_the_core_are_listed() -> None:
    assert {"mock", "openai", "replay", "vllm"} <= {entry.name for entry in project.find(TOY).listing("engines")}


def test_what_only_the_built_in_project_has_is_hinted_at(tmp_path: Path) -> None:
    """A project without parents: "None found" would be no help."""
    mine = make(tmp_path / "mine")
    looks = (
        lambda it: it.load("tasks", "arithmetic"),
        lambda it: it.prompts("qa/standard"),
        lambda it: it.spec("agentsnet"),
    )
    for look in looks:
        with pytest.raises(
            UserError, match=r"The built-in project has it.*add harness_builtin to parents: in .*mine/harn"
        ):
            look(mine)
        look(make(tmp_path / "child", "parents: [harness_builtin]\n"))
    with pytest.raises(UserError, match="None found"):
        mine.load("tasks", "nothing")
    with pytest.raises(SpecError, match="Did you mean harness_builtin"):
        make(tmp_path / "typo", "parents: [harness_bultin]\n")


@pytest.mark.parametrize("kind", [*offers("kinds"), "specs", "prompts"])
def test_one_name_is_found_as_all_are(kind: str) -> None:
    project = builtin()
    files = project.files(kind)
    assert files and {name: project.file(kind, name) for name in files} == files


@pytest.mark.parametrize("kind", ["tasks", "metrics", "engines", "specs", "prompts"])
@pytest.mark.parametrize(
    "name", ["", ".", "..", "../tasks/echo", "/etc/hosts", "a//b", "_x", "agentsnet", "a\0b", "n" * 5000]
)
def test_what_is_no_name_is_no_file(kind: str, name: str) -> None:
    project = builtin()
    assert project.file(kind, name) == project.files(kind).get(name)


def test_a_parameter_that_hides_a_method_of_engines_is_refused(tmp_path: Path) -> None:
    engine = """from harness.api import Completion, plugin
from harness.api import Engine
@plugin
class Loc(Engine):
    '''Somewhere.'''
    model: str = "loc"
    location: str = "europe"
    async def complete(self, request): return Completion("0")
"""
    write(tmp_path, "registry/engines/loc.py", engine)
    with pytest.raises(PluginError, match="its parameter 'location' hides Engine") as refused:
        make(tmp_path).load("engines", "loc")
    assert "location_" in str(refused.value)
