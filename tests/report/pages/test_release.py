import dataclasses
import json
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import vl_convert

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import ConcentratedBudget, Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import open_source
from sourdine.frames.keys import Keys
from sourdine.report import Page
from sourdine.report.charts.answers import draw_answer
from sourdine.report.finding import finding
from sourdine.report.pages.release import methods_section, release_page
from sourdine.tables import Answer, Specification
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.publication import Record
from sourdine.tables.query import columns_of
from sourdine.tables.release import release
from sourdine.testing import SeededBits

EVIL = "</script><b>x"
BLOCKS = {
    "table": {"source": "visits.csv", "size": 400},
    "privacy": {"unit": "patient", "epsilon": 2, "column": "who", "rows": 2, "groups": 3},
    "columns": {
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "pay": {"type": "real", "lower": 0.0, "upper": 100.0, "granularity": 0.5, "missing": 0.0},
        "site": {"type": "category", "keys": ["north", EVIL]},
        "well": {"type": "flag"},
    },
    "queries": [
        {"name": "visits", "ask": ["count"], "by": ["site", "well"], "where": {"age": {"at_least": 18}}},
        {"name": "everybody", "ask": ["units", {"sum": "pay"}]},
        {"name": "pay", "ask": [{"mean": "pay"}, {"variance": "pay"}], "by": ["site"]},
        {"name": "quartiles", "ask": [{"quantiles": "pay", "levels": [0.25, 0.5, 0.75]}], "by": ["well"]},
        {"name": "ages", "ask": [{"histogram": "age", "edges": [0, 50, 120]}], "by": ["site"]},
        {"name": "cells", "ask": [{"contingency": ["site", "well"]}]},
        {"name": "old", "ask": [{"proportion": "age", "at_least": 65}]},
    ],
}


class QuietBits(SeededBits):
    """Repeatable bits that pass for secure ones, so that a page is always the same."""

    secure = True


