"""What is measured: the laws of noise, and the libraries that draw it."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from benchmarks.peers import Environment


class Law(Enum):
    LAPLACE = "Laplace"
    GAUSSIAN = "Gaussian"


@dataclass(frozen=True)
class Case:
    """A law at one size; a target case counts for the verdicts, the others inform."""

    law: Law
    size: Fraction
    label: str
    target: bool = True


CASES = (
    Case(Law.LAPLACE, Fraction(3, 2), "Laplace 3/2"),
    Case(Law.LAPLACE, Fraction(10), "Laplace 10"),
    Case(Law.LAPLACE, Fraction(1000), "Laplace 1000"),
    Case(Law.GAUSSIAN, Fraction(10), "Gaussian 10"),
    Case(Law.LAPLACE, Fraction(2**40), "Laplace 2^40", target=False),
    Case(Law.GAUSSIAN, Fraction(1000), "Gaussian 1000", target=False),
    Case(Law.GAUSSIAN, Fraction(2**20), "Gaussian 2^20", target=False),
)
TIMING_CASES = (CASES[1], CASES[3])
SINGLES = 40_000  # single draws timed, the same number for every library


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library, its environment, and how much of it fits in a patient minute."""

    name: str
    environment: Environment
    module: str
    mechanisms: dict[Law, tuple[str, ...]]
    draws: int  # noises drawn by one timed act
    repetitions: int  # timed acts in each round

    def count(self, case: Case, quick: bool) -> int:
        """The noises of one timed act; none where a library would take minutes."""
        draws = self.draws // 5 if quick and self.repetitions == 1 else self.draws
        if "GaussianDiscrete" not in self.mechanisms[case.law]:
            return draws
        return int(10 * draws / case.size) if case.size <= 1000 else 0  # it takes about sigma steps a noise


HERE = Environment(name="here")
SOURDINE = Library(
    name="Sourdine",
    environment=HERE,
    module="benchmarks.noise.with_sourdine",
    mechanisms={Law.LAPLACE: ("Laplace",), Law.GAUSSIAN: ("Gaussian",)},
    draws=10**6,
    repetitions=5,
)
NUMPY = Library(
    name="numpy",
    environment=HERE,
    module="benchmarks.noise.with_numpy",
    mechanisms={Law.LAPLACE: ("laplace",), Law.GAUSSIAN: ("normal",)},
    draws=10**6,
    repetitions=5,
)
OPENDP = Library(
    name="OpenDP",
    environment=Environment(name="opendp", requirements=("opendp==0.16.0", "numpy==2.4.6")),
    module="benchmarks.noise.with_opendp",
    mechanisms={Law.LAPLACE: ("make_laplace",), Law.GAUSSIAN: ("make_gaussian",)},
    draws=10**5,
    repetitions=1,
)
DIFFPRIVLIB = Library(
    name="diffprivlib",
    environment=Environment(
        name="diffprivlib",
        requirements=("diffprivlib==0.6.6", "scikit-learn==1.6.1", "scipy==1.17.1", "numpy==2.4.6"),
    ),
    module="benchmarks.noise.with_diffprivlib",
    mechanisms={Law.LAPLACE: ("Laplace", "Geometric"), Law.GAUSSIAN: ("GaussianDiscrete",)},
    draws=10**4,
    repetitions=1,
)
PEERS = (OPENDP, DIFFPRIVLIB)
LIBRARIES = (NUMPY, *PEERS, SOURDINE)
TIMED = (*PEERS, SOURDINE)
