"""What lies in the folder, and what does not."""

from pathlib import Path

import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.studio.folder import Folder
from tests.studio.conftest import Browser, studio_of


@pytest.mark.parametrize("name", ["../x.csv", "/etc/passwd", "a/../../x", "", "a\0b", "outside.csv"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (inner / "outside.csv").symlink_to(tmp_path / "secret.csv")
    folder = Folder.of(inner)
    with pytest.raises(InvalidParameter):
        folder.inside(name)
    assert folder.tables() == []


def test_tables_of_folders_in_it_are_listed(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for name in ("a.csv", "b/c/d.parquet", ".hidden/e.csv", "f.txt", "g.csv.gz"):
        (tmp_path / name).write_text("x\n")
    assert Folder.of(tmp_path).tables() == ["a.csv", "g.csv.gz", "b/c/d.parquet"]


def test_a_specification_that_names_another_folder_is_not_followed(browser: Browser, folder: Path) -> None:
    (folder / "other.toml").write_text(
        '[table]\nsource = "../../etc/passwd.csv"\n[privacy]\nunit = "a"\nepsilon = 1\n'
    )
    page = browser.get("/spec/other.toml").text
    assert "does not lie in the folder" in page


def test_a_table_elsewhere_is_not_begun_with(browser: Browser) -> None:
    assert browser.post("/start", {"table": "../x.csv"}).status_code == 422
    assert browser.post("/start", {"table": "/etc/passwd"}).status_code == 422


WHOLE = """
[table]
source = "{source}"
[privacy]
unit = "person"
epsilon = 1
ledger = "{ledger}"
[columns]
sex = {{ type = "category", keys = ["f", "m"] }}
age = {{ type = "integer", lower = 0, upper = 120 }}
[[queries]]
name = "sexes"
ask = ["count"]
by = ["sex"]
"""


def write(folder: Path, source: str = "people.csv", ledger: str = "people.ledger") -> None:
    (folder / "other.toml").write_text(WHOLE.format(source=source, ledger=ledger))


def outside(folder: Path) -> Path:
    """A place that is not in the folder."""
    place = folder.parent / f"{folder.name}-outside"
    place.mkdir()
    return place


@pytest.mark.parametrize("kind", ["relative", "whole", "link"])
def test_a_ledger_elsewhere_is_neither_opened_nor_made(browser: Browser, folder: Path, kind: str) -> None:
    away = outside(folder) / "away.ledger"
    Ledger.create(away, epsilon=3, unit="person").close()
    (folder / "link.ledger").symlink_to(away)
    name = {"relative": f"../{away.parent.name}/away.ledger", "whole": str(away), "link": "link.ledger"}[kind]
    write(folder, ledger=name)
    before = sorted(away.parent.iterdir())
    page = browser.get("/spec/other.toml").text
    assert "The ledger does not lie in the folder" in page
    assert "Left now" not in page
    version = browser.studio.desk.sheet("other.toml").file.version
    for asked in (
        {"act": "make-ledger", "value": "3"},
        {"act": "release", "into": "other-release", "sure": "yes"},
        {"act": "count-privately", "value": "0.1"},
        {"act": "find-bounds", "column": "age", "value": "0.1"},
    ):
        answer = browser.post("/spec/other.toml/act", {"version": version, **asked})
        assert answer.status_code == 422, asked
    away.unlink()
    answer = browser.post("/spec/other.toml/act", {"version": version, "act": "make-ledger", "value": "3"})
    assert answer.status_code == 422
    assert sorted(away.parent.iterdir()) == [each for each in before if each != away]


def test_no_server_is_asked_that_a_specification_names(browser: Browser, folder: Path) -> None:
    write(folder, ledger="postgresql://127.0.0.1:1/x#survey")
    assert "The ledger does not lie in the folder" in browser.get("/spec/other.toml").text


def test_a_ledger_elsewhere_pays_if_it_was_allowed_from_the_start(folder: Path) -> None:
    away = outside(folder) / "away.ledger"
    Ledger.create(away, epsilon=3, unit="person").close()
    write(folder, ledger=f"../{away.parent.name}/away.ledger")
    browser = Browser(studio_of(folder, ledger=str(away))).enter()
    assert "Left now" in browser.get("/spec/other.toml").text
    browser.act("other.toml", "release", into="other-release", sure="yes")
    browser.studio.desk.jobs.wait()
    with Ledger.open(away) as ledger:
        assert ledger.status().blocks == 1


@pytest.mark.parametrize("source", ["parts", "parts/*.csv", "*/more.csv", "p*s/[lm]*.csv"])
def test_links_in_patterns_and_folders_lead_nowhere_else(browser: Browser, folder: Path, source: str) -> None:
    away = outside(folder)
    (away / "secret.csv").write_text("age,sex\n31,f\n")
    (away / "more.csv").write_text("age,sex\n31,f\n")
    (folder / "parts").mkdir()
    (folder / "parts" / "a.csv").write_text("age,sex\n31,f\n")
    (folder / "parts" / "link.csv").symlink_to(away / "secret.csv")
    (folder / "linked").symlink_to(away)
    Ledger.create(folder / "people.ledger", epsilon=3, unit="person").close()
    write(folder, source=source)
    assert "holds a link that leads out of the folder" in browser.get("/spec/other.toml").text
    version = browser.studio.desk.sheet("other.toml").file.version
    for act in ("exact", "count-privately", "release", "find-bounds"):
        asked = {"version": version, "act": act, "into": "other-release", "sure": "yes", "value": "0.1"}
        assert browser.post("/spec/other.toml/act", {**asked, "column": "age"}).status_code == 422
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().blocks == 0


def test_a_link_that_is_newer_than_the_page_is_not_followed(browser: Browser, folder: Path) -> None:
    (outside(folder) / "secret.csv").write_text("age,sex\n31,f\n")
    (folder / "parts").mkdir()
    (folder / "parts" / "a.csv").write_text("age,sex\n31,f\n")
    Ledger.create(folder / "people.ledger", epsilon=3, unit="person").close()
    write(folder, source="parts")
    assert browser.studio.desk.sheet("other.toml").review.specification is not None
    (folder / "parts" / "link.csv").symlink_to(folder.parent / f"{folder.name}-outside" / "secret.csv")
    version = browser.studio.desk.sheet("other.toml").file.version
    for act in ("exact", "count-privately", "release"):
        asked = {"version": version, "act": act, "into": "other-release", "sure": "yes", "value": "0.1"}
        answer = browser.post("/spec/other.toml/act", asked)
        assert "leads out of the folder" in answer.json()["said"], act
    assert "checked = true" not in (folder / "other.toml").read_text()


def test_an_exact_count_is_of_what_was_seen_and_not_of_what_the_file_says_later(
    browser: Browser, folder: Path
) -> None:
    (outside(folder) / "secret.csv").write_text("age,sex\n31,f\n")
    write(folder)
    (text := folder / "other.toml").write_text(text.read_text().replace("people.csv", "../x/secret.csv"))
    version = browser.studio.desk.sheet("other.toml").file.version
    assert browser.post("/spec/other.toml/act", {"version": version, "act": "exact"}).status_code == 422
