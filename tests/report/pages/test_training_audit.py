import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from sourdine.audit.training import Check, Secrecy, TrainingAudit
from sourdine.core.display import picture
from sourdine.report.pages.training_audit import draw_roc, training_audit_page


def audit(apart: float, audited: float) -> TrainingAudit:
    random = np.random.default_rng(1)
    included = np.arange(400) % 2 == 0
    scores = random.normal(size=400) + apart * included
    scores[3] = -np.inf  # a model that went astray
    return TrainingAudit(
        claimed=2.0,
        audited=audited,
        delta=1e-6,
        confidence=0.95,
        right=90,
        guesses=100,
        scores=scores,
        included=included,
        reach=9.0,
    )


def test_the_page_says_what_was_found() -> None:
    page = training_audit_page(audit(1.0, 0.7), "A model was trained.")
    text = page.html()
    assert page.title == "Not refuted: ε is at least 0.7, and 2 was claimed"
    assert "90 of 100 right, about 400 canaries" in text
    assert "A model was trained." in text
    broken = training_audit_page(audit(50.0, 3.0), "A model was trained.")
    assert broken.title == "Above its claim: ε is at least 3, and 2 was claimed"
    assert "100 % of those who were in are recognised" in broken.html()
    assert picture(broken.sections[1].figures[1]).startswith(b"\x89PNG")


def test_a_paid_audit_says_what_is_left_out() -> None:
    made = replace(audit(1.0, 0.7), checks=(Check(name="steps", finding="3 of 3", chance=1.0, alarm=1e-7),))
    assert "no ledger could pay" not in training_audit_page(made, "Trained.").html()
    paid = training_audit_page(replace(made, secrecy=Secrecy.PAID), "Trained.").html()
    assert "Noise and batches are not told of: no ledger could pay" in paid


def test_the_curve_is_drawn_beside_what_the_claim_allows() -> None:
    spec = json.loads(json.dumps(draw_roc(audit(50.0, 3.0)), allow_nan=False))
    rows = spec["datasets"]["rows"]
    allowed = {row["others"]: row["members"] for row in rows if row["series"].startswith("the most")}
    least = min(allowed)
    assert least == pytest.approx(1 / 200)
    assert allowed[least] == pytest.approx(np.exp(2) / 200 + 1e-6)
    attack = [row["members"] for row in rows if row["series"].startswith("the attack")]
    assert attack[0] == 1.0
