import ast
import io
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sourdine.cli
from sourdine.cli.shared import show
from sourdine.cli.shared.app import BAD_INPUT
from sourdine.cli.shared.show import tame_json
from sourdine.core.text import tame
from tests.cli.table_case import Case, build, run

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b31m\u202e\u2066\u200b\x08\x7f"
TEXTS = st.text(
    st.one_of(st.sampled_from("\x1b\x9b\x00\x7f\r\n\t\u202e\u2066\u200d\xa0\U000e0001"), st.characters())
)


def obeyed(text: str) -> list[str]:
    """What a terminal might take for a command."""
    return [
        letter
        for letter in text.replace("\n", "")
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    ]


@given(TEXTS)
def test_no_text_is_a_command(text: str) -> None:
    made = tame(text)
    assert obeyed(made) == []
    assert "\n" not in made
    assert tame(made) == made
    assert all(letter in made for letter in text if letter.isprintable())


@given(TEXTS)
def test_a_document_says_the_same_and_is_no_command(text: str) -> None:
    for narrow in (True, False):
        written = json.dumps({"a": text, text: 1}, indent=2, ensure_ascii=narrow)
        made = tame_json(written)
        assert json.loads(made) == json.loads(written)
        assert obeyed(made) == []


def test_columns_stand_under_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    show.table((f"na{EVIL}me", "count"), [(f"a{EVIL}", "1"), ("ü 人口", "2")], numbers=("count",))
    told = capsys.readouterr().out
    assert obeyed(told) == []
    wide = [
        sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)
        for line in told.splitlines()
    ]
    assert len(set(wide)) == 1


def test_all_ways_to_show_are_tamed(capsys: pytest.CaptureFixture[str]) -> None:
    show.line(EVIL)
    show.lines(f"a\n{EVIL}")
    show.say(EVIL, mark="NOTE: ")
    show.warn(EVIL)
    show.document({EVIL: EVIL})
    list(show.progress(EVIL, [1]))
    told = capsys.readouterr()
    assert obeyed(told.out + told.err) == []
    assert r"\x1b[2J" in told.out
    assert r"\x1b[2J" in told.err


def test_nothing_is_printed_but_by_show() -> None:
    """A verb that prints by itself would let a terminal obey what is in names."""
    free = []
    for path in sorted(Path(sourdine.cli.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in ("print", "typer.echo", "sys.stdout.write", "sys.stderr.write")
                and ast.unparse(node) != "print(ctx.get_help())"  # our own words, with colours
            ):
                free.append(path.name)
    assert free == ["show.py"] * 2


def evil_case(folder: Path) -> Case:
    """Names that are commands to a terminal and formulas to a spreadsheet."""
    place = folder / "in\x1b[31m"
    place.mkdir()
    case = build(place, epsilon="10")
    case.change('name = "people"', f"name = {json.dumps('=1+1 ' + EVIL)}")
    case.change('name = "ages"', 'name = "@SUM(A1)"')
    case.change('keys = ["f", "m"]', 'keys = ["f", "=m", "\\u001b[2J"]')
    return case


def test_no_verb_of_tables_lets_a_terminal_obey(tmp_path: Path) -> None:
    case = evil_case(tmp_path)
    out = case.folder / "out\x1b[32m"
    told = [
        run("plan", case.spec),
        run("plan", case.spec, "--json"),
        run("plan", case.spec, "--dry-run"),
        run("release", case.spec, "-o", out),
        run("release", case.spec, "-o", out),
        run("release", case.folder / "none\x1b[33m.toml"),
        run("certificate", "verify", out, "--ledger", case.ledger),
        run("ledger", "history", case.ledger),
        run("ledger", "history", case.ledger, "--json"),
        run("ledger", "status", case.ledger),
        run("ledger", "export", case.ledger, "-o", case.folder / "spends.csv"),
        run("report", out),
        run("check", case.spec),
        run("plan", case.spec, "--error", f"{EVIL}=5"),
        run("none\x1b[34m"),
    ]
    codes = [code for code, _, _ in told]
    assert codes == [0, 0, 0, 0, BAD_INPUT, BAD_INPUT, 0, 0, 0, 0, 0, 0, 0, BAD_INPUT, BAD_INPUT]
    for _, shown, complaint in told:
        assert obeyed(shown + complaint) == []
    for name in ("answers.csv", "quality.csv"):
        for row in io.StringIO((out / name).read_text(encoding="utf-8")):
            assert not any(cell.lstrip('"').startswith(("=", "@", "+")) for cell in row.split(","))
    assert "'=1+1" in (out / "answers.csv").read_text(encoding="utf-8")


def test_no_formula_comes_out_of_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sourdine.accounting.ledger.charge._user", lambda: "=cmd|'/c calc'!A1")
    case = evil_case(tmp_path)
    assert run("release", case.spec, "-o", tmp_path / "out", "--no-report")[0] == 0
    assert run("ledger", "export", case.ledger, "-o", tmp_path / "spends.csv")[0] == 0
    told = (tmp_path / "spends.csv").read_text(encoding="utf-8")
    assert ",=cmd" not in told
    assert ",'=cmd|'/c calc'!A1," in told
