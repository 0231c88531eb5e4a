"""The terms of a new ledger and the rules of its allowances, from a budget as people say it."""

import json
import math
import shlex
from collections.abc import Callable, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from sourdine.accounting.accountant import left_of
from sourdine.accounting.ledger.allowance import Allow
from sourdine.accounting.ledger.budget import (
    AdditiveBudget,
    BasicBudget,
    Budget,
    ConcentratedBudget,
    GaussianBudget,
    OdometerBudget,
    PureBudget,
    RenyiBudget,
    RenyiGridBudget,
)
from sourdine.accounting.ledger.numbers import room
from sourdine.accounting.ledger.terms import Period, Terms, check_text
from sourdine.accounting.spend import Spend, plan_cost
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import float_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either, parse, plain, shorten_up


class Composition(StrEnum):
    """How a budget of (epsilon, delta) adds up charges that may depend on earlier answers."""

    ZCDP = "zcdp"
    BASIC = "basic"
    RENYI = "renyi"


Number = int | float | Fraction | str
"""A number as it is meant: 0.1 and "0.1" are a tenth."""
E = TypeVar("E", bound=StrEnum)
_LARGE_DELTA, _USUAL_DELTA = 1e-3, 1e-6


def in_python(name: str, value: str = "") -> str:
    """A parameter as it is written in Python."""
    return f"{name}={value}" if value else f"'{name}'"


def make_terms(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    order: Number | None = None,
    divergence: Number | None = None,
    mu: Number | None = None,
    composition: Composition | str | None = None,
    unlimited: bool = False,
    selection_delta: Number | None = None,
    unit: str = "person",
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    period: Period | str | None = None,
    period_limit: Number | None = None,
    owner: str = "Ledger.create",
    say: Callable[..., str] = in_python,
) -> Terms:
    """The terms for a budget of epsilon, with a delta or without, of rho, mu, or a Renyi divergence.

    With epsilon and delta, `composition` says how charges add up: in rho ("zcdp", the default), as pairs of
    epsilon and delta ("basic"), or in Renyi divergences of several orders ("renyi").

    >>> make_terms(epsilon=0.1).budget.limit
    Fraction(1, 10)
    """
    share = None if delta is None else _delta(owner, delta)
    selection = (
        None
        if selection_delta is None
        else check.inside(owner, "selection_delta", exact(owner, "selection_delta", selection_delta), 0, 1)
    )
    budget = _budget(
        check.boolean(owner, "unlimited", unlimited),
        say,
        _rest(owner, share, selection),
        None if order is None else exact(owner, "order", order),
        None if composition is None else _choice(owner, "composition", composition, Composition),
        epsilon=None if epsilon is None else exact(owner, "epsilon", epsilon),
        rho=None if rho is None else exact(owner, "rho", rho),
        divergence=None if divergence is None else exact(owner, "divergence", divergence),
        mu=None if mu is None else check.positive(owner, "mu", exact(owner, "mu", mu), 1 << 20),
    )
    return Terms(
        budget=budget,
        unit=unit,
        neighbours=_choice(owner, "neighbours", neighbours, Neighbours),
        delta=share,
        period=None if period is None else _choice(owner, "period", period, Period),
        period_limit=_limit(owner, say, period, period_limit, budget),
        selection_delta=selection,
    )


def advise_ledger(terms: Terms, spends: Sequence[Spend]) -> str:
    """Say which ledger could pay for a block that a sum over its mechanisms cannot hold.

    It has the epsilon and delta of the one that was asked, or more if the block alone costs more.
    """
    if not isinstance(terms.budget, AdditiveBudget) or terms.selection_delta is not None:
        return ""
    from sourdine.accounting.pld.accountant import PLD  # needed for what is refused alone

    cost = plan_cost(spends, PLD())
    if terms.delta is None:
        epsilon = float_above(terms.budget.limit)
        delta = PLD().delta(cost, epsilon).upper
        delta = float(shorten_up(delta, 1)) if 0 < delta < _LARGE_DELTA else _USUAL_DELTA
    else:
        delta = terms.delta
        epsilon = terms.budget.epsilon(terms.budget.limit, delta)
    needed = PLD().epsilon(cost, delta).upper
    if not math.isfinite(needed):
        return ""
    # what a bracket leaves open is no reason to name another epsilon than the one that was asked
    close = math.isfinite(epsilon) and needed <= epsilon * (1 + 1e-4)
    epsilon = epsilon * (1 - 1e-6) if close else needed
    shown = {"epsilon": shorten_up(epsilon), "delta": plain(delta), "composition": Composition.BASIC.value}
    if terms.unit != "person":
        shown["unit"] = terms.unit
    if terms.neighbours is not Neighbours.ADD_REMOVE:
        shown["neighbours"] = terms.neighbours.value
    call = [
        f"{name}={text if name in ('epsilon', 'delta') else json.dumps(text)}" for name, text in shown.items()
    ]
    options = [f"--{name} {shlex.quote(text)}" for name, text in shown.items()]
    made = either(
        f"Ledger.create(path, {', '.join(call)})", f"`sourdine ledger create NEW {' '.join(options)}`"
    )
    return f"A ledger that composes each charge as a whole can: {made}."


