"""`sourdine audit`: measure how much mechanisms reveal, against what they claim."""

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli import show
from sourdine.cli.audit_attack import attack
from sourdine.cli.audit_plan import plan
from sourdine.cli.audit_training import training
from sourdine.cli.group import VerbOrName
from sourdine.cli.seed import Seed, bits_of
from sourdine.core.digits import plain
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.audit import LowerBound
    from sourdine.core.bits import Bits

app = typer.Typer(cls=VerbOrName)
app.command(name="attack")(attack)
app.command(name="plan")(plan)
app.command(name="training")(training)
_ENOUGH = 10**6  # samples
_ABOVE, _NOT_REFUTED, _OUT_OF_REACH = "ABOVE ITS CLAIM", "not refuted", "out of reach"


@app.callback(invoke_without_command=True)
def audit(
    ctx: typer.Context,
    *,
    name: Annotated[str | None, typer.Argument(help="A mechanism, such as Laplace.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Audit every mechanism.")] = False,
    broken: Annotated[
        bool, typer.Option("--mutants", help="Audit mechanisms broken on purpose: all must be caught.")
    ] = False,
    samples: Annotated[int, typer.Option(help="Answers drawn for each of two neighbours.")] = _ENOUGH,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Audit mechanisms: a lower bound on epsilon from answers alone, beside the epsilon they claim.

    An audit can refute a claim, never prove it. An honest mechanism is accused at most once in a million
    runs. Exit code 1 means that a mechanism is above its claim, or that a mutant got away.

    Examples: sourdine audit Laplace · sourdine audit --all · sourdine audit --mutants ·
    sourdine audit attack · sourdine audit plan · sourdine audit training
    """
    if ctx.invoked_subcommand is not None:
        return
    given = [name or "", "--all" if everything else "", "--mutants" if broken else ""]
    if not any(given):
        raise InvalidParameter("Say what to audit: the name of one mechanism, or --all, or --mutants.")
    if len(named := [each for each in given if each]) > 1:
        raise InvalidParameter(
            f"{' and '.join(named)} were given together. An audit takes one of them. Leave out the others."
        )
    bits = bits_of("audit", seed)
    good = _mutants(samples, bits, as_json) if broken else _mechanisms(name, samples, bits, as_json)
    raise typer.Exit(0 if good else 1)


def _mechanisms(name: str | None, samples: int, bits: "Bits", as_json: bool) -> bool:
    """Audit honest mechanisms; true when none is above its claim."""
    from sourdine.audit.lower_bound import FALSE_ALARM, bound_epsilon
    from sourdine.audit.reach import farthest
    from sourdine.audit.subjects import change, find_examples, title

    examples = find_examples(name)
    alarm = FALSE_ALARM / len(examples)
    found = [
        (one, bound_epsilon(one, samples=samples, false_alarm=alarm, bits=bits))
        for one in show.progress("auditing", examples)
    ]
    above = sum(bound.exceeded for _, bound in found)
    reach = farthest(samples, alarm)
    if as_json:
        results = [
            {"mechanism": title(one.mechanism), "change": change(one)}
            | _plain(bound)
            | {"verdict": _verdict(bound, reach)}
            for one, bound in found
        ]
        show.document({"false_alarm": FALSE_ALARM, "above": above, "results": results})
        return not above
    show.table(
        ("mechanism", "change", "claimed", "audited", "verdict"),
        [
            (
                title(one.mechanism),
                change(one),
                _claimed(bound),
                f"{bound.audited:.3f}",
                _verdict(bound, reach),
            )
            for one, bound in found
        ],
        numbers=("claimed", "audited"),
    )
    show.line(f"{above} of {len(found)} above their claim, at {samples:,} samples each.")
    for advice in _advise(samples, alarm, [bound.claimed for _, bound in found]):
        show.say(advice)
    return not above


def _mutants(samples: int, bits: "Bits", as_json: bool) -> bool:
    """Examine every mutant; true when all are caught."""
    from sourdine.audit.lower_bound import FALSE_ALARM
    from sourdine.audit.mutants import all_mutants, examine

    herd = all_mutants()
    alarm = FALSE_ALARM / len(herd)
    found = [
        (one, examine(one, samples=samples, false_alarm=alarm, bits=bits))
        for one in show.progress("examining mutants", herd)
    ]
    caught = sum(verdict.caught_by is not None for _, verdict in found)
    if as_json:
        results = [
            {
                "mutant": one.name,
                "fault": one.fault,
                "caught_by": verdict.caught_by,
                "p_value": verdict.p_value,
            }
            | _plain(verdict.bound)
            for one, verdict in found
        ]
        show.document({"false_alarm": FALSE_ALARM, "caught": caught, "of": len(herd), "results": results})
        return caught == len(herd)
    show.table(
        ("mutant", "what is wrong", "caught by", "claimed", "audited", "same law (p)"),
        [
            (
                one.name,
                one.fault,
                verdict.caught_by or "NOTHING",
                _claimed(verdict.bound),
                f"{verdict.bound.audited:.3f}",
                "" if verdict.p_value is None else f"{verdict.p_value:.1g}",
            )
            for one, verdict in found
        ],
        numbers=("claimed", "audited", "same law (p)"),
    )
    show.line(f"caught {caught}/{len(herd)}")
    return caught == len(herd)


def _verdict(bound: "LowerBound", reach: float) -> str:
    """How a claim stands; an audit never shows that it is true."""
    if bound.exceeded:
        return _ABOVE
    return _NOT_REFUTED if bound.claimed < reach or math.isinf(bound.claimed) else _OUT_OF_REACH


def _advise(samples: int, alarm: float, claims: list[float]) -> list[str]:
    """How many samples would tell more, where that helps."""
    from sourdine.audit.lower_bound import MOST_SAMPLES
    from sourdine.audit.reach import farthest, samples_for

    reach = farthest(samples, alarm)
    beyond = [claim for claim in claims if reach <= claim < math.inf]
    said = []
    if beyond:
        needed = samples_for(max(beyond), alarm)
        remedy = f"Give --samples {needed} or more." if needed <= MOST_SAMPLES else "No audit goes that far."
        said.append(
            f"Out of reach: {samples:,} samples cannot show any epsilon above {reach:.3g}, whatever a "
            f"mechanism does. {remedy}"
        )
    if samples < _ENOUGH:
        said.append(
            f"{samples:,} samples are few: only a mechanism far above its claim is found out. Four times as "
            f"many halve the gap between audited and claimed; {_ENOUGH:,} are the default."
        )
    return said


def _claimed(bound: "LowerBound") -> str:
    return f"{bound.claimed:.3f}" + (f" (δ {plain(bound.delta)})" if bound.delta else "")


def _plain(bound: "LowerBound") -> dict[str, object]:
    fields = dataclasses.asdict(bound) | {"exceeded": bound.exceeded}
    return fields | {"claimed": bound.claimed if math.isfinite(bound.claimed) else None}
