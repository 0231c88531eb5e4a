import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sourdine.accounting.certificate import PublicKey, verify_release
from sourdine.report.verdict import Light, judge, verdict_page
from tests.cli.certificate.release_case import SignedRelease, build_signed


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> SignedRelease:
    return build_signed(tmp_path_factory.mktemp("case"))


def page_of(case: SignedRelease) -> str:
    verification = verify_release(case.folder, ledger=case.ledger, keys=[PublicKey.read(case.public)])
    return verdict_page(judge(verification), verification).html()


def test_the_light_is_a_word_and_a_sign_too(signed: SignedRelease, tmp_path: Path) -> None:
    text = page_of(signed)
    assert re.search(r'class="light yellow"[^>]*>\s*<span class="sign" aria-hidden="true">!</span>', text)
    assert ">YELLOW<" in text
    case = signed.copied(tmp_path / "copy")
    (case.folder / "answers.csv").unlink()
    assert '<span class="sign" aria-hidden="true">✗</span>' in page_of(case)
    assert re.search(r'<tr class="failed"><td class="name">Files</td>.*✗</b> failed', page_of(case))


def test_the_page_loads_nothing_and_has_no_script(signed: SignedRelease) -> None:
    text = page_of(signed)
    assert "<script" not in text
    assert not re.search(r"(src|href)=", text)


def test_the_bar_is_not_narrower_than_the_guarantee(signed: SignedRelease) -> None:
    verification = verify_release(signed.folder)
    verdict = judge(verification)
    assert verdict.light is Light.YELLOW
    bar = verdict_page(verdict, verification).bar
    assert bar is not None
    # e^(1/4) / (1 + e^(1/4)) is 0.56218
    assert (bar.lower, bar.upper) == (43, 57)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no chromium")
@pytest.mark.parametrize("size", ["A4", "letter"])
@pytest.mark.parametrize("worst", [False, True])
def test_it_prints_on_one_page(signed: SignedRelease, tmp_path: Path, size: str, worst: bool) -> None:
    case = signed.copied(tmp_path / "copy")
    if worst:
        for place in range(20):
            (case.folder / f"{'long' * 50}{place}").write_text("x")
        (case.folder / "certificate.json").write_text((case.other / "certificate.json").read_text())
    page = page_of(case).replace("@page { ", f"@page {{ size: {size}; ")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    words = ["chromium", *flags, "--print-to-pdf=page.pdf", f"file://{tmp_path}/page.html"]
    subprocess.run(words, check=True, cwd=tmp_path, capture_output=True)
    # Chromium writes a page's dictionary as plain text, one for each sheet
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())) == 1