def share_of(
    terms: Terms,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    divergence: Number | None = None,
    mu: Number | None = None,
    owner: str = "Ledger.allow",
) -> Fraction:
    """A part of a ledger's budget, in its currency; it is at most the whole.

    >>> share_of(make_terms(epsilon=1), epsilon=0.5)
    Fraction(1, 2)
    """
    numbers = {"epsilon": epsilon, "rho": rho, "divergence": divergence, "mu": mu}
    amounts = {name: exact(owner, name, value) for name, value in numbers.items() if value is not None}
    kinds = {
        "pure": ("epsilon",),
        "zcdp": ("epsilon", "rho"),
        "basic": ("epsilon",),
        "renyi-grid": (),
        "renyi": ("divergence",),
        "gdp": ("mu",),
        "odometer": ("rho",),
    }[terms.budget.name]
    if not kinds:
        raise InvalidParameter(
            "This ledger is kept in shares of several orders, of which no allowance can be made. "
            "Take a ledger in rho, or one of pairs of epsilon and delta."
        )
    if len(amounts) != 1 or next(iter(amounts)) not in kinds:
        ways = " or ".join(either(f"'{kind}'", f"--{kind}") for kind in kinds)
        raise InvalidParameter(
            f"This ledger is kept in {terms.budget.symbol}, so a part of it is given by {ways} alone."
        )
    ((name, number),) = amounts.items()
    number = check.positive(owner, name, number, 1 << 20)
    if name == "epsilon" and terms.budget.name == "zcdp":
        number = ConcentratedBudget.within(number, terms.rest).limit
    number = number**2 if name == "mu" else number
    if number > terms.budget.limit:
        whole = f"the whole budget, {terms.budget.symbol} {room(terms.budget.limit)}"
        raise check.fail(owner, name, f"be at most {whole}", numbers[name])
    return number


def make_rule(
    name: str,
    cap: Fraction,
    period: Period | str | None,
    period_limit: Number | None,
    *,
    authors: Sequence[str],
    keepers: Sequence[str],
) -> Allow:
    """The rule that makes an allowance, or changes it."""
    stretch, limit = _period_of(cap, period, period_limit)
    check_text("name", name)
    return Allow(
        name=name,
        cap=cap,
        authors=_names("authors", authors),
        period=stretch,
        period_limit=limit,
        keepers=_names("keepers", keepers),
    )


def _period_of(
    cap: Fraction, period: Period | str | None, limit: Number | None, owner: str = "Ledger.allow"
) -> tuple[Period | None, Fraction | None]:
    """The stretch of time that has a limit of its own within a cap, and that limit; or neither."""
    if (period is None) != (limit is None):
        both = either("'period' and 'period_limit'", "--period and --period-limit")
        raise InvalidParameter(f"{both} go together. Give both, or neither.")
    if period is None or limit is None:
        return None, None
    number = check.positive(owner, "period_limit", exact(owner, "period_limit", limit))
    if number > cap:
        raise check.fail(owner, "period_limit", f"be at most the allowance, {room(cap)}", limit)
    return _choice(owner, "period", period, Period), number


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    """Names of people, each once."""
    if isinstance(names, str):
        raise check.fail("Ledger.allow", what, "be a list of names", names, "Write it like ['ana'].")
    for name in names:
        check_text(what, name)
    return tuple(dict.fromkeys(names))


