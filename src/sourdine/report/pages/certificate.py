"""A certificate as people read it."""

from fractions import Fraction

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger.numbers import readable, remaining, room
from sourdine.core.format import plain, shorten_up
from sourdine.report.table import TextTable


def certificate_table(certificate: Certificate, limit: Fraction | None = None) -> TextTable:
    """What it states, one thing a row; with the limit of its ledger, how much of that is left."""
    paid = certificate.price
    also = "" if certificate.currency == "epsilon" else f", that is {epsilon_words(certificate)}"
    left = remaining(certificate.left, paid + certificate.left if limit is None else limit)
    of = "" if limit is None else f" of {room(limit)}"
    facts = (
        ("paid", f"{certificate.currency} {readable(paid)}{also}"),
        ("left of the budget", f"{certificate.currency} {left}{of}"),
        ("protects", f"each {certificate.unit} ({certificate.neighbours} neighbours)"),
        ("ledger", f"{certificate.ledger[:8]}, line {certificate.number}"),
        ("fingerprint of the line", f"{certificate.fingerprint[:16]}…"),
        ("time (UTC)", f"{certificate.time:%Y-%m-%d %H:%M}"),
        ("noise", "cryptographic" if certificate.secure else "SEEDED"),
        ("made with", certificate.software or "sourdine"),
        *((("not of this package", ", ".join(certificate.foreign)),) if certificate.foreign else ()),
    )
    return TextTable(name="certificate", title="Certificate", columns=("what", "stated"), rows=facts)


def epsilon_words(certificate: Certificate) -> str:
    """Its guarantee, never smaller than it is."""
    small = "" if certificate.delta is None else f", δ = {plain(certificate.delta)}"
    return f"ε = {shorten_up(certificate.epsilon)}{small}"
