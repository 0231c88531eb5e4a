"""OpenDP on a lazy Polars frame over the same file: count, sum and mean by key, then the histogram."""

import time
import warnings
from typing import Any

import opendp.prelude as dp
import polars as pl

from benchmarks.peers import Answer, Question, serve, versions
from benchmarks.tables.cases import EDGES, EPSILON, KEYS, LOWER, UPPER

dp.enable_features("contrib")
warnings.simplefilter("ignore")


def answer(question: Question) -> Answer:
    """Seconds of the two queries under one budget."""
    start = time.perf_counter()
    frame = pl.scan_parquet(question["path"]).select("k", "x")
    keys = pl.LazyFrame({"k": pl.Series(range(KEYS), dtype=pl.Int32)})
    rows = question["rows"]
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPSILON),
        split_evenly_over=2,
        margins=[
            dp.polars.Margin(max_length=rows),
            dp.polars.Margin(by=["k"], max_length=rows, max_groups=KEYS, invariant="keys"),
        ],
    )
    value: Any = pl.col("x").fill_nan(0.0).fill_null(0.0)
    by_key = (
        context.query()
        .group_by("k")
        .agg(dp.len(), value.dp.sum((LOWER, UPPER)).alias("sum"), value.dp.mean((LOWER, UPPER)).alias("mean"))
    )
    found = by_key.release().collect()
    bins = pl.col("x").cut([float(edge) for edge in EDGES[1:-1]]).to_physical().alias("bin")
    places = pl.LazyFrame({"bin": pl.Series(range(len(EDGES) - 1), dtype=pl.UInt32)})
    histogram = context.query().with_columns(bins).group_by("bin").agg(dp.len()).with_keys(places)
    binned = histogram.release().collect()
    seconds = time.perf_counter() - start
    assert found.height == keys.collect().height
    assert binned.height == len(EDGES) - 1
    return {"seconds": seconds, "version": versions("opendp")["opendp"]}


if __name__ == "__main__":
    serve(answer)
