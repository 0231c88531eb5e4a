"""Least squares for `sourdine train fit`: what is refused, what is run."""

from typing import TYPE_CHECKING

from sourdine.cli.shared import show
from sourdine.cli.train.options import PlanOptions
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Ledger
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.least_squares.solve import Solved

_USELESS = (  # of what a plan may state
    "noise_multiplier",
    "epochs",
    "steps",
    "batch_size",
    "size",
    "sampler",
    "max_batch_size",
    "neighbours",
    "group",
)


def refuse(plan: PlanOptions, **options: object) -> None:
    """Name what least squares has no use for."""
    usual = PlanOptions()
    stated = {name: getattr(plan, name) for name in _USELESS if getattr(plan, name) != getattr(usual, name)}
    for name, value in (stated | options).items():
        if value is not None:
            raise InvalidParameter(
                f"Least squares is solved in one release and takes no --{name.replace('_', '-')}. Leave it "
                "out, or take --model linear."
            )


def solve_privately(
    train: "Labelled",
    test: "Labelled | None",
    *,
    epsilon: float,
    delta: float,
    ledger: "Ledger | None",
    purpose: str,
) -> "Solved":
    """One release within a budget."""
    from sourdine.learning.least_squares.solve import solve

    return solve(
        train.pair,
        classes=len(train.classes),
        epsilon=epsilon,
        delta=delta,
        public=None if test is None else test.pair,
        ledger=ledger,
        purpose=purpose,
        progress=lambda starts: show.progress("adding up", starts),
    )