def made(
    folder: Path, *, secure: bool = True, delta: float | None = None, epsilon: int = 2
) -> tuple[Record, Certificate]:
    privacy = {**BLOCKS["privacy"], "delta": delta, "epsilon": epsilon}  # type: ignore[dict-item]
    spec = Specification.read({**BLOCKS, "privacy": privacy})
    n = 400
    table = pa.table(
        {
            "who": [i // 2 for i in range(n)],
            "age": [i % 90 for i in range(n)],
            "pay": [float(i % 100) for i in range(n)],
            "site": ["north", EVIL] * (n // 2),
            "well": [True, False, True, True] * (n // 4),
        }
    )
    budget = PureBudget(limit=Fraction(4 * epsilon)) if delta is None else ConcentratedBudget.within(8, delta)
    terms = Terms(budget=budget, unit="patient", neighbours=Neighbours.ADD_REMOVE, delta=delta)
    bits = QuietBits(5) if secure else SeededBits(1)
    with Ledger.create(folder / "l", terms) as ledger:
        source = open_source(table, spec.schema_of, ["who"])
        found = release(spec.plan(), source, ledger, purpose="test", bits=bits)
        return Record.of(spec, found), found.certificate(ledger, found.declared)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Certificate]:
    return made(tmp_path_factory.mktemp("pure"))


@pytest.fixture(scope="module")
def page(published: tuple[Record, Certificate]) -> Page:
    return release_page(*published)


def words(page: Page) -> str:
    """All that a reader sees, outside of charts."""
    found = [page.title, page.lead]
    for section in page.sections:
        found += [section.title, *section.paragraphs, *section.points]
        for table in section.tables:
            found += [
                table.title,
                table.note,
                *table.columns,
                *(cell for row in table.shown() for cell in row),
            ]
        for figure in section.figures:
            found += [figure.title, figure.note]
    return "\n".join(found)


def test_it_says_what_whom_and_how_much(page: Page) -> None:
    told = words(page)
    assert page.title.startswith("visits.csv: visits, everybody, pay")
    for said in (
        "ε = 2",
        "each patient",
        "a given patient was in the data are multiplied by at most 7.39",
        "In each answer a patient counts in at most 3 groups, and in each with as much as 2 records",
        "age: whole numbers from 0 to 120",
        "rounded to steps of 0.5",
        "A missing value counts as 0",
        "they do not hold sampling error",
        "nor values moved to a bound",
        "Only records with age at least 18.",
        "epsilon 6 of 8",
        "certificate verify",
    ):
        assert said in told, said


def test_every_answer_has_a_chart_or_a_sentence_and_all_values(
    published: tuple[Record, Certificate], page: Page
) -> None:
    answers = published[0].answers.each
    found = next(section for section in page.sections if section.title == "What was found")
    assert len(found.figures) + len(found.points) == len(answers)
    values = next(section for section in page.sections if section.title == "All values")
    for table, answer in zip(values.tables, answers, strict=True):
        if table.crossed:  # a cell for each value, and sums of counts
            sums = [key for key in answer.keys if "all" in key]
            wide, high = len(table.columns) - 1, len(table.rows)
            assert wide * high == len(answer.keys) or (wide - 1) * (high - 1) == len(answer.keys) - len(sums)
        else:
            assert len(table.rows) == len(answer.keys)
    assert [table.crossed for table in values.tables] == [len(answer.columns) == 2 for answer in answers]


def marks(svg: str, kind: str) -> int:
    """How many marks the first layer of a kind has."""
    layer = re.search(rf'class="mark-{kind} role-mark[^"]*"[^>]*>(.*?)</g>', svg)
    return len(re.findall(r"<(?:path|line|text) ", layer[1])) if layer else 0


def test_charts_draw_every_value_and_its_interval(published: tuple[Record, Certificate]) -> None:
    drawn = []
    for answer in published[0].answers.each:
        spec = draw_answer(answer)
        if spec is None:
            assert len(answer.keys) == 1
            continue
        svg = str(vl_convert.vegalite_to_svg(json.dumps({**spec, "width": 400})))
        inner = [row for row in answer.rows() if answer.kind != "contingency" or "all" not in row[0]]
        held = spec["datasets"]["rows"]  # type: ignore[index]
        found = [(row["value"], row["lower"], row["upper"]) for row in held]
        counted = answer.kind in ("count", "histogram", "contingency")  # whose noise below 0 is drawn as 0
        told = [tuple(max(0, each) if counted else each for each in row[1:]) for row in inner]
        # an interval over all of what was declared says nothing: words are drawn of it
        whole = [answer.kind == "quantiles" and row[1:] == (0, 100) for row in told]
        nothing = (None, None, None)
        assert found == [nothing if each else row for row, each in zip(told, whole, strict=True)]
        hidden = sum(whole)
        points = answer.kind in ("quantiles", "mean", "variance")
        assert marks(svg, "symbol" if points else "rect") == len(inner) - hidden
        assert marks(svg, "rule") == (0 if answer.kind == "contingency" else len(inner) - hidden)
        drawn.append(answer.kind)
    assert drawn == ["count", "mean", "variance", "quantiles", "histogram", "contingency"]


def test_a_table_of_many_groups_is_cut(published: tuple[Record, Certificate]) -> None:
    record, certificate = published
    keys = tuple((f"site {k}", True) for k in range(300))
    many = {end: [float(k) for k in range(300)] for end in ("value", "lower", "upper")}
    held = json.loads(record.to_json())
    held["answers"][0] |= {"keys": [list(key) for key in keys], **many}
    page = release_page(Record.from_json(json.dumps(held)), certificate)
    told = words(page)
    assert "100 more rows are in the file of answers." in told
    assert "The largest are drawn; the file of answers has 260 more values." in told


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        assert not {"src", "href"} & {name for name, _ in attrs}


def test_names_never_become_tags_and_nothing_is_loaded(page: Page) -> None:
    tags = Tags(page.html()).found
    assert "b" not in tags
    assert {"link", "img", "iframe"}.isdisjoint(tags)


def test_seeded_noise_is_a_warning_on_top(tmp_path: Path) -> None:
    page = release_page(*made(tmp_path, secure=False))
    assert page.sections[0].title == "This release protects nobody"


def test_with_a_delta_the_page_says_so(tmp_path: Path) -> None:
    told = words(release_page(*made(tmp_path, delta=1e-6)))
    assert "δ = 1e-6" in told
    assert "Gaussian" in told
    assert "Laplace" not in told


def test_a_certificate_of_another_release_is_refused(published: tuple[Record, Certificate]) -> None:
    record, certificate = published
    with pytest.raises(InvalidParameter, match="belongs to another release"):
        release_page(record, dataclasses.replace(certificate, fingerprint="other"))


def test_it_says_how_much_of_a_unit_counts_beside_each_finding(page: Page) -> None:
    found = next(section for section in page.sections if section.title == "What was found")
    capped = "(at most 2 records of each patient count)"
    told = [figure.title for figure in found.figures] + list(found.points)
    assert [capped in each for each in told].count(False) == 1  # the number of patients itself
    assert all(capped in each for each in told if not each.startswith("Patients: "))


def test_columns_that_nobody_asked_about_are_only_named(published: tuple[Record, Certificate]) -> None:
    plan = published[0].specification.plan()
    asked = columns_of(plan.queries, plan.schema)
    few = plan.queries[:1]
    section = methods_section(published[0], dataclasses.replace(plan, queries=few))
    told = next(each for each in section.points if each.startswith("Declared too, but nothing was asked"))
    left = set(asked) - set(columns_of(few, plan.schema))
    assert left
    assert all(name in told for name in left)
    assert not any(point.startswith(f"{name}: ") for point in section.points for name in left)


def test_noise_is_told_in_the_unit_of_its_column(published: tuple[Record, Certificate], page: Page) -> None:
    methods = next(section for section in page.sections if section.title == "How it was made")
    rows = {(row[0], row[1]): row for row in methods.tables[0].rows}
    _, _, noise, _, moved = rows["everybody", "sum of pay"]
    # two records of up to 100 in a table without groups: 200 in pay, whatever the grid of 0.5
    assert moved == "200 pay in L1"
    line = next(
        line for line in published[0].specification.plan().lines if line.measurement.label == "sum of pay"
    )
    assert noise == f"Laplace, scale {float(line.mechanism.scale) / 2:,.4g} pay"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [(1, "is nearly as likely"), (2, "is more than 7.39 times as likely"), (11, "That is a weak guarantee")],
)
def test_words_are_as_strong_as_the_guarantee(tmp_path: Path, epsilon: int, said: str) -> None:
    page = release_page(*made(tmp_path, epsilon=epsilon))
    every = ("is nearly as likely", "times as likely: that is what", "That is a weak guarantee")
    assert said in words(page)
    assert sum(each in words(page) for each in every) == 1
    assert ("hardly protects" in page.lead) == (epsilon > 10)


def test_a_delta_that_is_too_large_is_a_warning_on_top(tmp_path: Path) -> None:
    page = release_page(*made(tmp_path, delta=0.01))
    assert page.sections[0].title == "The delta is too large"


def test_one_quantile_has_no_chart() -> None:
    numbers = GroupEstimate(np.array([50.0]), np.array([40.0]), np.array([60.0]))
    alone = Answer(
        query="q",
        statistic="quantiles of age",
        kind="quantiles",
        columns=("quantile",),
        keys=Keys.of(((0.5,),), 1),
        estimate=numbers,
        measure="age",
    )
    assert draw_answer(alone) is None
    assert finding(alone, 0.95) == "Half of the values of age lie below 50 (40 to 60)"


def test_towns_of_a_hierarchy_are_rows_and_not_colours() -> None:
    numbers = GroupEstimate(np.array([5.0, 7.0, 9.0]), np.array([4.0, 6.0, 8.0]), np.array([6.0, 8.0, 10.0]))
    places = Answer(
        query="q",
        statistic="town in region",
        kind="hierarchy",
        columns=("region", "town"),
        keys=Keys.of((("north", "Lille"), ("north", "Arras"), ("south", "Nice")), 2),
        estimate=numbers,
        measure="people",
    )
    drawn = draw_answer(places)
    assert drawn is not None
    rows = drawn["datasets"]["rows"]  # type: ignore[index]
    assert [row["group"] for row in rows] == ["Lille", "Arras", "Nice"]  # each is one place only
    assert "yOffset" not in json.dumps(drawn)


def test_a_group_of_which_nothing_is_known_has_no_bar() -> None:
    numbers = GroupEstimate(np.array([60.0, 50.0]), np.array([55.0, 0.0]), np.array([65.0, 100.0]))
    means = Answer(
        query="q",
        statistic="mean of age",
        kind="mean",
        columns=("sex",),
        keys=Keys.of((("f",), ("m",)), 1),
        estimate=numbers,
        measure="age",
        span=(0.0, 100.0),
    )
    drawn = draw_answer(means)
    assert drawn is not None
    first, second = drawn["datasets"]["rows"]  # type: ignore[index]
    assert (first["value"], first["told"]) == (60.0, "60 (55 to 65)")
    assert (second["value"], second["told"]) == (None, "nothing can be said")
    assert marks(str(vl_convert.vegalite_to_svg(json.dumps({**drawn, "width": 400}))), "rect") == 1


def test_nothing_is_drawn_where_nothing_can_be_said(published: tuple[Record, Certificate]) -> None:
    held = json.loads(published[0].to_json())
    answer = next(each for each in held["answers"] if each["kind"] == "quantiles")
    answer["lower"], answer["upper"] = ([end] * len(answer["keys"]) for end in answer["span"])
    record = Record.from_json(json.dumps(held))
    blind = next(each for each in record.answers.each if each.kind == "quantiles")
    assert all(blind.blind(*row[2:]) for row in blind.rows())
    assert draw_answer(blind) is None
    assert "nothing can be said" in words(release_page(record, published[1]))
