"""What all tests share: properties without a deadline, and one Spark on this machine."""

import shutil
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# how long an example takes hangs on what else the machine does: it says nothing about the code
# and a change is judged by the same examples each time; the slow tests look for new ones
settings.register_profile("sourdine", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("sourdine")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of Spark that nobody else can reach; without Java or PySpark its tests are skipped."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than such small tables do
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = sql.SparkSession.builder.master("local[2]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
