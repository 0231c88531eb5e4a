"""Pages on how identifiable a table is, and on what making it coarser has done."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from sourdine.accounting.explain import explain_guarantee
from sourdine.accounting.explain.words import sentences
from sourdine.anonymity import NOT_FOR_PUBLICATION, Generalised, Measures, Sensitivity
from sourdine.core.display import Figure
from sourdine.core.distance import Neighbours
from sourdine.core.format import counted, shorten_up
from sourdine.local.cleaner import CleanTable, Gap
from sourdine.local.utility.measure import NOTICE, JudgedOn, Utility, UtilityPoint
from sourdine.local.utility.models import Floats, LearningModel
from sourdine.report.charts.anonymity import COARSE, RAW, draw_columns, draw_hiding, draw_sizes
from sourdine.report.charts.base import Axis, Row, Series
from sourdine.report.charts.utility import draw_bars
from sourdine.report.view import Cell, Page, Section, TextTable

MOST_SUBSETS = 15
_GAP = "\N{NO-BREAK SPACE}"

LIMITS = (
    "Other knowledge. Whoever knows more than the quasi-identifiers named here, or another table of the same "
    "people, may single them out or rule others out. No figure here accounts for that.",
    "What a class has in common. If all or most of a class share a sensitive value, it is known of everybody "
    "in it without finding anybody: l and t limit this, k does not.",
    "Two tables. Two generalised tables that overlap can be put side by side, and their classes cut each "
    "other into smaller ones. None of these guarantees adds up.",
    "The method itself. Whoever knows that no more was generalised than had to be can sometimes undo part "
    "of it.",
    "Rare values that stay. A sensitive value that one person has shows that this person is in the table.",
)
REMEDY = (
    "A private release answers questions about the table instead of giving it away, with noise whose "
    "guarantee holds whatever others know and adds up over releases. To begin: sourdine init TABLE, then "
    "sourdine release."
)
_NOTE = (
    "This page describes the raw table as well: not for publication. Only the generalised table itself is "
    "meant to be given away."
)


def measure_page(measures: Measures, name: str) -> Page:
    """How identifiable a table is."""
    tables = {RAW: measures}
    figures = [
        Figure(title=_upper(_about_sizes(measures)), chart=draw_sizes(tables), note=_sizes_note(measures)),
        Figure(
            title=_about_risk(measures),
            chart=draw_hiding(tables),
            note="Among n records that are alike, a guess is right once in n times.",
        ),
    ]
    figures += _subset_figure(measures)
    return Page(
        title=f"{name}: {_about_sizes(measures)}",
        lead=f"{NOT_FOR_PUBLICATION} {measures.records:,} records by {_listed(measures.quasi)}.",
        sections=(
            Section(title="What was found", figures=tuple(figures)),
            Section(title="All measures", tables=tuple(_tables({"value": measures}))),
            *_limits(),
        ),
    )


def generalised_page(table: Generalised, before: Measures, after: Measures, name: str) -> Page:
    """What making a table coarser has done, and what it has cost."""
    tables = {RAW: before, COARSE: after}
    widest = max(table.penalties, key=lambda each: table.penalties[each])
    columns = dict(sorted(table.penalties.items(), key=lambda pair: -pair[1]))
    figures = (
        Figure(
            title=f"{_upper(_about_sizes(before))} before; {_about_sizes(after)} after",
            chart=draw_sizes(tables),
        ),
        Figure(
            title=f"The highest risk falls from {_chance(before.k)} to {_chance(after.k)}",
            chart=draw_hiding(tables),
            note="Among n records that are alike, a guess is right once in n times.",
        ),
        Figure(
            title=f"'{widest}' has lost most: {_percent(table.penalties[widest])} of what it could say",
            chart=draw_columns(columns, "loss of the column (NCP)"),
            note="0 % says every value exactly, 100 % says nothing. A record left out counts 100 %.",
        ),
    )
    return Page(
        title=f"{name}: generalised to {table.demand.words}",
        lead=f"{_NOTE} {_method_words(table)}",
        sections=(
            Section(title="What was done", points=tuple(_points(table)), figures=figures),
            Section(title="All measures", tables=tuple(_tables({"raw": before, "generalised": after}))),
            *_limits(),
        ),
    )


def measure_rows(tables: dict[str, Measures]) -> list[tuple[str, ...]]:
    """Every measure in words, for one table or several side by side."""
    rows: list[tuple[str, ...]] = []

    def add(what: str, meaning: str, *shown: str) -> None:
        rows.append((what, *shown, meaning))

    each = list(tables.values())
    add("records", "measured", *(f"{m.records:,}" for m in each))
    if any(m.dropped for m in each):
        add("left out", "a quasi-identifier is missing", *(f"{m.dropped:,}" for m in each))
    add("classes", "of records alike in all quasi-identifiers", *(f"{m.classes:,}" for m in each))
    add("k", "records in the smallest class", *(f"{m.k:,}" for m in each))
    add("average class", "records", *(f"{m.average_class:,.4g}" for m in each))
    add("unique records", "nobody else is like them", *(_of(m.unique, m.records) for m in each))
    add("highest risk", "of being linked, knowing who is in the table", *(_chance(m.k) for m in each))
    add(
        "average risk",
        "the share linked rightly if all are linked",
        *(_percent(m.prosecutor.average) for m in each),
    )
    limit = float(each[0].prosecutor.threshold)
    add(
        "records at risk",
        f"of more than {_percent(limit)}",
        *(_of(m.prosecutor.records_at_risk, m.records) for m in each),
    )
    for field, meaning in (("highest", "knowing the population alone"), ("average", "the same, on average")):
        if all(m.journalist for m in each):
            add(
                f"{field} risk in the population",
                meaning,
                *(_percent(getattr(m.journalist, field)) for m in each),
            )
    return rows


def sensitive_rows(tables: dict[str, Measures]) -> list[tuple[str, ...]]:
    """Every measure of sensitive columns in words, for one table or several side by side."""
    rows: list[tuple[str, ...]] = []
    for columns in zip(*(m.sensitive for m in tables.values()), strict=True):
        name = columns[0].column
        for what, meaning, shown in _sensitive(columns):
            rows.append((name, what, *shown, meaning))
    return rows


def _sensitive(columns: tuple[Sensitivity, ...]) -> Iterator[tuple[str, str, list[str]]]:
    l = columns[0].diversity  # noqa: E741 - its name everywhere
    together = all(each.diversity == l for each in columns)
    yield "l (distinct)", "values in the least varied class", [f"{each.diversity:,}" for each in columns]
    yield (
        "l (entropy)",
        "the same, weighed by how even they are",
        [_number(c.entropy_diversity) for c in columns],
    )
    yield (
        f"c (recursive, l = {l})" if together else "c (recursive, at its l)",
        "(c, l)-diversity holds for every c above",
        [_number(each.c) for each in columns],
    )
    yield "alpha", "share of the most frequent value in a class", [_percent(each.alpha) for each in columns]
    yield (
        f"t ({columns[0].ground})",
        "farthest that a class is from the table, 0 to 1",
        [_number(each.closeness) for each in columns],
    )
    yield (
        "delta",
        "largest |log ratio| of a value's share to the table's",
        [_number(each.delta) for each in columns],
    )
    yield (
        "in classes of one value",
        "records whose value is known for certain",
        [f"{each.homogeneous:,}" for each in columns],
    )


def limits_words() -> str:
    """In two sentences, what none of this protects against."""
    return (
        "This does not protect against whoever knows more than the quasi-identifiers, nor against two such "
        "tables put side by side. A private release does: sourdine init TABLE, then sourdine release."
    )


def _tables(tables: dict[str, Measures]) -> Iterator[TextTable]:
    names = tuple(tables)
    yield TextTable(
        name="measures",
        title="Classes and risk",
        columns=("measure", *names, "what it says"),
        rows=tuple(measure_rows(tables)),
    )
    if sensitive := sensitive_rows(tables):
        yield TextTable(
            name="sensitive",
            title="Sensitive columns: the worst class",
            columns=("column", "measure", *names, "what it says"),
            rows=tuple(sensitive),
        )
    first = next(iter(tables.values()))
    if first.subsets:
        rows: list[tuple[Cell, ...]] = [
            (" + ".join(each.columns), each.unique, _percent(each.share), _percent(each.average_risk))
            for each in first.subsets[:MOST_SUBSETS]
        ]
        yield TextTable(
            name="subsets",
            title="Combinations that single out most",
            columns=("columns", "unique records", "share", "average risk"),
            rows=tuple(rows),
        )


def _subset_figure(measures: Measures) -> list[Figure]:
    if not measures.subsets:
        return []
    first = measures.subsets[0]
    shares = {" + ".join(each.columns): each.average_risk for each in measures.subsets[:MOST_SUBSETS]}
    columns = " and ".join(f"'{name}'" for name in first.columns)
    largest = max(len(each.columns) for each in measures.subsets)
    verb = "links" if len(first.columns) == 1 else "link"
    title = f"{columns} alone {verb} {_percent(first.average_risk)} of the records rightly"
    title += f", the most that up to {largest} columns do" if len(measures.subsets) > 1 else ""
    single = (
        f"They single out {_of(first.unique, measures.records)} records."
        if first.unique
        else "No combination here singles anybody out."
    )
    note = f"The share of records that would be linked rightly by these columns alone. {single}"
    return [Figure(title=title, chart=draw_columns(shares, "records linked rightly"), note=note)]


def _limits() -> tuple[Section, Section]:
    return (
        Section(title="What this does not protect against", points=LIMITS),
        Section(title="What does", paragraphs=(REMEDY,)),
    )


def _points(table: Generalised) -> Iterator[str]:
    yield f"Demanded: {table.demand.words}. Every class of the generalised table satisfies it."
    yield f"Left out: {_of(table.suppressed, table.size)} records."
    loss = table.loss
    yield (
        f"Lost: {_percent(loss.ncp)} by the normalised certainty penalty; discernibility "
        f"{loss.discernibility:,}; {loss.average_class:,.4g} records in a class on average."
    )
    if table.levels is not None and table.heights is not None:
        levels = ", ".join(f"{name} {level} of {table.heights[name]}" for name, level in table.levels.items())
        yield f"Levels of generalisation: {levels}."


def _method_words(table: Generalised) -> str:
    if table.levels is None:
        return "Each class was made as coarse as it had to be, by halving."
    if table.proven:
        return "One level for each column; no other choice of levels loses less."
    return "One level for each column, the best that was found; there may be better ones."


def _about_sizes(measures: Measures) -> str:
    if measures.unique:
        return f"{_of(measures.unique, measures.records)} records are like no other"
    return f"every record is like at least {measures.k - 1:,} others"


def _sizes_note(measures: Measures) -> str:
    return f"Records alike in {_listed(measures.quasi)} form a class. There are {measures.classes:,} classes."


def _about_risk(measures: Measures) -> str:
    risk = measures.prosecutor
    return (
        f"{_of(risk.records_at_risk, measures.records)} records can be linked with a chance above "
        f"{_percent(float(risk.threshold))}"
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _of(count: int, size: int) -> str:
    return f"{count:,} of {size:,} ({_percent(count / size)})"


def _chance(k: int) -> str:
    return "certainty" if k == 1 else f"1 in {k:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}{_GAP}%"


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "∞"


# A page about a cleaned table: what it cost each person, what was done, and how to read it.


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


# The page of a measurement of utility: accuracy and F1 against epsilon, for each model and noise.


METRICS = ("accuracy", "F1")
TESTED = {
    JudgedOn.UNTOUCHED: "untouched rows",
    JudgedOn.CLEANED_FEATURES: "cleaned features, true labels",
    JudgedOn.CLEANED: "cleaned rows and labels",
}
_NAMES = {
    LearningModel.NAIVE_BAYES: "Naive Bayes",
    LearningModel.LOGISTIC: "Logistic regression",
    LearningModel.TREE: "Decision tree",
}


def utility_page(name: str, utility: Utility) -> Page:
    """One page with exact scores: it is for whoever holds the rows."""
    return Page(
        title=f"{name}: {utility.label} is {_best_words(utility)}",
        lead=f"{NOTICE}. {what_words(utility)}",
        sections=(
            *(_section(utility, model) for model in utility.models),
            Section(
                title="All scores",
                paragraphs=(describe_utility_price(utility),),
                tables=(utility_table(utility),),
            ),
            Section(title="How to read it", points=reading_points(utility)),
        ),
    )


def what_words(utility: Utility) -> str:
    """What was done, in a few sentences."""
    return (
        f"{utility.train:,} rows were cleaned, a model learned '{utility.label}' from them, and "
        f"{utility.test:,} other rows tested it; {counted(utility.repeats, 'time')} for each ε and noise."
    )


def describe_utility_price(utility: Utility) -> str:
    """What epsilons are."""
    meaning = (
        f"that of every column, and each {utility.unit} pays for all of them: the price"
        if utility.by_column
        else f"for each {utility.unit}, and the price is what the cleaning really costs"
    )
    return f"ε as asked is {meaning}, exactly, by the mechanisms that were used."


def reading_points(utility: Utility) -> tuple[str, ...]:
    """What the scores are, and what they are not."""
    many = "of the last of the two labels" if len(utility.labels) == 2 else "the mean over the labels"
    return (
        f"Scores are exact counts over {counted(utility.test, 'row')}. They tell about these rows without "
        "any noise: use public or made-up rows, and do not publish scores of anybody's.",
        "Bars are one standard deviation over the cleanings, on one and the same split of the rows. They "
        "tell what the noise does, and not how other rows would do.",
        f"F1 is {many}"
        + (f", '{utility.labels[-1]}'." if len(utility.labels) == 2 else ".")
        + " A model that always says the commonest label is right "
        f"{100 * utility.commonest[0]:.1f} % of the time: accuracy at or below that is nothing learned.",
        "Untouched rows are read as declared: inside the bounds, on the grid, with the declared value for "
        "what is missing, or the middle of the range.",
        "Settings that were chosen by these scores on private rows would be outside the guarantee.",
    )


def utility_table(utility: Utility) -> TextTable:
    """Every point, with what is reached without noise."""
    several = len(utility.tested) > 1
    rows: list[tuple[Cell, ...]] = []
    for model in utility.models:
        for point in utility.points:
            if point.model is model:
                rows += [
                    (
                        _short(point.target),
                        _short(point.price),
                        *((point.method,) if utility.numbers else ()),
                        model,
                        *((TESTED[kind],) if several else ()),
                        _with_deviation(point.scores[kind].accuracy),
                        _with_deviation(point.scores[kind].f1),
                    )
                    for kind in utility.tested
                ]
        rows.append(_plain(utility, "no noise", model, utility.without_noise[model]))
    rows.append(_plain(utility, "none", "the commonest label", utility.commonest))
    return TextTable(
        name="utility",
        title=f"What is learned of '{utility.label}'",
        columns=(
            "ε asked, of a column" if utility.by_column else f"ε asked, of a {utility.unit}",
            f"price, ε of a {utility.unit}",
            *(("noise",) if utility.numbers else ()),
            "model",
            *(("tested on",) if several else ()),
            *METRICS,
        ),
        rows=tuple(rows),
        note=f"Mean ± one standard deviation over {counted(utility.repeats, 'cleaning')}.",
    )


def _plain(utility: Utility, noise: str, model: str, scores: tuple[float, float]) -> tuple[Cell, ...]:
    return (
        "–",
        "–",
        *((noise,) if utility.numbers else ()),
        model,
        *((TESTED[JudgedOn.UNTOUCHED],) if len(utility.tested) > 1 else ()),
        *(f"{score:.3f}" for score in scores),
    )


def _section(utility: Utility, model: LearningModel) -> Section:
    points = [point for point in utility.points if point.model is model]
    figures = [
        _figure(utility, points, place, kind) for kind in _shown(utility) for place in range(len(METRICS))
    ]
    return Section(title=_NAMES[model], figures=tuple(figures))


def _shown(utility: Utility) -> list[JudgedOn]:
    """What was tested on, untouched rows first."""
    return sorted(utility.tested, key=lambda kind: kind is not JudgedOn.UNTOUCHED)


def _figure(utility: Utility, points: list[UtilityPoint], place: int, kind: JudgedOn) -> Figure:
    """One score against the price; levels to compare with are of untouched rows, and stand with those."""
    metric = METRICS[place]
    best = _best(points, metric, kind)
    reached = float(_share_of(best, metric, kind).mean())
    title = f"At a price of ε = {_short(best.price)}, {_score_words(metric, reached)}"
    title += f" with {best.method} noise" if utility.numbers else ""
    levels: dict[str, float] = {}
    if kind is JudgedOn.UNTOUCHED:
        level = utility.without_noise[best.model][place]
        title += f"; without noise {_level(metric, level)}"
        levels = {"without noise": level}
        if metric == METRICS[0]:
            levels["always the commonest label"] = utility.commonest[place]
    else:
        title += f", tested on {TESTED[kind]}"
    return Figure(
        title=title,
        chart=_chart(utility, points, metric, kind, levels),
        note=f"Points are means over {counted(utility.repeats, 'cleaning')}, bars one standard "
        f"deviation to either side. Tested on {utility.test:,} {TESTED[kind]}.",
    )


def _chart(
    utility: Utility, points: list[UtilityPoint], metric: str, kind: JudgedOn, levels: dict[str, float]
) -> dict[str, object]:
    names = tuple(str(method) for method in utility.methods) if utility.numbers else ("randomized response",)
    rows: list[Row] = []
    for point in points:
        scores = _share_of(point, metric, kind)
        place = utility.methods.index(point.method)
        rows.append(
            {
                "noise": names[place],
                "epsilon": float(point.price),
                "score": float(scores.mean()),
                "deviation": float(scores.std(ddof=1)),
            }
        )
    return dict(
        draw_bars(
            rows,
            x=Axis(field="epsilon", title=f"price, ε of a {utility.unit}", log=True),
            y=Axis(field="score", title=f"{metric}, on {TESTED[kind]}"),
            series=Series(field="noise", names=names),
            levels=levels,
        )
    )


def _share_of(point: UtilityPoint, metric: str, kind: JudgedOn) -> Floats:
    scores = point.scores[kind]
    return scores.accuracy if metric == "accuracy" else scores.f1


def _best(points: Sequence[UtilityPoint], metric: str, kind: JudgedOn) -> UtilityPoint:
    """The best at the highest price: at a low one, high scores are chance."""
    top = max(point.price for point in points)
    return max(
        (point for point in points if point.price == top),
        key=lambda point: float(_share_of(point, metric, kind).mean()),
    )


def _best_words(utility: Utility) -> str:
    kind = _shown(utility)[0]
    best = _best(utility.points, METRICS[0], kind)
    reached = 100 * float(best.scores[kind].accuracy.mean())
    plain = 100 * utility.without_noise[best.model][0]
    cleaned = (
        f"guessed right {reached:.1f} % of the time from rows cleaned at a price of ε = {_short(best.price)}"
    )
    other = (
        f", and {plain:.1f} % without noise" if kind is JudgedOn.UNTOUCHED else f", tested on {TESTED[kind]}"
    )
    return cleaned + other


def _score_words(metric: str, score: float) -> str:
    return (
        f"guesses are right {100 * score:.1f} % of the time" if metric == "accuracy" else f"F1 is {score:.2f}"
    )


def _level(metric: str, score: float) -> str:
    return f"{100 * score:.1f} %" if metric == "accuracy" else f"{score:.2f}"


def _short(value: Fraction) -> str:
    return shorten_up(float(value))


def _with_deviation(scores: Floats) -> str:
    return f"{scores.mean():.3f} ± {scores.std(ddof=1):.3f}"
