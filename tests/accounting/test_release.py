import json
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

import pytest

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.release import Release
from sourdine.core.errors import LedgerError
from tests.campaigns.ledger.crash import new_ledger, one_spend

SPEND = one_spend()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return new_ledger(tmp_path / "survey.ledger", Fraction(1))


def released(ledger: Ledger, **stated: object) -> Release:
    receipt = ledger.charge(SPEND, purpose="p", **stated)  # type: ignore[arg-type]
    declared: dict[str, str] | None = stated.get("declared")  # type: ignore[assignment]
    return Release(values=[5], intervals=[(3, 7)], spends=(SPEND,), receipt=receipt, declarations=declared)


def changed(certificate: Certificate, **changes: object) -> Certificate:
    return Certificate.from_json(json.dumps(json.loads(certificate.to_json()) | changes))


def test_all_that_was_recorded_is_confirmed(ledger: Ledger) -> None:
    made = released(ledger, secure=True, declared={"upper": "10"}).certificate(ledger)
    assert made.declared == {"upper": "10"}
    assert made.software == f"sourdine {version('sourdine')}"
    assert Certificate.from_json(made.to_json()) == made
    assert made.verify(ledger) == ()


def test_what_was_not_recorded_is_named(ledger: Ledger) -> None:
    made = released(ledger).certificate(ledger, {"upper": "10"})
    assert made.declared == {"upper": "10"}
    assert made.verify(ledger) == ("secure", "declared")


@pytest.mark.parametrize(
    "change",
    [
        {"declared": {"upper": "9"}},
        {"declared": {}},
        {"software": "sourdine 99"},
        {"price": "1/2000"},
        {"left": "1"},
        {"unit": "household"},
        {"neighbours": "replace"},
        {"time": "2020-01-01T00:00:00+00:00"},
        {"epsilon": 1e-9},
    ],
)
def test_a_changed_statement_is_refused_by_name(ledger: Ledger, change: dict[str, object]) -> None:
    made = released(ledger, secure=True, declared={"upper": "10"}).certificate(ledger)
    with pytest.raises(
        LedgerError, match=f"line 1 of the ledger differ in {next(iter(change))}. Do not rely"
    ):
        changed(made, **change).verify(ledger)


def test_seeded_noise_cannot_be_made_secure_afterwards(ledger: Ledger) -> None:
    made = released(ledger, secure=False).certificate(ledger)
    assert not made.secure  # what was recorded counts, though the release claims otherwise
    made.verify(ledger)
    with pytest.raises(LedgerError, match="differ in secure"):
        changed(made, secure=True).verify(ledger)


def test_seeded_noise_may_be_admitted_afterwards(ledger: Ledger) -> None:
    made = replace(released(ledger, secure=True), secure=False).certificate(ledger)
    assert not made.secure
    assert "secure" not in made.verify(ledger)


def test_other_declarations_than_those_recorded_are_not_certified(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="differ in declared"):
        released(ledger, declared={"upper": "10"}).certificate(ledger, {"upper": "9"})


def test_declarations_are_many_and_long_and_the_line_stays_short(ledger: Ledger) -> None:
    declared = {f"column {number}": "é" * 2_000 for number in range(500)}
    made = released(ledger, secure=True, declared=declared).certificate(ledger)
    assert made.declared == declared
    assert Certificate.from_json(made.to_json()).verify(ledger) == ()
    line = ledger._store.last()
    assert line is not None
    assert len(line.content) < 1000
    one = changed(made, declared=declared | {"column 499": "é" * 1_999 + "e"})
    with pytest.raises(LedgerError, match="differ in declared"):
        one.verify(ledger)


def test_the_order_of_declarations_says_nothing(ledger: Ledger) -> None:
    made = released(ledger, secure=True, declared={"a": "1", "b": "2"}).certificate(ledger)
    assert changed(made, declared={"b": "2", "a": "1"}).verify(ledger) == ()


def test_declarations_that_nobody_kept_are_asked_for(ledger: Ledger) -> None:
    made = replace(released(ledger, secure=True, declared={"upper": "10"}), declarations=None)
    with pytest.raises(LedgerError, match="Pass the same texts again"):
        made.certificate(ledger)
    assert made.certificate(ledger, {"upper": "10"}).verify(ledger) == ()


