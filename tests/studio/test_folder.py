"""What lies in the folder, and what does not."""

from pathlib import Path

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.studio.folder import Folder
from tests.studio.conftest import Browser


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
