import csv
import json
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest

from sourdine.anonymity import Demand
from sourdine_reproduction import Result, Settings, Standing, find_experiments
from sourdine_reproduction import anonymity as module
from tests.reproduction.results import table, told, verdict, written


@pytest.fixture(scope="module")
def result() -> Result:
    return find_experiments()["anonymity"].run(Settings(quick=True))


def closeness(rows: tuple[tuple[str, str, str], ...]) -> Fraction:
    """The largest total variation of a class from the whole, by exact fractions."""
    whole = Counter(row[2] for row in rows)
    classes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for age, place, treatment in rows:
        classes[age, place][treatment] += 1
    return max(
        sum(
            abs(Fraction(held[each], held.total()) - Fraction(many, whole.total()))
            for each, many in whole.items()
        )
        * Fraction(1, 2)
        for held in classes.values()
    )


def test_the_printed_table_is_found(result: Result) -> None:
    found = verdict(result, "thesis.table")
    assert found.standing is Standing.REPRODUCED
    assert sorted(map(str, module.make(Demand(k=2)).rows())) == sorted(map(str, module.PRINTED))
    assert verdict(result, "thesis.risk").finding == "1/2"


def test_the_leak_and_what_is_excluded(result: Result) -> None:
    assert verdict(result, "thesis.leak").finding == "l = 1: 2 of 6 patients are in a class of one treatment"
    assert verdict(result, "thesis.excluded").finding.startswith("7 of 12 ")
    assert {verdict(result, claim).standing for claim in ("thesis.leak", "thesis.excluded")} == {
        Standing.REPRODUCED
    }


def test_closeness_by_hand(result: Result) -> None:
    assert closeness(module.PRINTED) == Fraction(2, 3)
    closest = {row[0]: row[4] for row in table(result, "measures").rows}
    assert closest["2-anonymous"] == pytest.approx(2 / 3)
    districts = tuple(("*", place, treatment) for _, place, treatment in module.PRINTED)
    assert closeness(districts) == Fraction(1, 2)
    assert verdict(result, "thesis.close").standing is Standing.REPRODUCED
    assert "below 1/2" in verdict(result, "thesis.close").finding


def test_what_it_takes_to_stop_the_leak(result: Result) -> None:
    rows = {str(row[0]): row[1:] for row in table(result, "measures").rows}
    assert rows["names removed"][0] == 1
    assert rows["2-anonymous"][:3] == (2, 3, 1)
    assert rows["2-diverse"][:3] == (2, 2, 2)
    assert rows["t below 1/2"][:3] == (6, 1, 4)
    losses = [float(row[-1]) for row in rows.values()]  # type: ignore[arg-type]
    assert losses == sorted(losses)
    levels = module.make(Demand(k=2, l=Fraction(2))).levels
    assert levels == {"age": 2, "postcode": 1}  # ages go, districts stay


def test_beliefs_in_leukaemia(result: Result) -> None:
    told = {row[0]: row[1] for row in table(result, "beliefs").rows}
    assert told["2-anonymous"] == 1.0
    assert told["2-diverse"] == 0.5
    assert told["the shares of treatments alone"] == told["t below 1/2"] == pytest.approx(1 / 3)
    assert told["a private answer, ε = 1 (at most)"] == pytest.approx(0.5761, abs=1e-4)


def test_another_table_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = (*module.PATIENTS[:-1], (61, "25000", "asthma"))
    monkeypatch.setattr(module, "PATIENTS", changed)
    told = module.run.run(Settings())
    assert verdict(told, "thesis.table").standing is Standing.WRONG
    assert verdict(told, "thesis.leak").standing is Standing.WRONG


def test_figures_show_what_their_titles_say(result: Result) -> None:
    first, second = (figure for section in result.sections for figure in section.figures)
    rows = json.loads(json.dumps(first.chart))["datasets"]["rows"]
    old = {row["series"]: row["value"] for row in rows if row["place"] == "60+, Besançon"}
    assert old == {"asthma": 0.0, "cancer": 0.0, "HIV": 0.0, "leukaemia": 1.0}
    assert "must leave 42 %" in second.title


def test_it_can_be_kept(result: Result, tmp_path: Path) -> None:
    names = {path.name for path in result.write(tmp_path)}
    assert {"anonymity.html", "anonymity_verdicts.csv", "anonymity_figure_2.png"} <= names
    with (tmp_path / "anonymity_patients.csv").open(encoding="utf-8") as file:
        assert list(csv.reader(file))[-1] == ["61", "25000", "60+", "Besançon", "leukaemia"]


def test_the_documentation_has_these_verdicts(result: Result) -> None:
    assert told(result) == written("anonymity")
