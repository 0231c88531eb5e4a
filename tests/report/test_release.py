import dataclasses
import json
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
import vl_convert

from sourdine.accounting.ledger import ConcentratedBudget, Ledger, PureBudget, Terms
from sourdine.accounting.release import Certificate
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames.source import open_source
from sourdine.report.answer_charts import draw_answer
from sourdine.report.page import Page
from sourdine.report.release import release_page
from sourdine.tables import Specification, release
from sourdine.tables.record import Record
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
        {"name": "quartiles", "ask": [{"quantiles": "pay", "at": [0.25, 0.5, 0.75]}], "by": ["well"]},
        {"name": "ages", "ask": [{"histogram": "age", "edges": [0, 50, 120]}], "by": ["site"]},
        {"name": "cells", "ask": [{"contingency": ["site", "well"]}]},
        {"name": "old", "ask": [{"proportion": "age", "at_least": 65}]},
    ],
}


def made(folder: Path, *, secure: bool = True, delta: float | None = None) -> tuple[Record, Certificate]:
    spec = Specification.read({**BLOCKS, "privacy": {**BLOCKS["privacy"], "delta": delta}})  # type: ignore[dict-item]
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
    budget = PureBudget(limit=Fraction(8)) if delta is None else ConcentratedBudget.within(8, delta)
    terms = Terms(budget=budget, unit="patient", neighbours=Neighbours.ADD_REMOVE, delta=delta)
    bits = {} if secure else {"bits": SeededBits(1)}
    with Ledger.create(folder / "l", terms) as ledger:
        source = open_source(table, spec.schema_of, ["who"])
        found = release(spec.plan(), source, ledger, purpose="test", **bits)  # type: ignore[arg-type]
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
    assert [len(table.rows) for table in values.tables] == [len(answer.keys) for answer in answers]


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
        assert found == [pytest.approx(row[1:], rel=1e-8) for row in inner]
        assert marks(svg, "symbol" if answer.kind == "quantiles" else "rect") == len(inner)
        assert marks(svg, "rule") == (0 if answer.kind == "contingency" else len(inner))
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
    assert "260 values are not drawn" in told


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
