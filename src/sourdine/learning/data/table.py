"""Records of a table as rows of numbers, by what is declared of its columns and by nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable
from sourdine.core.text import read_toml
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.quality import ABSENT, cell_place, read_cells
from sourdine.frames.schema import Category, Column, Flag, Integer, Real, Schema, span
from sourdine.frames.source import AS_IT_IS, open_source
from sourdine.learning.data.labelled import Labelled


def read_table(
    table: object,
    columns: Mapping[str, Any] | Schema,
    target: str,
    text: TextFormat | Mapping[str, Any] = AS_IT_IS,
) -> Labelled:
    """The records of a file or a frame; `target` is the declared column of keys that is to be learnt.

    Numbers go from -1 at their lower bound to 1 at the upper; every key of a category is 1 or 0; a flag is 1
    or -1. A record that lacks a cell is left out, unless the declaration says what stands for it.

    >>> import pyarrow as pa
    >>> columns = {"age": {"type": "integer", "lower": 0, "upper": 100}, "ill": {"type": "flag"}}
    >>> read_table(pa.table({"age": [50, 75], "ill": [True, False]}), columns, "ill").inputs.tolist()
    [[0.0], [0.5]]
    """
    schema = columns if isinstance(columns, Schema) else Schema.read(columns)
    if not isinstance(schema.columns.get(target), Category | Flag):
        raise InvalidParameter(
            f"The column '{target}' cannot be learnt, because only keys can: those of a category or a flag. "
            "Declare it as one of them, or take another column."
        )
    classes = schema.keys(target)
    if len(classes) < 2:
        raise InvalidParameter(
            f"The column '{target}' has one key, so there is nothing to learn. Declare all."
        )
    inputs = {name: column for name, column in schema.columns.items() if name != target}
    if not inputs:
        raise InvalidParameter("No column is declared beside the target, so there is nothing to learn from.")
    if texts := schema.open(list(schema.columns)):
        raise InvalidParameter(
            f"The column '{texts[0]}' is declared as text, and only known keys can be learnt from. "
            "Declare it as a category with its keys, or leave it out."
        )
    source = open_source(table, schema, text=text, spark=False)
    cells = read_cells(source, {name: cell_place(source, name) for name in schema.columns})
    places = {name: np.ma.filled(each.astype(np.int64), ABSENT) for name, each in cells.items()}
    whole = np.logical_and.reduce([each >= 0 for each in places.values()])
    if not whole.any():
        raise InvalidParameter("No record of the table has all declared cells. Check the declarations.")
    rows = np.concatenate([_numbers(places[name][whole], column) for name, column in inputs.items()], axis=1)
    return Labelled(
        torch.from_numpy(rows), torch.from_numpy(places[target][whole]), tuple(str(each) for each in classes)
    )


def read_columns(path: Path) -> Schema:
    """The `[columns]` of a TOML file, as `sourdine init TABLE` writes it."""
    try:
        document = read_toml(path)
    except OSError as problem:
        raise InvalidParameter(
            f"{unreadable(path, problem, 'file of declarations')} Write them with "
            "'sourdine init TABLE', and fill in the columns."
        ) from None
    columns = document.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidParameter(
            f"The file {path} declares no columns. Add a block for each, such as "
            '[columns.age] type = "integer", lower = 0, upper = 120.'
        )
    return Schema.read(columns)


def _numbers(places: NDArray[np.int64], column: Column) -> NDArray[np.float32]:
    if isinstance(column, Category):
        return np.eye(len(column.keys), dtype=np.float32)[places]
    low, high = span(column) if isinstance(column, Integer | Real) else (0, 1)
    return (2 * places[:, None] / (high - low) - 1).astype(np.float32)