def exact(owner: str, name: str, value: object) -> Fraction:
    """The number that is meant.

    >>> exact("demo", "epsilon", 0.3) == exact("demo", "epsilon", "3/10") == Fraction(3, 10)
    True
    """
    if isinstance(value, str):
        number = parse(value)
        if number is None:
            raise check.fail(owner, name, "be a number", value, "Write it like 0.5, 1e-3 or 1/3.")
        return number
    return check.decimal(owner, name, value)


def _budget(
    unlimited: bool,
    say: Callable[..., str],
    delta: float | None,
    order: Fraction | None,
    composition: Composition | None,
    **limits: Fraction | None,
) -> Budget:
    """The budget that was asked for in one of four ways, where so much of delta is left for it."""
    choices = {name: limit for name, limit in limits.items() if limit is not None}
    if (order is None) != ("divergence" not in choices):
        both = f"{say('order')} and {say('divergence')}"
        raise InvalidParameter(f"{both} go together. Give both, or neither.")
    if composition is not None and (set(choices) != {"epsilon"} or delta is None):
        raise InvalidParameter(
            f"{say('composition')} is how epsilons with a delta add up. Give it with {say('epsilon')} and "
            f"{say('delta')}, or leave it out."
        )
    if unlimited and (choices or delta is None):
        raise InvalidParameter(
            f"A ledger without a limit has no budget, and counts what is lost at a delta. With "
            f"{say('unlimited')} give {say('delta')} alone, such as {say('delta', '1e-6')}."
        )
    if unlimited:
        return OdometerBudget()
    if not choices:
        ways = f"{say('epsilon')}, {say('rho')}, {say('mu')}, or {say('order')} with {say('divergence')}"
        example = f"{say('epsilon', '1')}, or {say('epsilon', '3')} with {say('delta', '1e-6')}"
        raise InvalidParameter(f"A ledger needs a budget: {ways}. Write for example {example}.")
    if len(choices) > 1:
        names = " and ".join(map(say, choices))
        raise InvalidParameter(f"More than one budget was given: {names}. Leave out all but one.")
    ((name, limit),) = choices.items()
    if name == "epsilon":
        if composition is Composition.BASIC:
            return BasicBudget(limit=limit)
        if composition is Composition.RENYI and delta is not None:
            return RenyiGridBudget.within(limit, delta)
        return PureBudget(limit=limit) if delta is None else ConcentratedBudget.within(limit, delta)
    if delta is None:
        raise InvalidParameter(
            f"A budget given by {say(name)} also needs {say('delta')}. Without one it says nothing about "
            f"epsilon. A common choice is {say('delta', '1e-6')}."
        )
    if name == "mu":
        return GaussianBudget(limit=limit**2)
    return ConcentratedBudget(limit=limit) if order is None else RenyiBudget(limit=limit, order=order)


def _delta(owner: str, delta: Number) -> float:
    """A delta, as a float; one that is given as such stays what it is."""
    return float(check.inside(owner, "delta", exact(owner, "delta", delta), 0, 1))


def _rest(owner: str, delta: float | None, selection_delta: Fraction | None) -> float | None:
    """What a selection delta leaves of delta, for the budget."""
    if delta is None or selection_delta is None:
        return delta
    rest = left_of(delta, selection_delta)
    if rest <= 0:
        must = f"be below delta, {plain(delta)}"
        remedy = "The rest of delta is for the noise. Half of it is a common choice."
        raise check.fail(owner, "selection_delta", must, float(selection_delta), remedy)
    return rest


def _limit(
    owner: str, say: Callable[..., str], period: object, limit: Number | None, budget: Budget
) -> Fraction | None:
    """What may be spent in each stretch of time."""
    if (period is None) != (limit is None):
        both, example = f"{say('period')} and {say('period_limit')}", say("period", "month")
        raise InvalidParameter(
            f"{both} go together: a stretch of time, and what may be spent in it. "
            f"Give both, such as {example} with {say('period_limit', '0.1')}, or neither."
        )
    if limit is None:
        return None
    name = say("period_limit").strip("'-")
    number = check.positive(owner, name, exact(owner, name, limit))
    if number > budget.limit:
        raise check.fail(
            owner, name, f"be at most the whole budget, {budget.symbol} {room(budget.limit)}", limit
        )
    return number


def _choice(owner: str, name: str, value: E | str, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(choice) for choice in kind)
        raise check.fail(owner, name, f"be one of {choices}", value) from None
