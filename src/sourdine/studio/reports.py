"""Pages of Studio that are no steps: a ledger, a verdict, what epsilon means, what training costs.

They are the pages that the command line writes, with a way back. Nothing is spent by looking at them, and no
record is read.
"""

import base64
import hashlib
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from urllib.parse import quote

from starlette.responses import HTMLResponse

from sourdine.accounting.certificate import Verification, verify_release
from sourdine.accounting.dpsgd.training import Training
from sourdine.accounting.explain import explain_guarantee, explain_ledger
from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.report.pages.ledger import explanation_page, more_like_last, spending_page
from sourdine.report.pages.training import curves_page
from sourdine.report.verdict import ReleaseVerdict, judge, verdict_page
from sourdine.report.view import Page, Section
from sourdine.studio.folder import Folder
from sourdine.studio.review import read_number

_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)
_RUN = Training(size=60_000, batch_size=64, noise_multiplier=1.0, epochs=15)


def answer_with(page: Page) -> HTMLResponse:
    """A page as an answer; its own scripts run, which are named by what they hold, and no others."""
    text = page.html()
    digests = (base64.b64encode(hashlib.sha256(each.encode()).digest()) for each in _SCRIPT.findall(text))
    scripts = " ".join(f"'sha256-{each.decode()}'" for each in digests) or "'none'"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    )
    return HTMLResponse(text, headers={"Content-Security-Policy": policy})


def ledger_report(folder: Folder, name: str, base: str) -> Page:
    """What a ledger of the folder has paid, what is left, and how many more like the last charge fit."""
    ledger = _opened(folder, name)
    entries = ledger.history()
    page = spending_page(ledger.terms, ledger.status(), entries, more=more_like_last(ledger, entries))
    meaning = ("What all of it means for one " + ledger.terms.unit, f"{base}/meaning/{quote(name)}")
    return _with_ways(page, base, meaning)


def meaning_report(folder: Folder, name: str, base: str) -> Page:
    """What all that a ledger has paid means in odds."""
    ledger = _opened(folder, name)
    if not ledger.status().spent:
        raise InvalidParameter("Nothing was paid from this ledger yet, so there is nothing to explain.")
    return _with_ways(explanation_page(explain_ledger(ledger)), base)


def verdict_on(folder: Folder, name: str) -> tuple[ReleaseVerdict, Verification, str | None]:
    """The verdict on a release, what it was drawn from, and the ledger that paid if it lies here too."""
    place = folder.inside(name)
    if not (place / "certificate.json").is_file():
        raise InvalidParameter(f"There is no release {name} in this folder.")
    paid_by = _ledger_of(folder, verify_release(place).certificate.ledger)
    verification = verify_release(place, ledger=None if paid_by is None else folder.inside(paid_by))
    return judge(verification), verification, paid_by


def verdict_report(folder: Folder, name: str, base: str) -> Page:
    """The verdict on a release in the folder, with the ledger that paid if it lies there too."""
    verdict, verification, paid_by = verdict_on(folder, name)
    ways = () if paid_by is None else (("The ledger that paid", f"{base}/ledger/{quote(paid_by)}"),)
    return _with_ways(verdict_page(verdict, verification), base, *ways)


def epsilon_report(epsilon: str, delta: str, base: str) -> Page:
    """What an epsilon, perhaps with a delta, means."""
    exact, rest = read_number(epsilon), read_number(delta)
    if isinstance(exact, str) or isinstance(rest, str):
        raise InvalidParameter("An epsilon and a delta are numbers, such as 1 and 1e-6.")
    return _with_ways(explanation_page(explain_guarantee(Fraction(exact), Fraction(rest))), base)


def training_report(base: str) -> Page:
    """What private training costs, around one common run."""
    other = "For another run: sourdine budget curves -s SIZE -b BATCH -n NOISE -e EPOCHS --html FILE"
    page = _curves()
    return _with_ways(replace(page, lead=f"{page.lead} {other}."), base)


@cache
def _curves() -> Page:
    return curves_page(_RUN, 1e-5)


def _opened(folder: Folder, name: str) -> Ledger:
    place = folder.inside(name)
    if not place.is_file():
        raise InvalidParameter(f"There is no ledger {name} in this folder.")
    return Ledger.open(place)


def _ledger_of(folder: Folder, identity: str) -> str | None:
    """The ledger of the folder with an identity, by its name."""
    for name in folder.ledgers():
        try:
            if _opened(folder, name).status().ledger == identity:
                return name
        except (LedgerError, InvalidParameter):
            continue
    return None


def _with_ways(page: Page, base: str, *ways: tuple[str, str]) -> Page:
    """A page with links from it, back to Studio and onwards."""
    links = (("Back to Studio", f"{base}/"), *ways, ("What epsilon means", f"{base}/epsilon"))
    return replace(page, sections=(*page.sections, Section(title="Where to go", links=links)))
