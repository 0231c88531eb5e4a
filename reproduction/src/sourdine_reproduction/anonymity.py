"""The source's hospital table made 2-anonymous: how diverse and how close it is, and what leaks."""

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sourdine.accounting.explain import posterior_bounds
from sourdine.anonymity import (
    Demand,
    GeneralisationHierarchy,
    Generalised,
    Measures,
    Tree,
    cells_of,
    classes_of,
    generalise,
    measure,
    measure_records,
)
from sourdine.audit.attacks import AttackChart, ChartPoint
from sourdine.core.display import Figure
from sourdine.frames.files import relation_of_cells
from sourdine.report.pages.training_audit import draw_attack
from sourdine.report.view import Cell, Section, TextTable
from sourdine_reproduction.registry import ClaimVerdict, Result, Settings, experiment, judge
from sourdine_reproduction.statements import Standing

if TYPE_CHECKING:
    import duckdb

QUASI, SECRET = ("age", "postcode"), "treatment"
PATIENTS = (  # as printed: age, postcode, treatment
    (19, "25000", "asthma"),
    (43, "25200", "cancer"),
    (73, "25170", "leukaemia"),
    (27, "25480", "HIV"),
    (35, "25120", "HIV"),
    (61, "25000", "leukaemia"),
)
PRINTED = (  # the 2-anonymous table, as printed
    ("18-30", "Besançon", "asthma"),
    ("18-30", "Besançon", "HIV"),
    ("35-45", "Montbéliard", "cancer"),
    ("35-45", "Montbéliard", "HIV"),
    ("60+", "Besançon", "leukaemia"),
    ("60+", "Besançon", "leukaemia"),
)
_BANDS = {19: "18-30", 27: "18-30", 35: "35-45", 43: "35-45", 61: "60+", 73: "60+"}
_DISTRICTS = {
    "25000": "Besançon",
    "25170": "Besançon",
    "25480": "Besançon",
    "25120": "Montbéliard",
    "25200": "Montbéliard",
}
HIERARCHIES: dict[str, GeneralisationHierarchy] = {
    "age": Tree({str(age): (band,) for age, band in _BANDS.items()}),
    "postcode": Tree({code: (district,) for code, district in _DISTRICTS.items()}),
}
LEAK = "leukaemia"
OLD = "60+"
EPSILON = 1.0
_RAW, _TWO, _DIVERSE, _CLOSE = "names removed", "2-anonymous", "2-diverse", "t below 1/2"


@experiment("anonymity", "A hospital table made 2-anonymous, and the leukaemia that leaks from it")
def run(settings: Settings) -> Result:
    """Generalise the printed patients, measure what comes out, and read off what is known of the oldest."""
    raw = measure(patients(), quasi=QUASI, sensitive=[SECRET])
    tables = {
        _TWO: make(Demand(k=2)),
        _DIVERSE: make(Demand(k=2, l=Fraction(2))),
        _CLOSE: make(Demand(k=2, t=Fraction(49, 100))),
    }
    measures = {_RAW: raw} | {name: measure_records(each.records) for name, each in tables.items()}
    return Result(
        name="anonymity",
        title="Two patients alike, and one secret out",
        lead=(
            "The source makes a table of six patients 2-anonymous by age bands and districts, and shows that "
            "leukaemia leaks all the same. Here the same table is found by search, and measured: how diverse "
            "it is, how close, and what it costs to stop the leak."
        ),
        verdicts=(
            _table(tables[_TWO]),
            _risk(measures[_TWO]),
            _leak(measures[_TWO]),
            _excluded(tables[_TWO]),
            _diverse(tables, measures),
            _close(tables, measures),
        ),
        sections=(_before_and_after(tables[_TWO]), _measured(tables, measures), _beliefs(tables)),
    )


def patients() -> "duckdb.DuckDBPyRelation":
    """The printed patients as a table."""
    types = {"age": "INTEGER", "postcode": "VARCHAR", "treatment": "VARCHAR"}
    return relation_of_cells(types, PATIENTS)


