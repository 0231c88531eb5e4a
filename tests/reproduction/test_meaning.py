import json
from pathlib import Path

import pytest
from mpmath import exp, mp, mpf

from sourdine.accounting.explain import EPSILONS, PRIORS
from sourdine_reproduction import Result, Settings, Standing, find_experiments
from sourdine_reproduction import meaning as module
from sourdine_reproduction.meaning import PRINTED
from tests.reproduction.results import told, written


@pytest.fixture(scope="module")
def result() -> Result:
    return find_experiments()["meaning"].run(Settings(quick=True))


def test_the_printed_table_is_what_the_formula_says() -> None:
    with mp.workdps(30):
        for prior, row in zip(PRIORS, PRINTED, strict=True):
            for epsilon, printed in zip(EPSILONS, row, strict=True):
                p = mpf(prior.numerator) / prior.denominator
                after = 100 * p / (p + exp(-mpf(str(epsilon))) * (1 - p))
                assert abs(after - mpf(printed)) <= mpf("0.005")


def test_verdicts(result: Result) -> None:
    table, bounds, premium, variation, delta, total, density = result.verdicts
    assert table.finding == "88 of 88 equal to the printed digit"
    assert {each.standing for each in (table, bounds, premium)} == {Standing.REPRODUCED}
    assert "2,020.11" in premium.finding
    assert "0.4621" in variation.finding
    assert variation.standing is Standing.WRONG
    assert delta.standing is Standing.WRONG
    assert delta.finding.startswith("can be 0.269 ")
    assert total.finding == "ε; so 0.25 at ε = 0.25"
    assert {each.standing for each in (total, density)} == {Standing.WRONG}


def test_a_misprint_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = (("1.02", *PRINTED[0][1:]), *PRINTED[1:])
    monkeypatch.setattr(module, "PRINTED", changed)
    told = module.run.run(Settings())
    assert told.verdicts[0].standing is Standing.WRONG
    assert told.verdicts[0].finding.startswith("87 of 88")
    assert told.sections[0].tables[0].rows[0][1] == "1.02, ours 1.01"


def test_losses_exceed_epsilon_more_often_than_delta(result: Result) -> None:
    table = next(table for section in result.sections for table in section.tables if table.name == "losses")
    for _, _, delta, above in table.rows:
        assert float(above) > 2 * float(delta)  # type: ignore[arg-type]


def test_the_figures_show_both_bounds(result: Result) -> None:
    first, second = next(section for section in result.sections if section.figures).figures
    rows = json.loads(json.dumps(first.chart))["datasets"]["rows"]
    half = {row["bound"]: row["after"] for row in rows if row["before"] == 0.5}
    assert half == {"at most": 0.75, "at least": 0.25, "unchanged": 0.5}
    assert "25\N{NO-BREAK SPACE}% and 75\N{NO-BREAK SPACE}%" in first.title
    assert len(json.loads(json.dumps(second.chart))["datasets"]["rows"]) > 500


def test_it_can_be_kept(result: Result, tmp_path: Path) -> None:
    names = {path.name for path in result.write(tmp_path)}
    assert {"meaning.html", "meaning_verdicts.csv", "meaning_printed.csv", "meaning_losses.csv"} <= names
    assert "16.87" in (tmp_path / "meaning_printed.csv").read_text(encoding="utf-8")


def test_the_documentation_has_these_verdicts(result: Result) -> None:
    assert told(result) == written("meaning")
