import json
import shutil
from pathlib import Path

import pytest

from tests.cli.table_case import build, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    case = build(tmp_path_factory.mktemp("case"))
    place = case.folder / "out"
    assert run("release", case.spec, "-o", place)[0] == 0
    for name in ("people.csv", "people.toml", "people.ledger"):
        (case.folder / name).unlink()  # a report needs none of them
    return place


def test_the_page_is_made_again_from_what_was_published(folder: Path) -> None:
    page = folder / "report.html"
    first = page.read_text()
    page.unlink()
    code, out, err = run("report", folder)
    assert (code, err) == (0, "")
    assert str(page) in out
    assert page.read_text() == first


def test_a_page_that_was_not_published_does_not_go_into_the_folder(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    code, out, err = run("report", tmp_path / "copy", "--html", tmp_path / "copy" / "again.html")
    assert (code, out) == (2, "")
    assert "Put it elsewhere: --html page.html." in err
    assert run("certificate", "verify", tmp_path / "copy")[0] == 0


def test_it_goes_where_it_is_told(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    code, out, _ = run("report", folder, "--html", place, "--json")
    assert code == 0
    assert json.loads(out)["report"] == str(place)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("name", ["release.json", "certificate.json"])
@pytest.mark.parametrize("content", ["", "{}", '{"format": 99}', "[1]", None])
def test_a_folder_that_is_not_whole_is_refused(
    folder: Path, tmp_path: Path, name: str, content: str | None
) -> None:
    for each in ("release.json", "certificate.json"):
        (tmp_path / each).write_text((folder / each).read_text())
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    code, out, err = run("report", tmp_path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


def test_answers_and_certificate_must_belong_together(folder: Path, tmp_path: Path) -> None:
    certificate = json.loads((folder / "certificate.json").read_text())
    (tmp_path / "release.json").write_text((folder / "release.json").read_text())
    (tmp_path / "certificate.json").write_text(json.dumps(certificate | {"fingerprint": "0" * 64}))
    code, _, err = run("report", tmp_path)
    assert code == 2
    assert "belongs to another release" in err


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    code, _, err = run("report", tmp_path / "none")
    assert code == 2
    assert "Name the folder that 'sourdine release' wrote" in err


def test_no_page_is_drawn_from_numbers_that_somebody_changed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text((folder / "certificate.json").read_text())
    record = json.loads((folder / "release.json").read_text())
    (tmp_path / "release.json").write_text(json.dumps(record))  # the same numbers, but not the same file
    code, out, err = run("report", tmp_path)
    assert (code, out) == (2, "")
    assert "is not what was published with its certificate" in err
    assert not (tmp_path / "report.html").exists()
