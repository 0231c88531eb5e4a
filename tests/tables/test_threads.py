"""A table that several threads release from at once publishes the answer to each plan, and to no other."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sourdine import Ledger, Table
from sourdine.tables import Query

LARGE = 1_000_000
COLUMNS = {
    "x": {"type": "real", "lower": 0, "upper": 1},
    "pay": {"type": "real", "lower": 0, "upper": LARGE},
}


def _source(way: str, frame: pd.DataFrame, folder: Path) -> object:
    if way == "csv":
        frame.to_csv(folder / "people.csv", index=False)
        return folder / "people.csv"
    if way == "parquet":
        frame.to_parquet(folder / "people.parquet")
        return folder / "people.parquet"
    return frame


def _check(folder: Path, way: str, rows: int, releases: int, *, quality: bool) -> None:
    dice = np.random.default_rng(1)
    frame = pd.DataFrame({"x": dice.random(rows), "pay": dice.random(rows) * LARGE})
    table = Table(_source(way, frame, folder), unit="person", columns=COLUMNS)
    ledger = Ledger.create(folder / "ledger", unit="person", epsilon=10 * releases)
    plans = {
        name: table.plan(Query.read({"name": name, "ask": [{"sum": name}]}), epsilon=1, quality=quality)
        for name in COLUMNS
    }

    def release(number: int) -> tuple[str, float]:
        name = list(COLUMNS)[number % 2]
        (answer,) = table.release(plans[name], ledger, purpose=name)
        return name, float(answer.estimate.value[0])

    with ThreadPoolExecutor(3) as threads:
        released = list(threads.map(release, range(releases)))
    for name, value in released:
        # 60 times the scale of the noise on the Bernstein sums, which is at most 2 widths
        width = COLUMNS[name]["upper"]
        assert value == pytest.approx(frame[name].sum(), abs=120 * float(str(width)))


@pytest.mark.parametrize("quality", [False, True])
def test_threads_publish_their_own_sums(tmp_path: Path, quality: bool) -> None:
    _check(tmp_path, "pandas", 2_000, 16, quality=quality)


@pytest.mark.slow
@pytest.mark.parametrize("quality", [False, True])
@pytest.mark.parametrize("way", ["pandas", "csv", "parquet"])
def test_threads_publish_their_own_sums_600_times(tmp_path: Path, way: str, quality: bool) -> None:
    _check(tmp_path, way, 20_000, 600, quality=quality)
