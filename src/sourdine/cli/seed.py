"""A seed on the command line: what can be repeated protects nobody, so it is for made-up data only."""

from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.core import check

if TYPE_CHECKING:
    from sourdine.core.bits import Bits

_MOST = 1 << 62
_HELP = "A number: the same one repeats the same run. For made-up data only."

Seed = Annotated[int | None, typer.Option("--seed", help=_HELP)]
GivenSeed = Annotated[int, typer.Option("--seed", help=_HELP)]  # where there always is one


def check_seed(owner: str, seed: int | None) -> int | None:
    """The seed; one out of reach is refused."""
    return None if seed is None else check.integer(owner, "seed", seed, 0, _MOST)


def bits_of(owner: str, seed: int | None) -> "Bits":
    """The bits of a seed, which are never to meet real data; the system's without one."""
    from sourdine.core.bits import SYSTEM
    from sourdine.testing import SeededBits

    checked = check_seed(owner, seed)
    return SYSTEM if checked is None else SeededBits(checked)
