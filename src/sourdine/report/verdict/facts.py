"""What a verdict tells of a release: what it is, about whom, its price, what is left, and what is assumed."""

from collections.abc import Iterator
from fractions import Fraction

from sourdine.accounting.certificate import Certificate, Verification
from sourdine.accounting.ledger.numbers import readable, remaining, room
from sourdine.core.distance import Neighbours
from sourdine.core.format import counted, plain, shorten_up
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.report.verdict.checks import brief
from sourdine.tables import ReleasePlan
from sourdine.tables.measurements.measurement import plural
from sourdine.tables.record import Record

_MOST_NAMES = 6
_GAP = "\N{NO-BREAK SPACE}"
_RELATIONS = {
    Neighbours.ADD_REMOVE: "whether or not one {unit} is in the data at all",
    Neighbours.REPLACE: "whatever one {unit} in the data holds; how many there are is no secret",
    Neighbours.ZERO_OUT: "whether or not the record of one {unit} was used",
}

Fact = tuple[str, str]  # what it is about, and the sentence


def facts(verification: Verification, record: Record | None, plan: ReleasePlan | None) -> tuple[Fact, ...]:
    """A few sentences, each under its word."""
    certificate = verification.certificate
    return (
        ("Published", _published(verification, record, plan)),
        ("About whom", _whom(certificate, record, plan)),
        ("Price", _price(certificate)),
        ("What is left", _left(verification, record)),
    )


def title_of(record: Record | None, verification: Verification) -> str:
    """What the release is called here: by the table it is about, or by its folder."""
    if record is None:
        return brief(verification.place.resolve().parent.name)
    return brief(" and ".join(record.specification.table.sources))


def _published(verification: Verification, record: Record | None, plan: ReleasePlan | None) -> str:
    certificate = verification.certificate
    when = f"Paid for on {certificate.time:%d %B %Y}, made with {brief(certificate.software or 'sourdine')}."
    if record is None or plan is None:
        names = list(certificate.digests)
        listed = ", ".join(map(brief, names[:_MOST_NAMES])) or "files that the certificate does not name"
        return f"{listed}. {when}"
    names = [brief(query.name) for query in plan.queries]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    numbers = sum(len(each.keys) for each in record.answers.each)
    return (
        f"{counted(numbers, 'noisy number')} about {title_of(record, verification)}: "
        f"{', '.join(names[:_MOST_NAMES])}{more}. {when}"
    )


def _whom(certificate: Certificate, record: Record | None, plan: ReleasePlan | None) -> str:
    unit = brief(certificate.unit)
    relation = _RELATIONS[Neighbours(certificate.neighbours)].format(unit=unit)
    size = ""
    if record is not None and record.quality is not None:
        value, lower, upper = (max(each, 0) for each in record.quality.records)  # noise goes below 0
        size = f" About {value:,.0f} records were read (between {lower:,.0f} and {upper:,.0f})."
    elif plan is not None and plan.size is not None:
        size = f" {counted(plan.size, 'record')}, as declared."
    return f"Each {unit} is protected, {relation}.{size}"


def _price(certificate: Certificate) -> str:
    delta = "" if certificate.delta is None else f", δ{_GAP}={_GAP}{plain(certificate.delta)}"
    also = ""
    if certificate.currency != "epsilon":
        also = f" ({certificate.currency} {readable(certificate.price)})"
    guarantee = f"ε{_GAP}={_GAP}{shorten_up(certificate.epsilon)}{delta}{also}"
    measurements = counted(len(certificate.spends), "measurement")
    return f"{guarantee} for each {brief(certificate.unit)}, in {measurements}. Smaller is more private."


def _left(verification: Verification, record: Record | None) -> str:
    certificate = verification.certificate
    payment = verification.payment
    status = None if payment is None else payment.status
    limit: Fraction | None = status.limit if status else record.limit if record else None
    if limit is None:
        then = f"After this release: {certificate.currency} {room(certificate.left)}"
    else:
        whole = f"{certificate.currency} {room(limit)}"
        then = f"After this release: {_remaining(certificate.left, limit)} of {whole}"
    if status is None:
        return f"{then}. What was spent since, the ledger knows."
    delta = "" if status.delta is None else f", δ{_GAP}={_GAP}{plain(status.delta)}"
    return (
        f"{then}. Today: {_remaining(status.left, status.limit)}. All that this ledger has paid so far "
        f"({counted(status.blocks, 'charge')}) comes to ε{_GAP}={_GAP}{shorten_up(status.epsilon)}{delta}."
    )


def _remaining(left: Fraction, limit: Fraction) -> str:
    return "nothing" if left == 0 else remaining(left, limit)


def assumptions(certificate: Certificate, plan: ReleasePlan | None) -> tuple[str, ...]:
    """What the guarantee rests on and no check can show."""
    return tuple(_assumptions(certificate, plan))


def _assumptions(certificate: Certificate, plan: ReleasePlan | None) -> Iterator[str]:
    unit = brief(certificate.unit)
    if plan is not None:
        yield _unit(plan.unit)
    if plan is not None and not plan.checked:
        yield "Bounds, keys and steps were declared without looking at the data."
    yield (
        f"No other ledger pays for data about the same {plural(unit)}. What is published elsewhere about "
        "them adds to the price."
    )
    yield "The numbers were computed by the program that is named here, unchanged: no certificate shows that."
    yield (
        f"It is no secret what the numbers say about {plural(unit)} in general: that can be used about "
        "somebody who never took part."
    )


def _unit(unit: PrivacyUnit) -> str:
    name = brief(unit.name)
    if unit.column is None:
        return (
            f"Each record is another {name}. A {name} with k records has k times the ε, and so much "
            "less protection."
        )
    return f"Records with the same '{brief(unit.column)}' are one {name}, and others are others."
