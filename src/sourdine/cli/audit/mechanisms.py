"""`sourdine audit`: measure how much mechanisms reveal, against what they claim."""

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.audit.attack import attack
from sourdine.cli.audit.plan import plan
from sourdine.cli.audit.series import series
from sourdine.cli.audit.synthetic import synthetic
from sourdine.cli.audit.training import training
from sourdine.cli.shared import show
from sourdine.cli.shared.app import VerbOrName
from sourdine.cli.shared.parse import AsJson, Seed, check_seed
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import plain

if TYPE_CHECKING:
    from sourdine.audit import LowerBound, Verdict

app = typer.Typer(cls=VerbOrName)
app.command(name="attack")(attack)
app.command(name="plan")(plan)
app.command(name="series")(series)
app.command(name="synthetic")(synthetic)
app.command(name="training")(training)
_ENOUGH = 10**6  # samples
_ABOVE, _NOT_REFUTED, _OUT_OF_REACH = "ABOVE ITS CLAIM", "not refuted", "out of reach"
_ANOTHER_LAW, _TIED, _REPRESENTED = "ANOTHER LAW", "ANSWERS TIED", "BITS OR TYPES TELL"


@app.callback(invoke_without_command=True)
def audit(
    ctx: typer.Context,
    *,
    name: Annotated[str | None, typer.Argument(help="A mechanism, such as Laplace.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Audit every mechanism.")] = False,
    samples: Annotated[int, typer.Option(help="Answers drawn for each of two neighbours.")] = _ENOUGH,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Audit mechanisms: a lower bound on epsilon from answers alone, beside the epsilon they claim.

    The answers are also compared with those that a textbook draws in floats, and with each other: a law other
    than the one stated, noise used twice in a call, and bits or types of answers that tell more than their
    values, are reported as well. An audit can refute a claim, never prove it. An honest mechanism is
    accused at most once in a million runs. Exit code 1 means that one was accused.

    Examples: sourdine audit Laplace · sourdine audit --all · sourdine audit attack ·
    sourdine audit plan people.toml · sourdine audit synthetic · sourdine audit training
    """
    if ctx.invoked_subcommand is not None:
        return
    if (name is not None) is everything:
        raise InvalidParameter("Say what to audit: the name of one mechanism, or else --all.")
    check_seed("audit", seed)
    raise typer.Exit(0 if _mechanisms(name, samples, seed, as_json) else 1)


def _mechanisms(name: str | None, samples: int, seed: int | None, as_json: bool) -> bool:
    """Audit honest mechanisms; true when nothing speaks against any of them."""
    from functools import partial

    from sourdine.audit.examination import examine, in_order
    from sourdine.audit.lower_bound import FALSE_ALARM, farthest
    from sourdine.audit.outcomes import change, find_examples, title

    examples = find_examples(name)
    alarm = FALSE_ALARM / len(examples)
    tasks = [
        lambda bits, one=one: examine(one, samples=samples, false_alarm=alarm, bits=bits) for one in examples
    ]
    verdicts = list(zip(show.progress("auditing", examples), in_order(tasks, seed), strict=True))
    above = sum(verdict.bound.exceeded for _, verdict in verdicts)
    wrong = sum(verdict.caught_by is not None for _, verdict in verdicts) - above
    verdict_of = partial(_verdict, reach=farthest(samples, alarm / 2))
    if as_json:
        results = [
            {"mechanism": title(one.mechanism), "change": change(one)}
            | _plain(verdict)
            | {"verdict": verdict_of(verdict)}
            for one, verdict in verdicts
        ]
        show.document({"false_alarm": FALSE_ALARM, "above": above, "wrong": wrong, "results": results})
        return not above + wrong
    show.table(
        ("mechanism", "change", "claimed", "audited", "law (p)", "verdict"),
        [
            (
                title(one.mechanism),
                change(one),
                _claimed(verdict.bound),
                f"{verdict.bound.audited:.3f}",
                _p_value(verdict.law),
                verdict_of(verdict),
            )
            for one, verdict in verdicts
        ],
        numbers=("claimed", "audited", "law (p)"),
    )
    show.say(
        f"{above} of {len(verdicts)} above their claim, {wrong} with another law than stated, with answers "
        f"that are tied or with bits that tell more, at {samples:,} samples each."
    )
    for note in dict.fromkeys(verdict.unchecked for _, verdict in verdicts if verdict.unchecked):
        show.say(note)
    for advice in _advise(samples, alarm / 2, [verdict.bound.claimed for _, verdict in verdicts]):
        show.say(advice)
    return not above + wrong


def _verdict(verdict: "Verdict", reach: float) -> str:
    """How a claim stands; an audit never shows that it is true."""
    words = {
        "audit": _ABOVE,
        "representation": _REPRESENTED,
        "law test": _ANOTHER_LAW,
        "independence test": _TIED,
    }
    if verdict.caught_by is not None:
        return words[verdict.caught_by]
    claimed = verdict.bound.claimed
    return _NOT_REFUTED if claimed < reach or math.isinf(claimed) else _OUT_OF_REACH


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.1g}"


def _advise(samples: int, alarm: float, claims: list[float]) -> list[str]:
    """How many samples would tell more, where that helps."""
    from sourdine.audit.lower_bound import MOST_SAMPLES, farthest, samples_for

    reach = farthest(samples, alarm)
    beyond = [claim for claim in claims if reach <= claim < math.inf]
    advice = []
    if beyond:
        needed = samples_for(max(beyond), alarm)
        remedy = f"Give --samples {needed} or more." if needed <= MOST_SAMPLES else "No audit goes that far."
        advice.append(
            f"Out of reach: {samples:,} samples cannot show any epsilon above {reach:.3g}, whatever a "
            f"mechanism does. {remedy}"
        )
    if samples < _ENOUGH:
        advice.append(
            f"{samples:,} samples are few: only a mechanism far above its claim is found out. Four times as "
            f"many halve the gap between audited and claimed; {_ENOUGH:,} are the default."
        )
    return advice


def _claimed(bound: "LowerBound") -> str:
    return f"{bound.claimed:.3f}" + (f" (δ {plain(bound.delta)})" if bound.delta else "")


def _plain(verdict: "Verdict") -> dict[str, object]:
    bound = verdict.bound
    fields = dataclasses.asdict(bound) | {"exceeded": bound.exceeded}
    claimed = bound.claimed if math.isfinite(bound.claimed) else None
    return fields | {
        "claimed": claimed,
        "law": verdict.law,
        "unchecked": verdict.unchecked or None,
        "ties": verdict.ties,
        "representation": verdict.representation,
    }