def make(demand: Demand) -> Generalised:
    """The table that satisfies a demand with the least loss, by the source's bands and districts."""
    return generalise(patients(), demand, quasi=QUASI, sensitive=[SECRET], hierarchies=HIERARCHIES)


def shares(table: Generalised) -> dict[str, dict[str, float]]:
    """How frequent each treatment is in each class."""
    records = table.records
    classes, column = classes_of(records), records.column(SECRET)
    cells = cells_of(classes, column, records.counts)
    names = {}
    for place in range(len(classes)):
        first = int(np.flatnonzero(classes.of == place)[0])
        names[place] = ", ".join(str(each.labels[each.codes[first]]) for each in records.quasi)
    columns = {name: dict.fromkeys(map(str, column.labels), 0.0) for name in names.values()}
    for place, value, share in zip(cells.place, cells.value, cells.share, strict=True):
        columns[names[int(place)]][str(column.labels[int(value)])] = float(share)
    return columns


def believed(table: Generalised) -> float:
    """What is believed of a patient of 61 in Besançon: the share of leukaemia among those who may be them."""
    fitting = [
        by_value[LEAK]
        for name, by_value in shares(table).items()
        if name.split(", ")[0] in (OLD, "*") and name.split(", ")[1] in ("Besançon", "*")
    ]
    assert len(fitting) == 1
    return fitting[0]


def _table(table: Generalised) -> ClaimVerdict:
    rows = sorted(table.rows(), key=str)
    same = rows == sorted(PRINTED, key=str)
    return judge(
        "thesis.table",
        finding="the same six rows, and no other choice of levels loses less"
        if same and table.proven
        else "other rows",
        standing=Standing.REPRODUCED if same and table.proven else Standing.WRONG,
        why="Found by search over every pair of levels, with the printed bands and districts.",
    )


def _risk(measures: Measures) -> ClaimVerdict:
    worst = Fraction(measures.prosecutor.highest)
    return judge(
        "thesis.risk",
        finding=str(worst),
        standing=Standing.REPRODUCED if worst == Fraction(1, 2) else Standing.WRONG,
        why="By age and postcode alone. Whoever knows more may still single people out, and nobody has to be "
        "singled out for their treatment to be known.",
    )


def _leak(measures: Measures) -> ClaimVerdict:
    (secret,) = measures.sensitive
    leaks = secret.diversity == 1 and secret.homogeneous == 2
    return judge(
        "thesis.leak",
        finding=f"l = {secret.diversity}: {secret.homogeneous} of {measures.records} patients are in a class "
        "of one treatment",
        standing=Standing.REPRODUCED if leaks else Standing.WRONG,
    )


def _excluded(table: Generalised) -> ClaimVerdict:
    beliefs = shares(table)
    without = sum(share == 0 for by_value in beliefs.values() for share in by_value.values())
    whole = sum(map(len, beliefs.values()))
    impossible = beliefs["35-45, Montbéliard"]["asthma"] == 0
    return judge(
        "thesis.excluded",
        finding=f"{without} of {whole} pairs of a class and a treatment are excluded",
        standing=Standing.REPRODUCED if impossible else Standing.WRONG,
        why="So delta-disclosure is infinite: what cannot be is knowledge too.",
    )


def _diverse(tables: dict[str, Generalised], measures: dict[str, Measures]) -> ClaimVerdict:
    loss = [tables[name].loss.ncp for name in (_TWO, _DIVERSE)]
    return judge(
        "thesis.diverse",
        finding=f"l = {measures[_DIVERSE].l}: ages go, districts stay; loss {loss[0]:.2f} becomes "
        f"{loss[1]:.2f}",
        standing=Standing.REPRODUCED if believed(tables[_DIVERSE]) < 1 else Standing.WRONG,
        why=f"Belief in {LEAK} falls from 1 to {believed(tables[_DIVERSE]):g}, where the whole table has "
        "1/3. Loss is the normalised certainty penalty, from 0 to 1.",
    )


