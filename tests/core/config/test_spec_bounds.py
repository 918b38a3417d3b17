"""Hostile specs: what grows without end is refused, with its place, before it costs anything."""

from pathlib import Path

import pytest

from harness.api.errors import SpecError, UserError
from harness.config import resolve, spec, yamls
from harness.config.project import builtin

BASE = "name: s\ntask: {use: arithmetic, size: 2}\nprotocol: single\nprompts: qa/standard\nbaseline: calculator\n"
BASE += "metrics: [score]\n"


def refused(tmp_path: Path, text: str) -> str:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        resolve.plan(spec.load(str(file), builtin()), builtin())
    return str(caught.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    "number",
    ["0x" + "f" * 100_000, "0b" + "1" * 400, "1" * 100_000,
     "1_" * 1000 + "1", "-" + "9" * 5000, "1e" + "9" * 200],
)  # fmt: skip
def test_numbers_of_thousands_of_digits(tmp_path: Path, number: str) -> None:
    assert "s.yaml:7:7: a number of" in refused(tmp_path, f"{BASE}seed: {number}\n")
    assert yamls.parse(f"'{number}'", "x").data == number, "as a text it is fine"


@pytest.mark.parametrize("number", [str(2**63), str(-(2**63)), "0xffffffffffffffffffff", "9" * 60])
def test_numbers_beyond_what_machines_count_with(tmp_path: Path, number: str) -> None:
    assert "s.yaml:7:8: the number" in refused(tmp_path, f"{BASE}limit: {number}\n")
    assert yamls.parse(str(2**63 - 1), "x").data == 2**63 - 1


@pytest.mark.parametrize("key", ["repeats", "limit", "seed"])
def test_counts_that_no_run_ends_with(tmp_path: Path, key: str) -> None:
    assert f"'{key}' must be ≤" in refused(tmp_path, f"{BASE}{key}: {2**63 - 1}\n")


def test_a_matrix_of_a_million_million_conditions(tmp_path: Path) -> None:
    values = ", ".join(map(str, range(1, 1001)))
    text = BASE.replace("size: 2", "size: 2, metadata: {x: '${a}${b}${c}${d}'}")
    report = refused(tmp_path, text + "matrix:\n" + "".join(f"  {name}: [{values}]\n" for name in "abcd"))
    assert "s.yaml:8:3: 1000000000000 conditions (1,000 a · 1,000 b · 1,000 c · 1,000 d); at most 10,000" in report


def test_a_matrix_of_many_variables(tmp_path: Path) -> None:
    report = refused(tmp_path, BASE + "matrix:\n" + "".join(f"  v{i}: [1]\n" for i in range(101)))
    assert "s.yaml:8:3: 101 swept variables; at most 100" in report


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("first", "later", "used"),
    [
        ("['xxxxxxxxxx']", "['${%s}${%s}']", "${v40}"),
        ("[{name: a, k: [x, x]}]", "[{name: a, k: ['${%s.k}', '${%s.k}']}]", "${v40.k}"),
        ("[{name: a, k: {x: [1]}}]", "[{name: a, k: {x: '${%s.k}', y: '${%s.k}'}}]", "text ${v40.k}"),
    ],
)
def test_values_that_double_themselves(tmp_path: Path, first: str, later: str, used: str) -> None:
    text = BASE.replace("size: 2", f"size: 2, metadata: {{x: '{used}'}}") + f"matrix:\n  v0: {first}\n"
    text += "".join(f"  v{i}: {later.replace('%s', f'v{i - 1}')}\n" for i in range(1, 41))
    assert "what ${…} inserts expands to more than 10,000,000 characters" in refused(tmp_path, text)


def nested(variables: int, deep: int, used: str) -> str:
    """A spec whose swept values nest through one another: `deep` brackets for each variable."""
    text = BASE.replace("size: 2", f"size: 2, metadata: {{x: '{used}'}}") + "matrix:\n  v0: [{name: a, k: x}]\n"
    value = "[" * deep + "'${v%d.k}'" + "]" * deep
    return text + "".join(f"  v{i}: [{{name: a, k: {value % (i - 1)}}}]\n" for i in range(1, variables))


@pytest.mark.parametrize("used", ["${v39.k}", "text ${v39.k}"])
def test_values_that_nest_in_one_another(tmp_path: Path, used: str) -> None:
    report = refused(tmp_path, nested(40, 30, used))
    assert "s.yaml:8:3: what ${…} inserts is nested deeper than 40 levels" in report


def test_data_of_thousands_of_levels() -> None:
    data: dict[str, object] = {}
    for _ in range(3000):
        data = {"a": data}
    with pytest.raises(SpecError, match=r"^a spec is plain data: maximum recursion depth"):
        spec.parse(data, builtin())


def test_a_long_text_inserted_often(tmp_path: Path) -> None:
    often = "${a}" * 1000
    text = BASE.replace("size: 2", f"size: 2, metadata: {{x: '{often}'}}") + f"matrix: {{a: ['{'x' * 100_000}']}}\n"
    assert "s.yaml:7:9: what ${…} inserts expands to more than" in refused(tmp_path, text)


@pytest.mark.slow
def test_fifty_thousand_keys(tmp_path: Path) -> None:
    report = refused(tmp_path, BASE + "".join(f"key{i}: 1\n" for i in range(50_000)))
    assert report.startswith("/s.yaml:24998:") and "holds more than 50,000 keys and values" in report


def test_of_thousands_of_mistakes_the_first_are_reported(tmp_path: Path) -> None:
    for text in (
        BASE + "".join(f"key{i}: 1\n" for i in range(2000)),
        BASE.replace("size: 2", ", ".join(f"key{i}: 1" for i in range(2000))),
    ):
        report = refused(tmp_path, text)
        assert "'key29'" in report and "'key30'" not in report and "… and more; these are the first 30" in report


def test_thousands_of_templates_for_each_row(tmp_path: Path) -> None:
    labels = ", ".join(f"l{i}: expression" for i in range(201))
    for parameter in (f"labels: {{{labels}}}", f"process_docs: {{set: {{{labels}}}}}"):
        report = refused(tmp_path, BASE.replace("size: 2", parameter))
        assert "s.yaml:2:" in report and "201 templates for each row; at most 200" in report


def test_many_conditions_are_a_spec_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        BASE.replace("size: 2", "terms: '${a}', digits: '${b}'")
        + f"matrix: {{a: {list(range(2, 42))}, b: {list(range(1, 11))}}}\n"
    )
    assert len(spec.load(str(tmp_path / "s.yaml"), builtin()).variants()) == 400


def test_what_is_too_long_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="larger than 1,000,000 bytes"):
        yamls.parse("a: " + "x" * yamls.MAX_BYTES, "x")
