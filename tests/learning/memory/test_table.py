from dataclasses import replace
from pathlib import Path

import pytest

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.learning.memory.lines import (
    BACKWARD,
    LEFT,
    PEAK,
    RESIDENT,
    added,
    fits,
    jumps,
    our_formula,
    source_total,
)
from sourdine.learning.memory.model import FIRST, MemoryLine, Stage
from sourdine.learning.memory.table import (
    COLUMNS,
    MeasuredMemory,
    MeasurementFile,
    MemoryCase,
    cells,
    grid,
    in_fresh_process,
    measure_all,
)

CASE = MemoryCase(hidden=8, batch=2, reduce=1, private=True, side=32)


def made(case: MemoryCase, *, jump_at: int | None = None, resident: bool = True) -> MeasuredMemory:
    """A case that takes 100 bytes a hidden unit, twice for gradients, and 10 an example."""
    model, batch = 100 * case.hidden, 10 * case.batch // case.reduce**2
    extra = 500 if jump_at is not None and case.batch > jump_at else 0
    live = dict(zip(FIRST, (model, model + batch, 2 * model + batch, 4 * model + batch + extra), strict=True))
    most = {stage: much + 3 * case.batch for stage, much in live.items()}
    top = max(most.values())
    return MeasuredMemory(
        case=case,
        live=live,
        most=most,
        before=50 if resident else None,
        resident=(2 * top,) if resident else (),
        repeats=1,
    )


def test_the_source_s_columns_come_first() -> None:
    assert COLUMNS[:8] == (
        "Hidden_Units",
        "Batch_size",
        "Fact",
        "Differential_Privacy",
        "Mem_Model_Loaded",
        "Mem_Images_Loaded",
        "Mem_Loss_Gradient",
        "Mem_Model_Computed",
    )
    assert cells(made(CASE))[:8] == ("8", "2", "1", "Y", "800", "820", "1620", "3220")


@pytest.mark.parametrize("resident", [True, False])
def test_rows_come_back_as_they_were(tmp_path: Path, resident: bool) -> None:
    rows = MeasurementFile(tmp_path / "memory.csv")
    row = made(CASE, resident=resident)
    rows.add(row)
    (again,) = MeasurementFile(tmp_path / "memory.csv").rows
    assert (again.case, again.live, again.most) == (row.case, row.live, row.most)
    assert (again.before, again.middle, again.repeats) == (row.before, row.middle, row.repeats)


def test_nothing_is_measured_twice(tmp_path: Path) -> None:
    path = tmp_path / "memory.csv"
    done: list[MemoryCase] = []

    def note(case: MemoryCase) -> MeasuredMemory:
        done.append(case)
        return made(case)

    def trial(case: MemoryCase) -> MeasuredMemory:
        if len(done) == 3:
            raise SourdineError("killed")
        return note(case)

    cases = grid([8], [2, 4, 8], [1], side=32)
    with pytest.raises(SourdineError, match="killed"):
        measure_all(cases, MeasurementFile(path), trial=trial)
    text = path.read_text()
    path.write_text(text + text.splitlines()[-1][:20])  # cut off half-way through a row
    done.insert(0, CASE)
    rows = MeasurementFile(path)
    assert [row.case for row in rows.rows] == cases[:3]
    measure_all(cases, rows, trial=note)
    assert done[1:] == cases
    assert [row.case for row in MeasurementFile(path).of(cases)] == cases
    assert rows.missing(cases) == []
    assert rows.missing(cases, repeats=2) == cases


def test_repeats_keep_the_spread_of_the_process(tmp_path: Path) -> None:
    sizes = iter((70, 50, 90))
    rows = MeasurementFile(tmp_path / "memory.csv")
    measure_all(
        [CASE], rows, repeats=3, trial=lambda case: replace(made(case), resident=(next(sizes),), before=40)
    )
    (row,) = MeasurementFile(tmp_path / "memory.csv").rows
    assert (row.resident, row.middle, row.before, row.repeats) == ((50, 70, 90), 70, 40, 3)


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("name,age\nA,3\n")
    with pytest.raises(InvalidParameter, match="something else"):
        MeasurementFile(path)
    assert path.read_text() == "name,age\nA,3\n"


