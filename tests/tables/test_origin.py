"""Of a table only names are kept."""

from pathlib import Path

import pyarrow as pa

from sourdine.frames.joins import Join
from sourdine.tables.origin import FRAME, TableOrigin


def test_only_the_names_of_files_are_kept() -> None:
    assert TableOrigin.of("secret place/people.csv").names == ("people.csv",)
    assert TableOrigin.of([Path("a/1.parquet"), "b/2.parquet"]).names == ("1.parquet", "2.parquet")


def test_a_frame_has_no_name() -> None:
    assert TableOrigin.of(pa.table({"a": [1]})) == FRAME
    assert FRAME.names == ("table",)


def test_public_tables_are_told_as_blocks_of_a_specification() -> None:
    joins = (
        Join(name="places", table=Path("far/away.csv"), on=(("town", "name"),), columns=("region",)),
        Join(name="zones", table=pa.table({"z": ["a"], "k": ["b"]}), on=(("z", "z"),), columns=("k",)),
    )
    assert TableOrigin.of("people.csv", joins).joined == {
        "places": {"file": "away.csv", "on": {"town": "name"}, "columns": ["region"]},
        "zones": {"file": "zones", "on": {"z": "z"}, "columns": ["k"]},
    }
