import json
from decimal import Decimal
from pathlib import Path

import pytest

from sourdine.accounting import Bracket
from sourdine.core.display import Figure
from sourdine.core.serialization import decoded, encoded
from sourdine.report import Section, TextTable
from sourdine_reproduction import Experiment, Result, Settings, Standing, answer, cache, judge
from sourdine_reproduction.cache import FOLDER, forget, run_or_read

RESULT = Result(
    name="toy",
    title="A toy",
    lead="It is small.",
    verdicts=(
        judge("thesis.steps", finding="2", standing=Standing.WRONG, why="So."),
        answer("slides.total", finding="9"),
    ),
    sections=(
        Section(
            title="All",
            paragraphs=("Words.",),
            points=("A point.",),
            links=(("Elsewhere", "elsewhere.html"),),
            tables=(
                TextTable(
                    name="cells",
                    title="Cells",
                    columns=("a", "b", "c", "d", "e", "f"),
                    rows=(("x", 1, 0.1, Decimal("1.50"), Bracket(0.1, 0.2), None),),
                    note="A note.",
                ),
            ),
            figures=(Figure(title="Chart", chart={"mark": "line", "width": 100}, note="Look."),),
        ),
    ),
)


def toy(seen: list[Settings]) -> Experiment:
    def run(settings: Settings) -> Result:
        seen.append(settings)
        return RESULT

    return Experiment(name="toy", title="A toy", run=run)


def test_json_gives_an_equal_result() -> None:
    assert decoded(Result, json.loads(json.dumps(encoded(RESULT))), strict=True) == RESULT


def test_what_was_done_is_not_done_twice(tmp_path: Path) -> None:
    seen: list[Settings] = []
    first = run_or_read(toy(seen), Settings(), tmp_path)
    again = run_or_read(toy(seen), Settings(), tmp_path)
    assert (first, again) == ((RESULT, False), (RESULT, True))
    assert len(seen) == 1


@pytest.mark.parametrize("other", [Settings(quick=True), Settings(data=Path("elsewhere"))])
def test_other_settings_are_run_anew(tmp_path: Path, other: Settings) -> None:
    seen: list[Settings] = []
    run_or_read(toy(seen), Settings(), tmp_path)
    assert not run_or_read(toy(seen), other, tmp_path)[1]


def test_other_code_is_run_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []
    run_or_read(toy(seen), Settings(), tmp_path)
    monkeypatch.setattr(cache, "_code", lambda: "changed")
    assert not run_or_read(toy(seen), Settings(), tmp_path)[1]


@pytest.mark.parametrize("damage", ["", "{", '{"mark": 1}', "[]"])
def test_a_damaged_file_is_done_anew(tmp_path: Path, damage: str) -> None:
    seen: list[Settings] = []
    run_or_read(toy(seen), Settings(), tmp_path)
    (tmp_path / FOLDER / "toy.json").write_text(damage)
    assert run_or_read(toy(seen), Settings(), tmp_path) == (RESULT, False)


def test_what_is_forgotten_is_done_anew(tmp_path: Path) -> None:
    seen: list[Settings] = []
    run_or_read(toy(seen), Settings(), tmp_path)
    forget(toy(seen), tmp_path)
    forget(toy(seen), tmp_path)
    assert not run_or_read(toy(seen), Settings(), tmp_path)[1]
