"""`sourdine synthesize`: pay, measure, draw, and put the table with all that belongs to it in its place."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.app import Shared, rights
from sourdine.cli.shared.parse import AsJson
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.files import CERTIFICATE, Outbox

if TYPE_CHECKING:
    from sourdine.accounting.certificate import Certificate
    from sourdine.tables.synthetic import SyntheticModel, SyntheticPlan, SyntheticRelease

MODEL, REPORT, TABLE = "model.json", "report.html", "synthetic.csv"
_CELL = 24  # bytes of a cell in a file, at most


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """A synthetic table that was paid for and written."""

    release: "SyntheticRelease"
    certificate: "Certificate"
    files: tuple[Path, ...]


def synthesize(
    ctx: typer.Context,
    *,
    spec: Annotated[Path | None, typer.Argument(help="The specification, a TOML file.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The table, such as out/synthetic.csv, in a folder of its own."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it would cost and need.")] = False,
    report: Annotated[bool, typer.Option(help="Whether to write report.html.")] = True,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Pay from the ledger, then draw a synthetic table: rows like the real ones, of nobody.

    Columns, bins and keys are as declared, and the block [synthetic] says what else is known. Nothing is
    spent if anything is wrong. The charge is on the disk before a record is read. The table, its certificate,
    the noisy counts it was drawn from and a page appear at once, in a folder of their own, or none does.

    Examples: sourdine synthesize people.toml -o published/synthetic.csv · sourdine synthesize people.toml
    --plan · sourdine synthesize evaluate people.toml published/synthetic.csv
    """
    if ctx.invoked_subcommand is not None:
        return
    if spec is None:
        raise InvalidParameter("Say which specification, as in: sourdine synthesize people.toml")
    from sourdine.tables.specification import Specification

    specification = Specification.load(spec)
    if plan:
        _tell(specification.synthetic_plan(), as_json)
        return
    folder, name = place_of(output, spec)
    with rights(shared):
        published = publish(specification, folder, name, report=report)
    if as_json:
        show.document(
            {
                "rows": len(published.release.values),
                "files": [str(path) for path in published.files],
                "certificate": json.loads(published.certificate.to_json()),
            }
        )
        return
    _print(published)


def place_of(output: Path | None, spec: Path) -> tuple[Path, str]:
    """The folder of all files, and the name of the table in it.

    >>> place_of(Path("out/rows.parquet"), Path("people.toml")) == (Path("out"), "rows.parquet")
    True
    >>> place_of(Path("rows.csv"), Path("people.toml")) == (Path("rows"), "rows.csv")
    True
    """
    from sourdine.tables.synthetic.model import check_ending

    if output is None:
        return Path(f"{spec.stem}-synthetic"), TABLE
    if not output.suffix:
        return output, TABLE
    check_ending(output)
    return (Path(output.stem) if output.parent == Path() else output.parent), output.name


def publish(specification: object, folder: Path, name: str, *, report: bool = True) -> PublishedTable:
    """Carry out a specification: everything is checked, then paid, then drawn, then written at once."""
    from sourdine.report.pages.series import synthetic_page
    from sourdine.tables.specification import Specification
    from sourdine.tables.synthetic import synthesize as carry_out

    assert isinstance(specification, Specification)
    plan, source = specification.synthetic_plan(), specification.open()
    names = [name, CERTIFICATE, MODEL, *([REPORT] if report else [])]
    with specification.open_ledger() as ledger, Outbox(folder, names, _room(plan)) as box:
        release = carry_out(plan, source, ledger)
        certificate = release.certificate(ledger)

        def fill(place: Path) -> None:
            nonlocal certificate
            release.values.write(place / name)
            disk.write_new(place / MODEL, model_text(release.model) + "\n")
            if report:
                disk.write_new(place / REPORT, synthetic_page(release, certificate).html())
            certificate = certificate.with_digests(
                [place / each for each in names if each != CERTIFICATE], complete=True
            )
            disk.write_new(place / CERTIFICATE, certificate.to_json() + "\n")

        files = box.deliver(fill, f"The table was paid: line {certificate.number} of the ledger. ")
    return PublishedTable(release=release, certificate=certificate, files=tuple(files))


def model_text(model: "SyntheticModel") -> str:
    """The noisy tables that a synthetic table was drawn from, as JSON: all of them are paid for."""
    parts = [
        {
            "part": part.name,
            "total": part.tree.total,
            "edges": model.edges(part),
            "tables": [
                {
                    "columns": [model.columns[place].name for place in table.columns],
                    "joined": table.joined,
                    "counts": table.values.tolist(),
                    "deviation": float(table.variances.max()) ** 0.5,
                }
                for table in part.tables
            ],
            "cells": {
                column.name: cells.tolist()
                for column, cells in zip(model.columns, part.tree.cells, strict=True)
            },
        }
        for part in model.parts
    ]
    content = {
        "format": 1,
        "target": None if model.target is None else model.target.name,
        "columns": {column.name: list(column.labels) for column in model.all_columns},
        "parts": parts,
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _room(plan: "SyntheticPlan") -> int:
    return (plan.block.rows or plan.size or 0) * len(plan.names) * _CELL


def _tell(plan: "SyntheticPlan", as_json: bool) -> None:
    """What it would cost and need."""
    if as_json:
        show.document(
            {
                "columns": {each.name: each.size for each in plan.columns},
                "target": plan.target,
                "parts": len(plan.parts),
                "bytes": plan.bytes,
                "seconds": plan.seconds,
                "spends": [each.to_json() for each in plan.spends],
            }
        )
        return
    show.say(
        f"A synthetic table of {len(plan.names)} columns at {plan.privacy.words} for each "
        f"{show.one_line(plan.unit.name)}. Nothing is spent."
    )
    noise = plan.noise
    show.table(
        ("column", "cells", "deviation of noise"),
        [
            (
                show.one_line(each.name),
                "chosen" if each.name in plan.texts else f"{each.size:,}",
                f"{float(of_column.sigma):,.1f}",
            )
            for each, of_column in zip(plan.columns, noise.columns, strict=True)
        ],
        numbers=("cells", "deviation of noise"),
    )
    show.say(
        f"Counts of a pair have noise with a standard deviation of {float(noise.pairs.sigma):,.1f}; "
        f"{plan.rounds} pairs are chosen" + (f" in each of {len(plan.parts)} parts." if plan.target else ".")
    )
    show.say(f"It needs about {plan.bytes / 2**20:,.0f} MiB of memory and {plan.seconds:,.1f} seconds.")
    for note in plan.notes:
        show.say(show.one_line(note))


def _print(published: PublishedTable) -> None:
    from sourdine.accounting.ledger.numbers import left_words, readable

    release, certificate = published.release, published.certificate
    assert release.receipt is not None
    show.say(
        f"{len(release.values):,} rows were drawn from {sum(len(p.tables) for p in release.model.parts)} "
        "noisy tables. No row is of anybody."
    )
    for note in release.notes:
        show.say(show.one_line(note), mark="- ")
    show.line(
        f"Paid {certificate.currency} {readable(certificate.price)}, that is epsilon "
        f"{certificate.epsilon:.4g}, for each {show.one_line(certificate.unit)}, line "
        f"{certificate.number} of the ledger. "
        f"{left_words(certificate.left, release.receipt.limit)}"
    )
    for path in published.files:
        show.line(f"  {path}")
