"""Spark as users have it: by Connect, with two workers, with little room on the driver, with skewed data."""

import shutil
from pathlib import Path

import pytest

from tests.frames.engines.spark_process import CASES, asked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, which is not installed"),
]
SKEWED = ["records", "units", "cut", "private keys"]


@pytest.fixture(autouse=True)
def _pyspark() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")


def elsewhere(cases: list[str]) -> dict[str, str]:
    """The same, from DuckDB."""
    return {case: CASES[case].values(CASES[case].table) for case in cases}


def test_a_session_by_connect_has_the_values_of_elsewhere() -> None:
    """And what goes wrong there is told without its words."""
    for module in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        pytest.importorskip(module, reason="Spark Connect needs more: pip install 'pyspark[connect]'")
    found, printed = asked([*SKEWED, "failing"], connect=True)
    assert found["kind"] == "pyspark.sql.connect.session"
    assert {case: found[case] for case in SKEWED} == elsewhere(SKEWED)
    assert "could not be read to its end" in found["failing"]
    assert "secret" not in found["failing"] + printed


def test_two_workers_have_the_values_of_elsewhere(tmp_path: Path) -> None:
    """One unit and one key have most of the records. Workers write where their Spark is: here, by links."""
    for each in Path(pytest.importorskip("pyspark").__file__).parent.iterdir():
        if each.name != "work":
            (tmp_path / each.name).symlink_to(each)
    found, _ = asked(SKEWED, master="local-cluster[2,1,1024]", home=tmp_path)
    workers = {path.name for path in tmp_path.glob("work/app-*/*")}
    assert {"0", "1"} <= workers
    assert {case: found[case] for case in SKEWED} == elsewhere(SKEWED)


def test_what_comes_back_grows_with_groups_and_not_with_records() -> None:
    """A driver that takes 64 kB takes any number of records; that it is too little is said in our words."""
    fitting = [*SKEWED, "many records"]
    found, printed = asked([*fitting, "many groups", "failing"], room="64k")
    assert {case: found[case] for case in fitting} == elsewhere(fitting)
    assert "could not be read to its end" in found["many groups"]
    assert "spark.driver.maxResultSize" in found["many groups"]
    assert "could not be read to its end" in found["failing"]
    assert "secret" not in found["failing"] + printed
