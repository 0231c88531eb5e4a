import csv
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import CsvLog, Execution, Progress, TrainingPlan, fit

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(2))
Y = (X[:, 0] > 0).long()
PLAN = TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=3, batch_size=20)
at = partial(Progress, steps=6, epsilon=0.5)


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_a_run_writes_a_row_for_each_epoch_and_tells_others_too(tmp_path: Path) -> None:
    seen: list[int] = []
    fit(
        nn.Linear(3, 2),
        (X, Y),
        PLAN,
        public=(X, Y),
        metrics={"=size": lambda outputs, targets: len(targets)},
        progress=[CsvLog(tmp_path / "run.csv"), lambda now: seen.append(now.step)],
        execution=Execution(physical_batch_size=20),
    )
    header, *rows = rows_of(tmp_path / "run.csv")
    assert header == ["step", "steps", "epoch", "epsilon", "loss", "accuracy", "'=size"]
    assert [row[0] for row in rows] == ["2", "4", "6"]
    assert all(row[-1] == "40.0" for row in rows)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_steps_that_are_taken_again_have_one_row(tmp_path: Path) -> None:
    log = CsvLog(tmp_path / "run.csv", every=1)
    for step in (1, 2, 3, 4):
        log(at(step=step, epoch=step // 2))
    again = CsvLog(tmp_path / "run.csv", every=1)
    for step in (3, 4, 5, 6):
        again(at(step=step, epoch=step // 2))
    assert [row[0] for row in rows_of(tmp_path / "run.csv")[1:]] == ["1", "2", "3", "4", "5", "6"]


def test_a_new_run_begins_a_new_file_and_nothing_of_time_is_in_it(tmp_path: Path) -> None:
    for _ in range(2):
        log = CsvLog(tmp_path / "run.csv")
        for step in range(1, 7):
            log(at(step=step, epoch=step // 3))
    header, *rows = rows_of(tmp_path / "run.csv")
    assert [row[0] for row in rows] == ["3", "6"]
    assert not {"time", "seconds", "date"} & set(header)


def test_a_log_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="There is no folder"):
        CsvLog(tmp_path / "none" / "run.csv")
    with pytest.raises(InvalidParameter, match="be a function, or several"):
        fit(nn.Linear(3, 2), (X, Y), PLAN, progress=[1])  # type: ignore[list-item]
