import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.finding import findings
from benchmarks.growth.cases import write_table
from benchmarks.growth.measure import private
from benchmarks.spark.findings import Measured, show
from benchmarks.spark.kinds import KINDS
from benchmarks.spark.work import Work, work_of


def told(*measures: Measured) -> list[tuple[str, str]]:
    console = Console(file=io.StringIO(), width=200)
    show(measures, console)
    assert isinstance(console.file, io.StringIO)
    return findings(console.file.getvalue())


def work(seconds: float, shuffles: int) -> Work:
    return Work(seconds=seconds, jobs=2, stages=2, shuffles=shuffles, shuffled=10, brought=10)


def measured(rows: int, seconds: float, shuffles: int = 1) -> Measured:
    return Measured(kind="declared", rows=rows, plain=work(1, 1), private=work(seconds, shuffles))


def test_shuffles_and_growth_are_judged() -> None:
    marks = [mark for mark, _ in told(measured(10**7, 1.5), measured(10**8, 17))]
    assert marks == ["met", "met", "better elsewhere"]
    marks = [mark for mark, _ in told(measured(10**7, 1.5, shuffles=2), measured(10**8, 19))]
    assert marks == ["missed", "missed", "better elsewhere"]


def test_growth_is_not_judged_where_starting_jobs_takes_most_of_the_time() -> None:
    assert [mark for mark, _ in told(measured(10**6, 0.1), measured(10**7, 5))] == ["met", "better elsewhere"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, which is not installed")
@pytest.mark.parametrize("name", KINDS)
def test_a_release_has_no_more_shuffles_than_it_needs(name: str, spark: Any, tmp_path: Path) -> None:
    """A small table has as many as a large one; what comes back are groups, or values that there are."""
    kind = KINDS[name]
    case = kind.case(5000)
    write_table(tmp_path / case.file, case)
    frame = spark.read.parquet(str(tmp_path / case.file))
    frame.createOrReplaceTempView("t")
    assert len(spark.sql(kind.plain).collect()) == 100
    found = work_of(spark, private(frame, case))
    assert found.jobs >= 1
    assert 1 <= found.shuffles <= kind.shuffles
