"""`sourdine local clean`: a table whose every cell is private, to be handed out."""

import json
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.files import CERTIFICATE, Outbox
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Ledger
    from sourdine.frames.csv.format import TextFormat
    from sourdine.local.cleaner import Cleaner, CleanTable, Gap, Method

CLEANING, REPORT = "cleaning.json", "report.html"
_LEAST, _MOST = Fraction(1, 1 << 16), 1 << 20
_LONGEST = 200  # characters of what the ledger notes
_MOST_LINES = 40


def clean(
    table: Annotated[Path, typer.Argument(help="A .csv, .tsv, .json, .ndjson or .parquet file.")],
    *,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", help="What is declared of its columns. Without it: TABLE.toml, here."),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="For each person: over all columns and records together.")
    ] = None,
    each: Annotated[
        str | None, typer.Option(help="Instead: the epsilon of every column. A person pays them all.")
    ] = None,
    column_epsilon: Annotated[
        list[str] | None,
        typer.Option(help="NAME=EPSILON: that of one column; may be given several times."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Noise of numbers: laplace or staircase, inside the bounds; or unbiased, for means."
        ),
    ] = None,
    gap: Annotated[
        str | None,
        typer.Option(
            help="What becomes of a cell shown as missing: keep it so, drop its record, or draw a value."
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="How many records one person may have. Each costs.")
    ] = None,
    keep_order: Annotated[
        bool,
        typer.Option("--keep-order", help="Do not shuffle the records. Their order is then not protected."),
    ] = False,
    ledger: Annotated[str | None, typer.Option(help="Pay from this ledger before a record is read.")] = None,
    unit: Annotated[str | None, typer.Option(help="Whom it protects, as the ledger names it.")] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Of a CSV or TSV file: utf-8, latin-1, utf-16.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder. Without it: TABLE-clean, here.")
    ] = None,
    report: Annotated[bool, typer.Option(help="Whether to write report.html.")] = True,
    as_json: AsJson = False,
) -> None:
    """Make every cell of every declared column private on its own, so that the table may be handed out.

    Bounds and keys are declared in a TOML file, as 'sourdine init TABLE' writes it, and never taken from the
    data. Columns that are not declared are left out. Nothing is written if anything is wrong.

    Examples: sourdine local clean people.csv --epsilon 4 ·
    sourdine local clean people.csv --spec people.toml --each 1 --column-epsilon diagnosis=2 -o handout ·
    sourdine local clean people.parquet --epsilon 4 --method staircase --ledger people.ledger
    """
    from sourdine.frames.csv.format import TextFormat
    from sourdine.frames.csv.reader import kind_of
    from sourdine.frames.files import ENDINGS
    from sourdine.report.pages.anonymity import cleaning_page

    if kind_of(table) not in ENDINGS:
        listed = ", ".join(sorted(ENDINGS))
        raise InvalidParameter(f"A file ending in '{table.suffix}' is not read. Use one of {listed}.")
    if not table.is_file():
        raise InvalidParameter(f"The file {table} does not exist. Check the path.")
    place = Path(f"{table.stem}.toml") if spec is None else spec
    cleaner, keep, text = _declared(
        place,
        epsilon=epsilon,
        each=each,
        own=column_epsilon or [],
        method=method,
        gap=gap,
        rows=rows,
        unit=unit,
    )
    if encoding is not None:
        text = TextFormat.read({**text.model_dump(), "encoding": encoding})
    folder = Path(f"{table.stem}-clean") if output is None else output
    cleaner.open(table, text)  # every mistake in names and types is found before anything is paid
    names = [table.name, CLEANING, *([REPORT] if report else []), *([] if ledger is None else [CERTIFICATE])]
    if len(set(names)) < len(names):
        raise InvalidParameter(f"The file {table.name} has the name of a file that goes with it. Rename it.")
    with ExitStack() as stack:
        paid = None if ledger is None else stack.enter_context(_open(ledger))
        box = stack.enter_context(Outbox(folder, names))
        purpose = show.one_line(f"cleaned table: {', '.join(cells.name for cells in cleaner.cells)}")[
            :_LONGEST
        ]
        cleaned = cleaner.clean(
            table,
            ledger=paid,
            purpose=purpose,
            keep_order=keep or keep_order,
            text=text,
            watch=lambda columns: show.progress("cleaning", columns),
        )
        certificate = None if paid is None else cleaned.certificate(paid, cleaner.declared)
        troubles: list[Exception] = []

        def fill(place: Path) -> None:
            cleaned.write(place / table.name)
            declared = json.dumps(cleaner.to_json(), indent=1, ensure_ascii=False)
            disk.write_new(place / CLEANING, declared + "\n")
            if report:
                try:
                    page = cleaning_page(table.name, cleaned).html()
                except Exception as problem:  # what is paid for is handed out, even if no page can be drawn
                    troubles.append(problem)
                else:
                    disk.write_new(place / REPORT, page)
            if certificate is not None:
                files_there = [place / name for name in names if (place / name).is_file()]
                tied = certificate.with_digests(files_there, complete=True)
                disk.write_new(place / CERTIFICATE, tied.to_json() + "\n")

        line = (
            "" if certificate is None else f"The cleaning was paid: line {certificate.number} of the ledger. "
        )
        files = box.deliver(fill, line)
    if troubles:
        show.warn(f"The cleaned table is in {folder}, without its page {REPORT}.")
        raise troubles[0]
    if as_json:
        show.document(_plain(cleaned, files))
    else:
        _print(cleaned, files)


