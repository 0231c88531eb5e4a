"""Announcements: signed text that is read back as it was, prices, and every change of a character refused."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sourdine.accounting.certificate import SigningKey
from sourdine.collector.announcement import Announcement, SignedAnnouncement
from sourdine.collector.period import KeptPeriod
from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR, OUE, HadamardResponse, Question
from sourdine.local.rappor import BasicRappor
from tests.collector.parts import KEY, WORK, announced
from tests.errors import refusal_of

OPENS, CLOSES = date(2026, 11, 1), date(2026, 11, 30)


def terms(question: Question = WORK, **more: Any) -> Announcement:
    return Announcement(question=question, opens=OPENS, closes=CLOSES, **more)


@pytest.mark.parametrize(
    "question",
    [
        WORK,
        Question(name="größe é", oracle=HadamardResponse(epsilon=2, categories=50)),
        Question(name="again", oracle=BasicRappor(categories=4, f=0.5, p=0.25, q=0.75)),
    ],
)
def test_what_was_signed_is_read_back(question: Question) -> None:
    signed = SignedAnnouncement.sign(terms(question, period=KeptPeriod.WEEK, retention=3, answers=2), KEY)
    again = SignedAnnouncement.from_text(signed.to_text())
    assert again == signed
    assert again.confirmed_by(KEY.public)
    assert not again.confirmed_by(SigningKey.generate("other").public)


def test_the_signature_is_one_of_the_standard() -> None:
    """Checked with the library alone, by what the protocol says."""
    text = json.loads(SignedAnnouncement.sign(terms(), KEY).to_text())
    (signature,) = text["signatures"]
    message = b"sourdine announcement/1\n" + text["announcement"].encode()
    Ed25519PublicKey.from_public_bytes(KEY.public.raw).verify(bytes.fromhex(signature["signature"]), message)
    body = json.loads(text["announcement"])
    assert body["price"] == {"report": "1", "device": "1"}
    assert (body["identity"], body["width"]) == (WORK.identity, 1)
    assert body["thresholds"]["truth"]


def test_several_keys_may_sign() -> None:
    other = SigningKey.generate("new")
    signed = SignedAnnouncement.sign(terms(), KEY, other)
    assert signed.confirmed_by(KEY.public)
    assert signed.confirmed_by(other.public)


def test_a_changed_announcement_is_not_confirmed() -> None:
    signed = SignedAnnouncement.sign(terms(), KEY)
    changed = SignedAnnouncement.from_text(signed.to_text().replace("2026-11-30", "2026-12-30"))
    assert not changed.confirmed_by(KEY.public)
    later = SignedAnnouncement.sign(terms(retention=7), KEY)
    swapped = SignedAnnouncement(later.announcement, later.body, signed.signatures)
    assert not swapped.confirmed_by(KEY.public)


@pytest.mark.parametrize(
    "change",
    [
        {"price": {"report": "1", "device": "0.5"}},  # cheaper than it is
        {"identity": "0" * 64},
        {"width": 2},
        {"extra": 1},
        {"version": 0},
        {"version": "1"},
        {"opens": "2026-12-24"},
        {"closes": "2026-02-30"},
        {"period": "hour"},
        {"retention": -1},
        {"answers": 0},
        {"question": {"format": "sourdine local 2"}},
    ],
)
def test_what_does_not_hold_together_is_refused(change: dict[str, Any]) -> None:
    body = json.loads(terms().body()) | change
    with pytest.raises(InvalidParameter):
        Announcement.read_body(json.dumps(body))


@pytest.mark.parametrize("text", ["", "{}", "[1]", "{", '{"format": "sourdine announcement 1"}', "\x00"])
def test_what_is_no_announcement_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        SignedAnnouncement.from_text(text)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "work.announcement.json"
    path.write_text(announced().to_text(), encoding="utf-8")
    assert SignedAnnouncement.read(path) == announced()
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidParameter, match="json: The announcement cannot be read"):
        SignedAnnouncement.read(path)
    with pytest.raises(InvalidParameter, match="does not exist"):
        SignedAnnouncement.read(tmp_path / "none")


def test_the_price_of_a_device() -> None:
    """Thirty days with a secret of seven days are five secrets; each pays for each different answer."""
    assert terms().device_epsilon == 1
    assert terms(answers=3).device_epsilon == 3
    assert terms(secret_days=30).secrets == 1
    assert terms(secret_days=7, answers=2).device_epsilon == 10
    oracle = BasicRappor(categories=4, f=0.5, p=0.25, q=0.75)
    again = terms(Question(name="again", oracle=oracle), answers=2)
    assert again.report_epsilon == pytest.approx(oracle.epsilon_one)
    assert again.device_epsilon == pytest.approx(2 * oracle.epsilon_infinity)


def test_days() -> None:
    one = terms()
    day = timedelta(days=1)
    assert [one.is_open(each) for each in (OPENS - day, OPENS, CLOSES, CLOSES + day)] == [
        False,
        True,
        True,
        False,
    ]
    with refusal_of("closes", "Announcement"):
        Announcement(question=WORK, opens=CLOSES, closes=OPENS)
    with refusal_of("question", "Announcement"):
        Announcement(question=GRR(epsilon=1, categories=2), opens=OPENS, closes=CLOSES)  # type: ignore[arg-type]


def test_a_batch_fits_into_what_a_collector_takes() -> None:
    wide = Question(name="wide", oracle=OUE(epsilon=1, categories=1 << 16))
    assert terms(wide, batch=4096).batch == 4096
    with pytest.raises(InvalidParameter, match="at most 4,096"):
        terms(wide, batch=4097)
