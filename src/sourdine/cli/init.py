"""`sourdine init`: a commented specification to fill in, from the names of a table's columns."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli import show
from sourdine.core.digits import counted
from sourdine.core.errors import InvalidParameter


def init(
    table: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The specification. Without it: TABLE.toml, here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a specification to fill in. Only names and types of columns are looked at, never a value.

    Example: sourdine init people.csv -o people.toml
    """
    from sourdine.tables.blank import BLANK
    from sourdine.tables.init import draft, read_types

    spec = Path(f"{table.stem}.toml") if output is None else output
    show.check_place(spec)
    text = draft(table, spec)
    try:
        with spec.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidParameter(
            f"{spec} exists already and is not written over. Name another file with -o."
        ) from None
    types = read_types(table)
    if as_json:
        show.document({"specification": str(spec), "columns": dict(types), "blank": BLANK})
        return
    print(
        f"Wrote {spec}, with {counted(len(types), 'column')} to declare. No value of {table.name} was read."
    )
    show.say(
        f'Fill in every "{BLANK}" from what you know, not from the table. Delete the blocks of columns you '
        f"need not ask about. Then: sourdine plan {show.one_line(str(spec))}"
    )