def _declared(
    spec: Path,
    *,
    epsilon: str | None,
    each: str | None,
    own: list[str],
    method: str | None,
    gap: str | None,
    rows: int | None,
    unit: str | None,
) -> "tuple[Cleaner, bool, TextFormat]":
    """The cleaner, whether the order is kept, and how the table is encoded, as far as the file says."""
    from sourdine.local.cleaner.specification import CleaningSpecification, parsed
    from sourdine.tables.specification import check_filled

    document = parsed(spec)
    check_filled({name: document[name] for name in ("columns", "clean") if name in document}, spec)
    specification = CleaningSpecification.read(document)
    owner = "local clean"
    epsilons: dict[str, Fraction] = {}
    for name, value in (_pair(owner, text) for text in own):
        if epsilons.setdefault(name, value) != value:
            raise InvalidParameter(
                f"The column '{name}' is given two epsilons with --column-epsilon. Give it one."
            )
    if rows is not None:
        rows = check.integer(owner, "rows", rows, 1, 1 << 20)
    cleaner = specification.cleaner(
        epsilon=None if epsilon is None else number(owner, "epsilon", epsilon, _LEAST, _MOST),
        each=None if each is None else number(owner, "each", each, _LEAST, _MOST),
        own=epsilons,
        method=None if method is None else _method(owner, method),
        gap=None if gap is None else _gap(owner, gap),
        rows=rows,
        unit=unit,
    )
    return cleaner, specification.clean.keep_order, specification.text


def _pair(owner: str, text: str) -> tuple[str, Fraction]:
    name, sign, value = text.rpartition("=")
    if not sign or not name:
        raise check.fail(
            owner, "column-epsilon", "be a name, a sign = and an epsilon", text, "Write age=0.5."
        )
    return name, number(owner, f"column-epsilon of {name}", value, _LEAST, _MOST)


def _method(owner: str, text: str) -> "Method":
    from sourdine.local.cleaner import Method

    kinds = {str(kind): kind for kind in Method}
    if text not in kinds:
        raise check.fail(owner, "method", f"be one of {', '.join(kinds)}", text)
    return kinds[text]


def _gap(owner: str, text: str) -> "Gap":
    from sourdine.local.cleaner import Gap

    kinds = {str(kind): kind for kind in Gap}
    if text not in kinds:
        raise check.fail(owner, "gap", f"be one of {', '.join(kinds)}", text)
    return kinds[text]


def _open(path: str) -> "Ledger":
    from sourdine.accounting.ledger import Ledger

    return Ledger.open(path)


def _print(cleaned: "CleanTable", files: list[Path]) -> None:
    from sourdine.accounting.ledger.numbers import left_words, readable
    from sourdine.local.cleaner.numbers import NumberCells
    from sourdine.report.pages.anonymity import done_table, found_table, gap_words, order_words

    cleaner = cleaned.cleaner
    for table in (done_table(cleaned), found_table(cleaned)):
        show.line(f"{table.title}:")
        show.table(table.columns, table.shown()[:_MOST_LINES], table.numbers)
        if len(table.rows) > _MOST_LINES:
            show.line(f"{len(table.rows) - _MOST_LINES:,} more are in {files[0].parent}.")
    many = "" if cleaner.rows == 1 else f" x {cleaner.rows:,} records"
    sums = " + ".join(readable(cells.price) for cells in cleaner.cells)
    show.say(
        f"EPSILON {readable(cleaner.total)} FOR EACH {show.one_line(cleaner.unit).upper()}"
        f"{f' = ({sums}){many}' if len(cleaner.cells) <= 12 else ''}. Whoever gets the table learns at most "
        "that much about one of them; handing it out again costs nothing more."
    )
    show.say(
        f"{counted(cleaned.size, 'record')}. That number is not hidden, nor that "
        f"somebody is among them. A {show.one_line(cleaner.unit)} with more than "
        f"{counted(cleaner.rows, 'record')} is protected less."
    )
    show.say(order_words(cleaned))
    show.say(gap_words(cleaned))
    if any(isinstance(cells, NumberCells) and cells.noise.whole for cells in cleaner.cells):
        show.say(
            "Means of cleaned numbers are pulled towards the middle of their range: use the corrected ones. "
            "With --method unbiased means need no correction, but cells leave the bounds."
        )
    if cleaned.receipt is not None:
        left = left_words(cleaned.receipt.left, cleaned.receipt.limit)
        show.line(f"Paid from the ledger, line {cleaned.receipt.number}. {left}")
    else:
        show.line("Not paid from a ledger: whoever cleans this table again must add up the epsilons.")
    for path in files:
        show.line(f"  {path}")


def _plain(cleaned: "CleanTable", files: list[Path]) -> dict[str, object]:
    cleaner, estimates = cleaned.cleaner, cleaned.estimates()
    return {
        "epsilon": float(cleaner.total),
        "price": str(cleaner.total),
        "unit": cleaner.unit,
        "rows": cleaner.rows,
        "records": cleaned.size,
        "handed_out": cleaned.handed_out,
        "kept_order": cleaned.kept_order,
        "line": None if cleaned.receipt is None else cleaned.receipt.number,
        "columns": {
            cells.name: {
                "noise": cells.method,
                "epsilon": str(cells.epsilon),
                "cell": cells.words(),
                "missing": "kept" if cells.keeps_missing else cells.column.missing,
                "gap": str(cells.gap),
                "statistic": "mean" if cells.labels is None else "shares",
                "labels": None
                if cells.labels is None
                else [*cells.labels, *([None] if cells.keeps_missing else [])],
                "corrected": estimates[cells.name].value.tolist(),
                "lower": estimates[cells.name].lower.tolist(),
                "upper": estimates[cells.name].upper.tolist(),
            }
            for cells in cleaner.cells
        },
        "files": [str(path) for path in files],
    }