def test_a_broken_line_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "memory.csv"
    rows = MeasurementFile(path)
    rows.add(made(CASE))
    path.write_text(path.read_text().replace("8,2,1", "8,two,1"))
    with pytest.raises(InvalidParameter, match="line 2"):
        MeasurementFile(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("hidden", 0), ("batch", 0), ("reduce", 2), ("side", 31), ("depth", 19), ("optimizer", "lbfgs")],
)
def test_bad_cases_name_what_is_wrong(name: str, value: object) -> None:
    with pytest.raises(InvalidParameter, match=f"'{name}'"):
        replace(CASE, **{name: value})  # type: ignore[arg-type]


def test_lines_are_found_and_jumps_too() -> None:
    cases = grid([8], [4, 8, 15, 16, 17, 31, 32, 33], [1], side=32)
    smooth = fits(map(made, cases))
    assert {fit.quantity for fit in smooth} == {LEFT, BACKWARD, PEAK, RESIDENT}
    for fit in smooth:
        wanted = {
            LEFT: MemoryLine(3200, 10),
            BACKWARD: MemoryLine(1600, 13),
            PEAK: MemoryLine(3200, 13),
            RESIDENT: MemoryLine(6400, 26),
        }[fit.quantity]
        assert fit.line.fixed == pytest.approx(wanted.fixed)
        assert fit.line.each == pytest.approx(wanted.each)
        assert fit.worst < 1e-9
    found = jumps(smooth)
    assert {(jump.before, jump.after) for jump in found} == {(15, 16), (16, 17), (31, 32), (32, 33)}
    assert max(abs(jump.extra) for jump in found) < 1e-6
    rough = jumps(fits(made(case, jump_at=32) for case in cases))
    worst = max((jump for jump in rough if jump.quantity == LEFT), key=lambda jump: jump.extra)
    assert (worst.before, worst.after) == (32, 33)
    assert worst.extra == pytest.approx(500, rel=0.05)


def test_our_formula_has_the_terms_of_the_bytes_and_no_others() -> None:
    rows = [made(case) for case in grid([8, 64], [16, 32, 64], [1, 2], side=64)]
    model = our_formula(rows, Stage.MODEL, private=True)
    assert model.terms == {"HU": pytest.approx(100)}
    assert model.words == "100 HU"
    images = our_formula(rows, Stage.BATCH, private=True)
    assert images.terms == {"BS/F²": pytest.approx(10)}
    assert our_formula(rows, Stage.STEP, private=False).worst < 1
    assert added(rows[0], Stage.GRADIENT) == 800


def test_the_source_s_formulas_come_to_what_it_printed() -> None:
    large = MemoryCase(hidden=512, batch=16, reduce=2, private=True)
    plain = replace(large, private=False)
    assert (101_387 * 26 + 60_750_000) == 63_386_062  # as in its table
    more = source_total(large) - source_total(plain)
    assert more == pytest.approx(6.15e6 + 512 * (108_500 * 18 - 224_105))


@pytest.mark.slow
def test_a_fresh_process_measures_what_arithmetic_says() -> None:
    found = in_fresh_process(MemoryCase(hidden=8, batch=2, reduce=2, private=True, side=64, classes=3))
    frozen, head = 4 * 14_714_688, 4 * (25_088 * 8 + 8 + 8 * 3 + 3)
    batch = 2 * (3 * 32 * 32 * 4 + 8)
    assert found.live[Stage.MODEL] == frozen + head
    assert found.live[Stage.BATCH] == frozen + head + batch
    assert found.live[Stage.GRADIENT] == frozen + 2 * head + batch
    assert 0 <= found.live[Stage.STEP] - (frozen + 4 * head + batch) <= 64  # Adam counts its steps
    assert all(found.most[stage] >= found.live[stage] for stage in FIRST)


@pytest.mark.slow
def test_a_process_that_fails_is_told() -> None:
    with pytest.raises(SourdineError, match="could not be measured"):
        in_fresh_process(MemoryCase(hidden=1, batch=1 << 20, reduce=1, private=True, side=4096))
