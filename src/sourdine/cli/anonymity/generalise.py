"""`sourdine anonymity generalise`: a table made coarser until it satisfies a demand."""

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.anonymity import options
from sourdine.cli.anonymity.measure import note, plain
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number
from sourdine.core.format import counted

_MOST = 1 << 31


def generalise(
    table: options.TableFile,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The generalised table, as CSV.")],
    quasi: options.Quasi,
    sensitive: options.Sensitive = None,
    others: Annotated[
        list[str] | None,
        typer.Option("--others", help="Other columns to keep as they are. The rest is left out."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Records in every class, at least.")] = 5,
    varied: Annotated[
        str, typer.Option("--l", help="How varied the sensitive values of a class are, at least.")
    ] = "1",
    diversity: Annotated[
        str, typer.Option(help="What l counts: distinct, entropy or recursive (which needs --c).")
    ] = "distinct",
    c: Annotated[str | None, typer.Option("--c", help="The c of recursive (c, l)-diversity.")] = None,
    t: Annotated[
        str, typer.Option("--t", help="How far the values of a class are from the table's, at most.")
    ] = "1",
    alpha: Annotated[str, typer.Option(help="The share of a sensitive value in a class, at most.")] = "1",
    suppress: Annotated[str, typer.Option(help="The share of records that may be left out.")] = "0%",
    method: Annotated[
        str, typer.Option(help="full (one level a column, the best), mondrian or relaxed (halving).")
    ] = "full",
    hierarchies: options.Hierarchies = None,
    ordered: options.Ordered = None,
    hierarchical: options.Hierarchical = None,
    missing: options.Absent = "value",
    spec: options.Spec = None,
    encoding: options.Encoding = "utf-8",
    html: options.Html = None,
    as_json: AsJson = False,
) -> None:
    """Make a table coarser until every class satisfies k, l and t, with as little loss as can be.

    Without a hierarchy, numbers get intervals, days get months and years, and the rest is kept or starred.

    Example: sourdine anonymity generalise people.csv --quasi age,sex,postcode --sensitive disease --k 5 --l 2
    --t 0.3 --suppress 5% --hierarchies trees -o out.csv
    """
    from sourdine.anonymity import (
        Demand,
        Diversity,
        GeneralisationMethod,
        Missing,
        Records,
        generalise_records,
        measure_records,
        read_hierarchies,
    )
    from sourdine.report.pages.anonymity import limits_words, measure_rows, sensitive_rows

    show.check_place(output)
    options.check_page(html, (table, output, spec))
    show.refuse_existing([output], "Name another file with -o.")
    owner = "anonymity generalise"
    demand = Demand(
        k=k,
        l=number(owner, "l", varied, 1, _MOST),
        diversity=options.one_of("diversity", diversity, Diversity),
        c=None if c is None else number(owner, "c", c, Fraction(1, _MOST), _MOST),
        t=number(owner, "t", t, 0, 1),
        alpha=number(owner, "alpha", alpha, 0, 1),
    )
    share = options.share(owner, "suppress", suppress)
    way = options.one_of("method", method, GeneralisationMethod)
    known, secret = options.names(quasi), options.names(sensitive)
    trees = read_hierarchies(hierarchies, known) if hierarchies is not None else {}
    distances = options.distances_of(options.names(ordered), options.names(hierarchical), hierarchies)
    records = Records.read(
        table,
        quasi=known,
        sensitive=secret,
        others=options.names(others),
        columns=options.schema_of(spec),
        missing=options.one_of("missing", missing, Missing),
        text={"encoding": encoding},
    )
    with options.bar("searching" if way is GeneralisationMethod.FULL else "halving") as watch:
        generalisation = generalise_records(
            records,
            demand,
            hierarchies=trees,
            distances=distances,
            suppress=share,
            method=way,
            watch=watch,
        )
    before = measure_records(records, distances=distances)
    after = measure_records(generalisation.records, distances=distances)
    page = None
    if html is not None:
        from sourdine.report.pages.anonymity import generalised_page

        page = generalised_page(generalisation, before, after, table.name).html()
    generalisation.write(output)
    if html is not None and page is not None:
        show.keep(page, html)
    if as_json:
        show.document(
            {
                "note": note(),
                "output": str(output),
                "report": str(html) if html else None,
                "demand": demand.words,
                "method": str(generalisation.method),
                "levels": dict(generalisation.levels) if generalisation.levels is not None else None,
                "proven": generalisation.proven,
                "records": generalisation.size,
                "suppressed": generalisation.suppressed,
                "loss": dataclasses.asdict(generalisation.loss),
                "penalties": dict(generalisation.penalties),
                "before": plain(before),
                "after": plain(after),
            }
        )
        return
    tables = {"raw": before, "generalised": after}
    show.line(note())
    show.line(
        f"Satisfied: {demand.words}. Of {counted(generalisation.size, 'record')}, "
        f"{generalisation.suppressed:,} left out."
    )
    rows = [
        (
            show.one_line(name),
            ""
            if generalisation.levels is None or generalisation.heights is None
            else f"{generalisation.levels[name]} of {generalisation.heights[name]}",
            f"{100 * lost:.3g} %",
        )
        for name, lost in generalisation.penalties.items()
    ]
    show.table(("column", "level", "lost (NCP)"), rows, numbers=("level", "lost (NCP)"))
    show.table(("measure", *tables, "what it says"), measure_rows(tables), numbers=tuple(tables))
    if secret:
        headings = ("column", "measure", *tables, "what it says")
        show.table(headings, sensitive_rows(tables), numbers=tuple(tables))
    best = " No other choice of levels loses less." if generalisation.proven else ""
    show.say(f"Lost altogether: {100 * generalisation.loss.ncp:.3g} % (NCP).{best}")
    show.say(limits_words())
    show.line(f"Wrote {output}{f' and {html}' if html is not None else ''}.")