def _close(tables: dict[str, Generalised], measures: dict[str, Measures]) -> ClaimVerdict:
    one = measures[_CLOSE].classes == 1
    least = Fraction(measures[_DIVERSE].t or 0.0).limit_denominator(1000)
    return judge(
        "thesis.close",
        finding=f"for any t below {least} a single class is left, which says nothing about age or place",
        standing=Standing.REPRODUCED if one and tables[_CLOSE].loss.ncp > 1 - 1e-9 else Standing.OTHERWISE,
        why="Of six patients little can be kept. Larger tables lose less, and the same in kind.",
    )


def _before_and_after(table: Generalised) -> Section:
    beliefs = shares(table)
    points = tuple(
        ChartPoint(treatment, name, share)
        for name, by_value in beliefs.items()
        for treatment, share in by_value.items()
    )
    chart = AttackChart(
        finding="Every class rules treatments out, and 60+ in Besançon leaves one",
        across="share of the patients of the class",
        up="class",
        points=points,
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (age, code, _BANDS[age], _DISTRICTS[code], treatment) for age, code, treatment in PATIENTS
    )
    return Section(
        title="The table",
        tables=(
            TextTable(
                name="patients",
                title="Six patients, as printed, and what is published of them",
                columns=("age", "postcode", "age band", "district", "treatment"),
                rows=tuple((str(row[0]), *row[1:]) for row in rows),
            ),
        ),
        figures=(Figure(title=chart.finding, chart=draw_attack(chart)),),
    )


def _measured(tables: dict[str, Generalised], measures: dict[str, Measures]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, each in measures.items():
        (secret,) = each.sensitive
        loss = tables[name].loss.ncp if name in tables else 0.0
        rows.append(
            (name, each.k, each.classes, secret.diversity, secret.closeness, secret.homogeneous, loss)
        )
    return Section(
        title="Measured",
        tables=(
            TextTable(
                name="measures",
                title="k, l and t of the table, and of what it takes to stop the leak",
                columns=("table", "k", "classes", "l", "t", "patients known for certain", "loss (NCP)"),
                rows=tuple(rows),
                note="Each is the table of least loss that satisfies its demand, by the printed bands and "
                "districts. The printed table has t = 2/3, the distance of total variation: leukaemia is a "
                "third of all patients and all of 60+ in Besançon.",
            ),
        ),
    )


def _beliefs(tables: dict[str, Generalised]) -> Section:
    prior = sum(treatment == LEAK for *_, treatment in PATIENTS) / len(PATIENTS)
    private = posterior_bounds(prior, EPSILON).upper
    rows = {
        "the shares of treatments alone": prior,
        _RAW: 1.0,
        **{name: believed(each) for name, each in tables.items()},
        f"a private answer, ε = {EPSILON:g} (at most)": private,
    }
    chart = AttackChart(
        finding=f"2-anonymity leaves no doubt about {LEAK}; a private answer must leave "
        f"{100 * (1 - private):.0f} %",
        across=f"belief that a patient of 61 in Besançon has {LEAK}",
        up="what is published",
        points=tuple(ChartPoint("belief", name, share) for name, share in rows.items()),
        note="The bound of the private answer holds whatever else is known, for one patient replaced by "
        "another; the other bars hold for whoever knows age and postcode and no more.",
    )
    return Section(
        title="What is known of one patient",
        paragraphs=(
            "Age and postcode of a neighbour are no secret. The table then says what their treatment is, "
            "without anybody being singled out. On larger made-up tables the same leak is measured by "
            "“sourdine audit attack homogeneity” and “skewness”.",
        ),
        tables=(
            TextTable(
                name="beliefs",
                title=f"Belief that a patient of 61 in Besançon has {LEAK}",
                columns=("what is published", "belief"),
                rows=tuple(rows.items()),
            ),
        ),
        figures=(Figure(title=chart.finding, chart=draw_attack(chart), note=chart.note),),
    )
