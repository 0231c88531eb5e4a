import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
import vl_convert

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Entry, Ledger, PureBudget, Terms
from sourdine.core.distance import Distance, Neighbours
from sourdine.mechanisms import Geometric
from sourdine.report.pages.ledger import draw_spending, spending_page

COUNT = Spend(mechanism=Geometric(scale=Fraction(100)), distance=Distance.l1(1))
START = datetime(2026, 11, 3, 23, 30, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    terms = Terms(budget=PureBudget(limit=Fraction(1)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    return Ledger.create(tmp_path / "a.ledger", terms)


def apart(ledger: Ledger, step: timedelta, count: int = 4) -> Sequence[Entry]:
    """Charges that lie so far apart."""
    for k in range(count):
        ledger.charge(COUNT, purpose=f"table {k}")
    return [replace(entry, time=START + k * step) for k, entry in enumerate(ledger.history())]


@pytest.mark.parametrize(
    ("step", "label"),
    [
        (timedelta(minutes=10), "23:40:00"),
        (timedelta(hours=4), "04 Nov, 06:00"),
        (timedelta(days=9), "08 Nov"),
        (timedelta(days=190), "Jan 2027"),
    ],
)
def test_times_are_told_as_finely_as_charges_lie(ledger: Ledger, step: timedelta, label: str) -> None:
    svg = vl_convert.vegalite_to_svg(json.dumps(draw_spending(apart(ledger, step), ledger.status())))
    assert f">{label}<" in svg
    assert "time (UTC), from 03 November 2026" in svg


def test_charges_within_a_minute_stand_side_by_side(ledger: Ledger) -> None:
    entries = apart(ledger, timedelta(seconds=0.3))
    svg = vl_convert.vegalite_to_svg(json.dumps(draw_spending(entries, ledger.status())))
    for line in range(1, 5):
        assert f">{line}<" in svg
    assert "line of the ledger" in svg
    page = spending_page(ledger.terms, ledger.status(), entries)
    assert "came within a minute" in page.sections[0].figures[0].note
    assert (
        "came within a minute"
        not in spending_page(
            ledger.terms, ledger.status(), [entries[0], replace(entries[1], time=START + timedelta(hours=1))]
        ).html()
    )


def test_many_charges_at_once_do_not_crowd_the_axis(ledger: Ledger) -> None:
    entries = apart(ledger, timedelta(seconds=0.01), count=40)
    svg = vl_convert.vegalite_to_svg(json.dumps(draw_spending(entries, ledger.status())))
    assert ">20<" in svg
    assert ">21<" not in svg


def test_a_ledger_without_charges_has_a_page(ledger: Ledger) -> None:
    page = spending_page(ledger.terms, ledger.status(), [])
    assert page.sections[0].figures == ()
    assert "No charge yet." in page.html()


def test_one_charge_is_told_and_not_drawn(ledger: Ledger) -> None:
    entries = apart(ledger, timedelta(days=9))
    page = spending_page(ledger.terms, ledger.status(), entries[:1])
    assert page.sections[0].figures == ()
    assert "% of the budget" in page.sections[0].points[1]