def test_a_line_of_old_holds_the_declarations_themselves(ledger: Ledger) -> None:
    """As version 0.1 wrote it, before there were digests."""
    written = released(ledger, secure=True, declared={"upper": "10"})
    ledger.close()
    line = ledger._store.last()
    assert line is not None
    held = json.loads(line.content)
    del held["declared_digest"]
    assert isinstance(ledger.path, Path)
    old = new_ledger(ledger.path.with_name("old.ledger"), Fraction(1))
    old._store.append(lambda last: (json.dumps(held | {"declared": {"upper": "10"}}), line.total))
    entry = old.history()[0]
    assert entry.declared == {"upper": "10"}
    assert written.receipt is not None
    receipt = replace(written.receipt, ledger=old.terms.identity, fingerprint=entry.fingerprint)
    made = replace(written, receipt=receipt, declarations=None).certificate(old)
    assert made.declared == {"upper": "10"}
    assert made.verify(old) == ()
    with pytest.raises(LedgerError, match="differ in declared"):
        changed(made, declared={"upper": "9"}).verify(old)


def test_other_spends_than_those_paid_are_not_certified(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="differ in spends"):
        replace(released(ledger), spends=(SPEND, SPEND)).certificate(ledger)


def test_only_the_ledger_that_paid_certifies(ledger: Ledger, tmp_path: Path) -> None:
    other = new_ledger(tmp_path / "other.ledger", Fraction(1))
    other.charge(SPEND, purpose="p")
    with pytest.raises(LedgerError, match="Another ledger paid"):
        released(ledger).certificate(other)
    with pytest.raises(LedgerError, match="not paid from a ledger"):
        Release(values=1, intervals=None, spends=(), receipt=None).certificate(ledger)


def test_a_backup_confirms_what_it_holds(ledger: Ledger, tmp_path: Path) -> None:
    early = released(ledger).certificate(ledger)
    kept = ledger.backup(tmp_path / "kept.ledger")
    late = released(ledger).certificate(ledger)
    early.verify(kept)
    with pytest.raises(LedgerError, match="no line 2 with this fingerprint"):
        late.verify(kept)


@pytest.mark.parametrize(
    "change",
    [
        {"secure": "false"},
        {"secure": 1},
        {"secure": None},
        {"number": "1"},
        {"number": True},
        {"number": 1.0},
        {"epsilon": "0.1"},
        {"delta": "1e-6"},
        {"declared": []},
        {"declared": {"upper": 10}},
        {"software": None},
        {"spends": {}},
        {"spends": [5]},
        {"spends": [{"mechanism": {"kind": "mechanisms.Nothing"}}]},
        {"time": 5},
        {"time": "yesterday"},
        {"price": "1e999999999"},
        {"price": 0.5},
        {"price": "1/0"},
        {"left": "-1"},
        {"format": 2},
        {"ledger": 5},
        {"unit": None},
        {"number": 0},
        {"number": 2**70},  # more than an engine counts
        {"neighbours": "nobody"},
    ],
)
def test_a_certificate_of_other_kinds_is_one_sentence(ledger: Ledger, change: dict[str, object]) -> None:
    made = released(ledger).certificate(ledger)
    with pytest.raises(LedgerError, match="certificate cannot be read"):
        changed(made, **change)


def test_a_line_that_is_no_charge_pays_for_nothing(ledger: Ledger) -> None:
    made = released(ledger).certificate(ledger)
    ledger.allow("ana", epsilon="0.1", author="olga")
    rule = ledger.history()[-1]
    free = changed(
        made,
        number=rule.number,
        fingerprint=rule.fingerprint,
        time=rule.time.isoformat(),
        price="0",
        epsilon=0.0,
        left=str(made.left),
        spends=[],
    )
    with pytest.raises(LedgerError, match="is no charge"):
        free.verify(ledger)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": 1, "spends": ' + "[" * 100_000, "", "[]", "null"]
)
def test_text_that_is_no_certificate_is_one_sentence(text: str) -> None:
    with pytest.raises(LedgerError, match="certificate cannot be read"):
        Certificate.from_json(text)


def test_a_field_left_out_is_one_sentence(ledger: Ledger) -> None:
    whole = json.loads(released(ledger).certificate(ledger).to_json())
    for name in whole.keys() - {"digests"}:  # which certificates of old have not
        with pytest.raises(LedgerError, match="certificate cannot be read"):
            Certificate.from_json(json.dumps({key: value for key, value in whole.items() if key != name}))


def test_digests_come_back_and_need_no_ledger(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_bytes(b"abc")
    made = released(ledger).certificate(ledger).with_digests([tmp_path / "answers.csv"])
    # the first example of FIPS 180-4
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert made.digests == {"answers.csv": known}
    assert Certificate.from_json(made.to_json()) == made
    assert made.verify(ledger) == ("secure", "declared")
