"""`sourdine collect announce`: a question with its dates and its price, signed for devices."""

from fractions import Fraction
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.collect.tokens import read_private
from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import ask_passphrase
from sourdine.cli.shared.parse import AsJson, number, read_json
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, shorten_up

if TYPE_CHECKING:
    from sourdine.collector.announcement import Announcement


def announce(
    spec: Annotated[Path, typer.Argument(help="The specification that 'sourdine local spec' wrote.")],
    *,
    key: Annotated[
        list[Path], typer.Option(help="A private key (.key) to sign with; several while keys change.")
    ],
    closes: Annotated[str, typer.Option(help="The last day on which reports are taken, such as 2026-12-31.")],
    opens: Annotated[str | None, typer.Option(help="The first day. Without it: today.")] = None,
    period: Annotated[
        str,
        typer.Option(
            help="A device reports once in each, and no other time is kept: day, week, month, or whole (once "
            "in all)."
        ),
    ] = "whole",
    retention: Annotated[
        int, typer.Option(help="Days after its period that a single report is kept; counts stay.")
    ] = 90,
    answers: Annotated[
        int,
        typer.Option(
            help="The most different answers that a device reports on. Each costs epsilon; changes are seen."
        ),
    ] = 1,
    secret_days: Annotated[
        int, typer.Option(help="A device takes a new secret after this many days, and pays again. 0: never.")
    ] = 0,
    batch: Annotated[
        int,
        typer.Option(help="Reports come through a shuffler, at least this many together. 0: without one."),
    ] = 0,
    delta: Annotated[
        str,
        typer.Option("--delta", "-d", help="The delta at which the epsilon of a shuffled batch is stated."),
    ] = "1e-6",
    tokens: Annotated[
        Path | None,
        typer.Option(help="A key by 'collect token-key': each report then needs a token of its own."),
    ] = None,
    former_tokens: Annotated[
        list[Path] | None,
        typer.Option(
            help="An earlier key of tokens; unspent tokens of it stay good. Not one that was stolen."
        ),
    ] = None,
    version: Annotated[int, typer.Option("--revision", help="Higher than that of the one it replaces.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Without it: beside SPEC, *.announcement.json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sign a question, so that devices take it from whoever asks and from nobody else.

    Dates are days in UTC. The key stays with you: the server needs only the announcement. Keys
    are made by 'sourdine certificate keys'.

    Example: sourdine collect announce coffee.json --key office.key --closes 2026-12-31
    """
    from sourdine.accounting.certificate.keys import SigningKey
    from sourdine.collector.announcement import SUFFIX, Announcement, SignedAnnouncement
    from sourdine.collector.period import KeptPeriod, day_of, today
    from sourdine.collector.tokens.blind import public_text
    from sourdine.local.question import Question

    owner = "collect announce"
    kinds = {str(each): each for each in KeptPeriod}
    if period not in kinds:
        raise check.fail(owner, "period", f"be one of {', '.join(kinds)}", period)
    place = spec.with_suffix("").with_suffix(SUFFIX) if output is None else output
    show.check_place(place)
    announcement = Announcement(
        question=Question.from_json(read_json(spec)),
        opens=today() if opens is None else day_of(owner, "opens", opens),
        closes=day_of(owner, "closes", closes),
        version=version,
        period=kinds[period],
        retention=retention,
        answers=answers,
        secret_days=secret_days,
        batch=batch,
        tokens="" if tokens is None else public_text(read_private(tokens).public_key()),
        former_tokens=tuple(public_text(read_private(each).public_key()) for each in former_tokens or ()),
        delta=number(owner, "delta", delta, Fraction(1, 10**15), Fraction(1, 100)),
    )
    keys = [SigningKey.read(path, ask_passphrase) for path in key]
    signed = SignedAnnouncement.sign(announcement, *keys)
    try:
        with disk.shared():  # it is for everybody
            disk.write_whole(place, signed.to_text(), over=False)
    except FileExistsError:
        raise InvalidParameter(
            f"{place} exists already and is not written over: devices may have it. Choose another place "
            "with -o, and a higher --revision if it is to take the place of that one."
        ) from None
    if as_json:
        show.document(
            {
                "announcement": str(place),
                "fingerprint": announcement.fingerprint,
                "version": announcement.version,
                "keys": [each.public.id for each in keys],
                "public_keys": [each.public.raw.hex() for each in keys],
                "report_epsilon": announcement.report_epsilon,
                "device_epsilon": announcement.device_epsilon,
            }
        )
        return
    show.line(f"Wrote {place}: {announcement.fingerprint}, version {announcement.version}.")
    show.say(price_words(announcement))
    for each in keys:
        show.line(f"Pages take it by the key {each.public.raw.hex()}")
    if announcement.batch and not announcement.is_once:
        show.warn(
            "Devices may report more than once, so no epsilon of a shuffled batch will be claimed. "
            "Announce with --period whole and one answer if that is wanted."
        )
    secret = " --shuffler-secret pair.key" if announcement.batch else ""
    show.line(f"Next: sourdine collect serve {quote(show.one_line(str(place)))} --store reports.db{secret}")
    if announcement.batch:
        show.line("      beside 'sourdine collect shuffle' with the same pair.key, a file of random bytes")
    if announcement.tokens:
        show.line("      and 'sourdine collect issue', which gives out tokens for codes")


def price_words(announcement: "Announcement") -> str:
    """What devices pay, and how that comes to be."""
    each = shorten_up(announcement.report_epsilon, 6)
    total = shorten_up(announcement.device_epsilon, 6)
    secrets = (
        ""
        if announcement.secrets == 1
        else f" A device has {announcement.secrets} secrets by the end, and pays anew under each."
    )
    change = " That an answer changed is seen beside that." if announcement.answers > 1 else ""
    return (
        f"One report reveals at most epsilon {each} about its answer; all reports of one device together at "
        f"most {total}, with {counted(announcement.answers, 'different answer')} under one secret."
        f"{secrets}{change}"
    )
