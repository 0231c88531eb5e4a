from pathlib import Path

from sourdine.accounting.ledger import Ledger
from sourdine.core.display import picture
from sourdine.report.pages.series import synthetic_page
from sourdine.testing import SeededBits
from tests.tables.synthetic.case import table


def test_the_page_says_what_was_measured_and_what_was_not(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l", epsilon=3, delta=1e-6, unit="person") as ledger:
        release = table().synthesize(
            epsilon=2, delta=1e-6, ledger=ledger, target="sex", leave_out=["pay"], bits=SeededBits(1)
        )
        page = synthetic_page(release, release.certificate(ledger))
    titles = [section.title for section in page.sections]
    assert titles[0] == "This table protects nobody"  # seeded
    assert "Relations that were measured where sex is f" in titles
    text = page.html()
    assert "Left out: pay." in text
    edges = release.model.edges(release.model.parts[0])
    assert all(one in text and other in text for one, other in edges)
    residuals = release.residuals
    assert len(residuals) == 3 * (3 + 2)  # parts, the missing one too, of three columns and two pairs
    assert max(each.mean for each in residuals) < 3


def test_a_release_shows_itself(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l", epsilon=3, delta=1e-6, unit="person") as ledger:
        release = table(500).synthesize(
            epsilon=2, delta=1e-6, ledger=ledger, columns=["sex", "town", "works"]
        )
    assert "Synthetic table of" in str(release)
    assert repr(release).startswith("<SyntheticRelease of")
    figure = release.chart()
    assert picture(figure)[:4] == b"\x89PNG"
