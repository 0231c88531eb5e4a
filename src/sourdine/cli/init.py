"""`sourdine init`: a commented specification to fill in, from the names of a table's columns."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted


def init(
    table: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The specification. Without it: TABLE.toml, here.")
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="The names of the columns of a file without a header, separated by commas."),
    ] = None,
    header: Annotated[
        bool, typer.Option("--header", help="The first line holds names, whatever it looks like.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a specification to fill in. Only names and types of columns are looked at, never a value.

    A first line that looks like a record is not taken for names.

    Examples: sourdine init people.csv -o people.toml · sourdine init visits.csv --names 'day,person,cost'
    """
    from sourdine.tables.draft import draft, read_types
    from sourdine.tables.specification import BLANK

    spec = Path(f"{table.stem}.toml") if output is None else output
    show.check_place(spec)
    text = draft(table, spec, names=names, sure=header)
    try:
        disk.write_whole(spec, text, over=False)
    except FileExistsError:
        raise InvalidParameter(
            f"{spec} exists already and is not written over. Name another file with -o."
        ) from None
    types = read_types(table, names=names, sure=header)
    if as_json:
        show.document({"specification": str(spec), "columns": dict(types), "blank": BLANK})
        return
    show.line(
        f"Wrote {spec}, with {counted(len(types), 'column')} to declare. No value of {table.name} was read."
    )
    show.say(
        f'Fill in every "{BLANK}" from what you know, not from the table. Delete the blocks of columns you '
        f"need not ask about. Then: sourdine plan {show.one_line(str(spec))}"
    )
