import json

import vl_convert

from sourdine.audit.attacks import AttackChart, AttackResult, ChartPoint, Outcome
from sourdine.audit.attacks.attack import Arm
from sourdine.report.charts.base import COLOURS, GREY
from sourdine.report.pages.training_audit import attack_page, attack_rows, draw_attack

BARS = AttackChart(
    finding="Bars",
    across="people found",
    up="what is known",
    points=(
        ChartPoint(Arm.UNPROTECTED, "all", 0.9),
        ChartPoint(Arm.PROTECTED, "all", 0.1),
        ChartPoint(Arm.UNPROTECTED, "some", 0.5),
    ),
)
LINES = AttackChart(
    finding="Lines",
    across="days",
    up="answers found",
    points=tuple(
        ChartPoint(s, d, 0.5) for s in (Arm.PROTECTED, Arm.UNPROTECTED, Arm.BLIND) for d in (1, 10, 100)
    ),
    log=True,
    note="A note.",
)


def drawn(chart: AttackChart) -> str:
    return str(vl_convert.vegalite_to_svg(json.dumps({**draw_attack(chart), "width": 600})))


def test_bars_tell_their_values_and_axes() -> None:
    svg = drawn(BARS)
    for told in ("people found", "what is known", "90%", "10%", "50%", "some", COLOURS[0], COLOURS[1]):
        assert told in svg


def test_protection_has_its_colour_wherever_it_stands() -> None:
    svg = drawn(LINES)
    for told in ("days", "answers found", COLOURS[0], COLOURS[1], GREY, Arm.BLIND):
        assert told in svg
    assert COLOURS[2] not in svg


def test_no_two_series_share_a_colour() -> None:
    points = tuple(ChartPoint(series, 1.0, 0.5) for series in ("48 people", Arm.PROTECTED, "96 people"))
    svg = drawn(AttackChart(finding="Colours", across="noise", up="bits", points=points))
    assert all(svg.count(colour) == svg.count(COLOURS[0]) for colour in COLOURS[2:4])
    assert COLOURS[1] not in svg


def test_a_page_with_figures_and_limits() -> None:
    found = AttackResult(
        name="toy",
        attacked="A toy with a key.",
        goal="toys opened",
        unprotected=Outcome(target="key in the lock", hits=99, tries=100),
        protected=Outcome(target="key at home", hits=1, tries=1000),
        chance=0.002,
        guess="any key",
        limit=0.01,
        why="a hundred keys",
        finding="Keys open toys",
        lesson="Take the key out.",
        charts=(BARS, LINES),
    )
    gap = "\N{NO-BREAK SPACE}%"
    assert attack_rows(found) == (
        ("without protection", "key in the lock", f"99.0{gap}", "99", "100"),
        ("with protection", "key at home", f"0.1{gap}", "1", "1,000"),
        ("the most that protection allows", "a hundred keys", f"1.0{gap}", "", ""),
        ("seeing nothing", "any key", f"0.2{gap}", "", ""),
    )
    html = attack_page(found).html()
    for told in (
        "<h1>Keys open toys</h1>",
        "A toy with a key.",
        "Take the key out.",
        "A note.",
        "toys opened",
    ):
        assert told in html
