"""A page about a cleaned table: what it cost each person, what was done, and how to read it."""

from sourdine.accounting.explain import explain_guarantee
from sourdine.accounting.explain.words import sentences
from sourdine.core.distance import Neighbours
from sourdine.core.format import counted, shorten_up
from sourdine.local.cleaner import CleanTable, Gap
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import Cell, TextTable

_WEAK = 10  # an epsilon above it promises next to nothing
_MOST_KEYS = 20
_SHOWN = {
    Gap.KEEP: "stays missing, or seems so",
    Gap.DROP: "its record is left out, as are others",
    Gap.DRAW: "a value is drawn evenly, as for others",
}


def cleaning_page(name: str, cleaned: CleanTable) -> Page:
    """One page, made of declarations and of cleaned cells only."""
    cleaner = cleaned.cleaner
    return Page(
        title=f"{name}, cleaned",
        lead=(
            f"Every cell was made private on its own. For each {cleaner.unit} the whole table costs "
            f"ε = {shorten_up(float(cleaner.total))}: {describe_cleaning_price(cleaned)}. Whatever is done "
            "with the table later costs nothing more."
        ),
        sections=(*_warnings(cleaned), _guarantee(cleaned), _done(cleaned), _reading(cleaned)),
    )


def describe_cleaning_price(cleaned: CleanTable) -> str:
    """How the epsilon of a person comes about."""
    cleaner = cleaned.cleaner
    many = "1 record" if cleaner.rows == 1 else f"up to {cleaner.rows:,} records"
    cells = counted(len(cleaner.cells), "column")
    return f"{many} of {cells} at ε = {shorten_up(float(cleaner.record))} a record"


def order_words(cleaned: CleanTable) -> str:
    """What the order of the records tells."""
    if cleaned.kept_order:
        return (
            "The records are in the order they came in. That order is not protected: if it depends on what "
            "they hold, as after sorting, it tells about it without any noise."
        )
    return "The records are in an order drawn anew, so their order tells nothing."


def gap_words(cleaned: CleanTable) -> str:
    """Whether every cell has a value, as learners want, and what was done for that; or how to get there."""
    cleaner = cleaned.cleaner
    names = [cells.name for cells in cleaner.cells if cells.has_gaps]
    if names:
        return (
            f"Cells of {', '.join(names)} may be missing, which most learners refuse. Declare what a missing "
            "one counts as, or what becomes of those that are shown so: gap = 'drop' leaves their records "
            "out, gap = 'draw' draws a value evenly."
        )
    dropped = [cells.name for cells in cleaner.cells if cells.keeps_missing and cells.gap is Gap.DROP]
    fills = [cells.name for cells in cleaner.cells if cells.keeps_missing and cells.gap is Gap.DRAW]
    lines = ["Every cell has a value, as learners want it."]
    if dropped:
        lines.append(
            f"{cleaned.handed_out:,} of {counted(cleaned.size, 'record')} are handed out: those in which "
            f"{' or '.join(dropped)} is shown as missing, truly or not, are left out."
        )
    if fills:
        lines.append(
            f"Where {' or '.join(fills)} is shown as missing, truly or not, a value is drawn evenly."
        )
    if dropped or fills:
        lines.append("That looks at cleaned cells alone, so it costs nothing. Estimates are of all reports.")
    return " ".join(lines)


def done_table(cleaned: CleanTable) -> TextTable:
    """What was done to each column."""
    rows: list[tuple[Cell, ...]] = []
    for cells in cleaned.cleaner.cells:
        missing = _SHOWN[cells.gap] if cells.keeps_missing else f"counts as {cells.column.missing}"
        rows.append((cells.name, cells.method, float(cells.price), cells.words(), missing))
    return TextTable(
        name="columns",
        title="What was done to each cell",
        columns=("column", "noise", "ε of a cell", "a cleaned cell is", "a missing cell"),
        rows=tuple(rows),
    )


def found_table(cleaned: CleanTable) -> TextTable:
    """Means and shares as the cleaned cells have them, and corrected."""
    rows: list[tuple[Cell, ...]] = []
    for cells in cleaned.cleaner.cells:
        column, estimate = cleaned.columns[cells.name], cleaned.estimates()[cells.name]
        if cells.labels is None:
            names, raw = ["mean"], [float(column.mean()) if column.count() else None]
        else:
            names = [f"share of {label}" for label in cells.labels]
            places, absent = column.compressed(), cleaned.size - column.count()
            raw = [float((places == i).sum()) / max(1, cleaned.size) for i in range(len(names))]
            if cells.keeps_missing:
                names, raw = [*names, "share of missing"], [*raw, float(absent) / max(1, cleaned.size)]
        for name, plain, *ends in list(
            zip(names, raw, estimate.value, estimate.lower, estimate.upper, strict=True)
        )[:_MOST_KEYS]:
            rows.append((cells.name, name, plain, *map(float, ends)))
    return TextTable(
        name="estimates",
        title="What the cleaned cells say",
        columns=("column", "statistic", "of cleaned cells", "corrected", "lower", "upper"),
        rows=tuple(rows),
        note="Corrected, with an interval of 95 %. Computed from cleaned cells alone, so it costs nothing.",
    )


def _warnings(cleaned: CleanTable) -> tuple[Section, ...]:
    if cleaned.secure:
        return ()
    words = "The noise was seeded, so whoever knows the seed can take it away. Do not hand it out."
    return (Section(title="This table protects nobody", paragraphs=(words,)),)


def _guarantee(cleaned: CleanTable) -> Section:
    cleaner = cleaned.cleaner
    explanation = explain_guarantee(float(cleaner.total), 0, unit=cleaner.unit, neighbours=Neighbours.REPLACE)
    weak = (
        (f"That is a weak promise: the table may tell much about one {cleaner.unit}.",)
        if cleaner.total > _WEAK
        else ()
    )
    return Section(
        title="Whom this protects, and how much",
        paragraphs=(
            f"Whatever the records of one {cleaner.unit} hold, any cleaned table is as likely, up to a "
            "factor of e^ε. That holds against whoever gets the table, and whatever they know.",
            *weak,
        ),
        points=(
            *sentences(explanation),
            f"A {cleaner.unit} with more records than declared ({cleaner.rows:,}) is protected less.",
            "How many records there are is not hidden, nor are the names of the columns.",
            order_words(cleaned),
            gap_words(cleaned),
            "Columns that were not declared are not in the table.",
        ),
    )


def _done(cleaned: CleanTable) -> Section:
    return Section(
        title="What was done",
        paragraphs=("Bounds, keys and noise were declared beforehand. Nothing of this depends on the data.",),
        tables=(done_table(cleaned),),
    )


def _reading(cleaned: CleanTable) -> Section:
    return Section(
        title="How to read the table",
        paragraphs=(
            "A single cell may be noise. Statistics of many tell more, once the effect of the noise is taken "
            "out of them.",
        ),
        points=tuple(f"{cells.name}: {cells.remedy()}" for cells in cleaned.cleaner.cells),
        tables=(found_table(cleaned),),
    )
