"""A Spark with settings of its own, in a process of its own (`python -m`), whose argument is the question.

A process has one Spark: what is set when it starts, such as its workers, cannot be tried beside another. The
question and the answer, in the last line, are JSON.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from sourdine.core.errors import SourdineError
from sourdine.frames import PrivacyUnit
from sourdine.tables import Table
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits

ROOT = Path(__file__).parents[3]
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.log.level": "OFF",  # the cluster's own logs, which share a terminal with a local session
}
_SIZE, _HOT = 1000, 900  # records, and those of one unit and one key
_MANY = 20_000  # groups, whose answer is longer than a small limit


class Case(NamedTuple):
    """A table and what is asked of it."""

    table: pa.Table
    unit: PrivacyUnit
    columns: dict[str, Any]
    ask: list[Any]
    by: list[str]
    delta: float = 0.0

    def values(self, table: object) -> str:
        """The answers, from the same seed, of this table wherever it is."""
        opened = Table(table, unit=self.unit, columns=self.columns)
        asked = {"name": "asked", "ask": self.ask, "by": self.by}
        plan = opened.plan(asked, epsilon=20, delta=self.delta or None, quality=False)
        release = _carry_out(plan, opened.source, bits=SeededBits(3))
        return repr(
            [
                (list(each.keys), *(part.tolist() for part in vars(each.estimate).values()))
                for each in release.values.each
            ]
        )


def _table(size: int, hot: int, keys: int) -> pa.Table:
    """Records of which the first belong to one unit and have one key."""
    places = range(size)
    return pa.table(
        {
            "who": pa.array([0 if i < hot else i for i in places], pa.int64()),
            "k": pa.array([0 if i < hot else i % keys for i in places], pa.int64()),
            "town": pa.array(["0" if i < hot else str(i % keys) for i in places]),
            "x": pa.array([float(i * 37 % 101) for i in places]),
        }
    )


def _case(table: pa.Table, unit: PrivacyUnit, keys: int, ask: list[Any]) -> Case:
    columns = {
        "k": {"type": "category", "keys": list(range(keys))},
        "x": {"type": "real", "lower": 0.0, "upper": 100.0, "granularity": 0.5},
    }
    return Case(table, unit, columns, ask, ["k"])


_PERSON = PrivacyUnit(name="person")
_WHOLE = PrivacyUnit(name="person", column="who", max_rows=_SIZE, max_groups=100)
_CUT = PrivacyUnit(name="person", column="who", max_rows=5, max_groups=1)
_MEDIAN = {"quantiles": "x", "levels": [0.5], "method": "tree"}
CASES = {
    "records": _case(_table(_SIZE, _HOT, 7), _PERSON, 7, ["count", {"mean": "x"}, _MEDIAN]),
    "units": _case(_table(_SIZE, _HOT, 7), _WHOLE, 7, ["count", "units", {"mean": "x"}]),
    # the hot unit has one key, so that it does not matter which of its records are left
    "cut": _case(_table(_SIZE, _HOT, 1), _CUT, 1, ["count", "units"]),
    "private keys": Case(
        _table(_SIZE, _HOT // 2, 7), _PERSON, {"town": {"type": "text"}}, ["count"], ["town"], delta=1e-6
    ),
    "many records": _case(_table(_SIZE * 100, _HOT * 100, 7), _PERSON, 7, ["count", {"mean": "x"}, _MEDIAN]),
    "many groups": _case(_table(_MANY, 0, _MANY), _PERSON, _MANY, ["count"]),
}


def asked(
    cases: list[str],
    *,
    connect: bool = False,
    master: str = "local[2]",
    room: str = "1g",
    home: Path | None = None,
) -> Any:
    """What such a Spark answers, by case, and all that its process printed besides."""
    settings = {"spark.driver.maxResultSize": room}
    question = {"cases": cases, "connect": connect, "master": master, "settings": settings}
    done = subprocess.run(
        [sys.executable, "-m", "tests.frames.engines.spark_process", json.dumps(question)],
        cwd=ROOT,
        env=os.environ | ({"SPARK_HOME": str(home)} if home else {}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *printed, last = done.stdout.strip().splitlines()
    return json.loads(last), "\n".join([*printed, done.stderr])


def _session(question: dict[str, Any]) -> Any:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    master = question["master"]
    builder = builder.remote(master) if question["connect"] else builder.master(master)
    for name, value in {**_SETTINGS, **question["settings"]}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _answer(case: str, session: Any) -> str:
    if case == "failing":
        text = "SELECT CAST(IF(id = 3, 'secret', '1') AS INT) AS x FROM range(5)"
        columns = {"x": {"type": "integer", "lower": 0, "upper": 9}}
        return Case(pa.table({}), _PERSON, columns, ["count", {"sum": "x"}], []).values(session.sql(text))
    return CASES[case].values(session.createDataFrame(CASES[case].table))


def main() -> None:
    question = json.loads(sys.argv[1])
    answers = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark warns of the pandas that is installed
        session = _session(question)
        kind = type(session).__module__
        for case in question["cases"]:
            try:
                answers[case] = _answer(case, session)
            except SourdineError as error:
                answers[case] = str(error)
        session.stop()
    print(json.dumps({"kind": kind, **answers}))


if __name__ == "__main__":
    main()
