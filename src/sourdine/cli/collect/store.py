"""`sourdine collect status`, `export`, `close` and `prune`: show what a store holds, take it out, end it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.collect.serve import StorePlace
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.collector.store import ReportStore, StoredQuestion

Fingerprint = Annotated[str, typer.Argument(help="The fingerprint of the question, of 16 digits.")]


@contextmanager
def _open(place: str) -> "Iterator[ReportStore]":
    from sourdine.collector.settings import open_store

    if "://" not in place and not Path(place).is_file():
        raise InvalidParameter(f"There is no store {place}. Name the one that 'collect serve' writes.")
    store = open_store(place)
    try:
        yield store
    finally:
        store.close()


def _find(store: "ReportStore", fingerprint: str) -> "StoredQuestion":
    for each in store.questions():
        if each.question.fingerprint == fingerprint:
            return each
    raise InvalidParameter(
        "There is no question of this fingerprint in the store. 'sourdine collect status' lists all."
    )


def status(*, store: StorePlace = "reports.db", as_json: AsJson = False) -> None:
    """Show the questions of a store, how many reports there are, and what was set apart.

    Example: sourdine collect status --store reports.db
    """
    from sourdine.collector.blocks import recount
    from sourdine.collector.store import line_faults

    with _open(store) as there:
        events = there.events()
        rows = [
            (each, recount(there, each.number, each.question).reports, line_faults(events, each.number))
            for each in there.questions()
        ]
    if as_json:
        show.document(
            {
                "questions": [
                    {
                        "fingerprint": each.question.fingerprint,
                        "question": each.question.name,
                        "opens": each.signed.announcement.opens.isoformat(),
                        "closes": each.closed or each.signed.announcement.closes.isoformat(),
                        "reports": reports,
                        "set_apart": faults,
                    }
                    for each, reports, faults in rows
                ]
            }
        )
        return
    show.table(
        ("question", "fingerprint", "closes", "reports", "set apart"),
        [
            (
                each.question.name,
                each.question.fingerprint,
                each.closed or each.signed.announcement.closes.isoformat(),
                f"{reports:,}",
                f"{sum(faults.values()):,}",
            )
            for each, reports, faults in rows
        ],
        numbers=("reports", "set apart"),
    )


def export(
    question: Fingerprint,
    *,
    store: StorePlace = "reports.db",
    output: Annotated[Path, typer.Option("--output", "-o", help="The reports, one per line.")],
    period: Annotated[
        str | None, typer.Option(help="Only reports of the period that begins on this day.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write single reports as lines that 'sourdine local estimate' reads, each with its number.

    By its number a report is counted once, even if it is in several exports. Reports whose retention is over
    are only in the counts, which the server shows.

    Example: sourdine collect export 1fdcfd3a8ee2a2ee --store reports.db -o reports.txt
    """
    from sourdine.local.lines import written

    show.check_place(output)
    count = 0
    with _open(store) as there:
        each = _find(there, question)
        periods = [] if period is not None else sorted(there.periods(each.number))

        def parts() -> Iterator[bytes]:
            nonlocal count
            for numbers, rows in there.stream(each.number, period):
                count += len(rows)
                yield written(each.question.fingerprint, rows, numbers)

        try:
            with disk.whole_file(output, over=False) as place:
                disk.write_parts(place, parts())
        except FileExistsError:
            raise InvalidParameter(
                f"{output} exists already and is not written over. Choose another place with -o."
            ) from None
    if as_json:
        show.document(
            {
                "reports": str(output),
                "count": count,
                "specification": question,
                "periods": periods if period is None else [period],
            }
        )
        return
    show.line(f"Wrote {counted(count, 'report')} to {output}.")
    if len(periods) > 1:
        show.warn(
            f"It holds {len(periods)} periods, and a device may have reported in each: intervals of all "
            f"together would be too narrow. Export one at a time with --period, such as {periods[-1]}."
        )


def close(question: Fingerprint, *, store: StorePlace = "reports.db", as_json: AsJson = False) -> None:
    """Take no more reports to a question from now on. A running server learns of it at once.

    What was stored stays, for as long as was announced.

    Example: sourdine collect close 1fdcfd3a8ee2a2ee --store reports.db
    """
    from sourdine.collector.blocks import recount
    from sourdine.collector.period import today

    with _open(store) as there:
        each = _find(there, question)
        there.close_question(each.number, today().isoformat())
        reports = recount(there, each.number, each.question).reports
    if as_json:
        show.document({"specification": question, "reports": reports, "closed": True})
        return
    show.line(f"Closed {each.question.name} with {counted(reports, 'report')}.")


def prune(*, store: StorePlace = "reports.db", as_json: AsJson = False) -> None:
    """Remove single reports whose announced retention is over; counts stay. A server does it every hour.

    Reports of periods that are over are mixed, so that nothing tells which came in one after another.

    Example: sourdine collect prune --store reports.db
    """
    from sourdine.collector.period import today
    from sourdine.collector.retention import mix
    from sourdine.collector.retention import prune as remove

    with _open(store) as there:
        periods = {each.question.fingerprint: remove(there, each, today()) for each in there.questions()}
        for each in there.questions():
            mix(there, each, today())
        is_gone = there.tidy()
    if as_json:
        show.document({"removed": periods, "gone_from_files": is_gone})
        return
    number = sum(map(len, periods.values()))
    show.line(f"Removed the single reports of {counted(number, 'period')}; their counts stay.")
    if not is_gone:
        show.warn(
            "The raw files may still have removed reports: another process reads an older state, or the "
            "server keeps its log (docs/how_to/back_up_and_restore.md). Call it again."
        )
