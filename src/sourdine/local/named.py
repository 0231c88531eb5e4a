"""Oracles by the names that people type."""

from fractions import Fraction

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.local.bounded import BoundedLaplaceOracle, BoundedStaircaseOracle
from sourdine.local.choose import choose
from sourdine.local.choose_numeric import choose_numeric
from sourdine.local.duchi import Duchi
from sourdine.local.hadamard import HadamardResponse
from sourdine.local.hashing import LocalHashing
from sourdine.local.hybrid import Hybrid
from sourdine.local.kary import KaryOracle
from sourdine.local.numeric import NumericOracle
from sourdine.local.oracle import FrequencyOracle, Oracle
from sourdine.local.piecewise import Piecewise
from sourdine.local.projective import ProjectiveGeometry
from sourdine.local.square_wave import SquareWave
from sourdine.local.subset import SubsetSelection
from sourdine.local.unary import OptimalUnary, SymmetricUnary

AUTO = "auto"
FREQUENCY: dict[str, type[FrequencyOracle]] = {
    "kary": KaryOracle,
    "symmetric-unary": SymmetricUnary,
    "optimal-unary": OptimalUnary,
    "local-hashing": LocalHashing,
    "subset": SubsetSelection,
    "hadamard": HadamardResponse,
    "projective": ProjectiveGeometry,
}
NUMERIC: dict[str, type[NumericOracle]] = {
    "duchi": Duchi,
    "piecewise": Piecewise,
    "hybrid": Hybrid,
    "square-wave": SquareWave,
    "bounded-laplace": BoundedLaplaceOracle,
    "bounded-staircase": BoundedStaircaseOracle,
}
Number = Fraction | float


def frequency_oracle(name: str, *, epsilon: Number, categories: int) -> tuple[FrequencyOracle, str]:
    """The oracle of a name for so many categories, and why it is taken."""
    if name == AUTO:
        return choose(epsilon, categories)
    _known(name, FREQUENCY)
    made = FREQUENCY[name](epsilon=epsilon, categories=categories)  # type: ignore[call-arg]
    return made, f"{type(made).__name__} was asked for"


def numeric_oracle(name: str, *, epsilon: Number, lower: Number, upper: Number) -> tuple[Oracle, str]:
    """The oracle of a name for numbers in a range, and why it is taken."""
    if lower >= upper:
        raise InvalidParameter("The lower bound must be below the upper one. Give the bounds in order.")
    if name == AUTO:
        return choose_numeric(epsilon, lower=lower, upper=upper)
    _known(name, NUMERIC)
    made = NUMERIC[name](epsilon=epsilon, lower=lower, upper=upper)  # type: ignore[arg-type]
    return made, f"{type(made).__name__} was asked for"


def _known(name: str, names: dict[str, type[FrequencyOracle]] | dict[str, type[NumericOracle]]) -> None:
    if name not in names:
        raise check.fail("a question", "oracle", f"be {AUTO} or one of {', '.join(names)}", name)
