"""What attacks aim at: made-up patients who do not exist, and answers about them that a ledger paid for."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.explain import posterior_bounds
from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.anonymity import DatePrecision, Dates, GeneralisationHierarchy, Prefixes, Suppression
from sourdine.core.distance import Neighbours
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.tables import ReleasePlan
from sourdine.tables.mock import REGIONS, draw_register

if TYPE_CHECKING:
    import duckdb

UNIT = "person"


def relation(columns: Mapping[str, NDArray[Any]]) -> "duckdb.DuckDBPyRelation":
    """Arrays as a table."""
    import duckdb

    connection = duckdb.connect()
    plain = {
        name: array.astype(object) if array.dtype.kind == "U" else array for name, array in columns.items()
    }
    connection.register("people", plain)
    return connection.table("people")


@contextmanager
def fresh_ledger(epsilon: Fraction) -> Iterator[Ledger]:
    """A ledger with a pure budget for each person, gone when the demonstration is over."""
    terms = Terms(budget=PureBudget(limit=epsilon), unit=UNIT, neighbours=Neighbours.ADD_REMOVE)
    with TemporaryDirectory() as folder, Ledger.create(Path(folder) / "attack.ledger", terms) as ledger:
        yield ledger


def answer(plan: ReleasePlan, exact: ArrayLike, bits: Bits) -> NDArray[np.float64]:
    """Exact counts with the noise of a plan of counts: a row for each query, a column for each repetition.

    One release says little about how often an attack is right, so its noise is drawn many times.
    """
    rows = zip(plan.lines, np.asarray(exact), strict=True)
    return np.array([line.mechanism.sample(row, bits) for line, row in rows], float)


def most_right(epsilon: Fraction | float) -> float:
    """How often any attack can be right about a bit that is a fair coin before: e^epsilon/(1 + e^epsilon).

    >>> round(most_right(1), 3)
    0.731
    """
    return posterior_bounds(0.5, float(epsilon)).upper


Texts = NDArray[np.str_]
QUASI = ("born", "sex", "postcode")
SECRET = "diagnosis"
OUTBREAK = "hepatitis"
ILLNESSES = ("fracture", "asthma", "diabetes", "infection", "cancer", OUTBREAK)
HIERARCHIES: MappingProxyType[str, GeneralisationHierarchy] = MappingProxyType(
    {
        "born": Dates((DatePrecision.YEAR, DatePrecision.DECADE)),
        "sex": Suppression(),
        "postcode": Prefixes((3,)),
    }
)
_YEAR = 2024
_OUTBREAK, _GRIP = Fraction(1, 7), Fraction(19, 20)
_RARE = 4  # times that the outbreak's illness is rarer than others where there is none
_TOWNS, _QUARTERS = 12, 5  # towns of a region, quarters of a town
_CELLS = len(REGIONS) * _TOWNS * 100  # a town and a decade of birth


@dataclass(frozen=True, kw_only=True)
class Patients:
    """People, column by column; days are written like 1984-02-29."""

    born: Texts
    sex: Texts
    postcode: Texts
    diagnosis: Texts

    @property
    def columns(self) -> dict[str, Texts]:
        """Every column by its name."""
        return {"born": self.born, "sex": self.sex, "postcode": self.postcode, "diagnosis": self.diagnosis}


def draw_patients(count: int, bits: Bits) -> Patients:
    """So many made-up patients.

    In one of seven pairs of a town and a decade of birth there is an outbreak: nineteen of twenty patients
    there have the same illness. Elsewhere it is rare, and the other ones are equally frequent.

    >>> from sourdine.testing import SeededBits
    >>> draw_patients(2, SeededBits(1)).sex.tolist()
    ['f', 'f']
    """
    people = draw_register(count, seed=int(bits.words(1)[0]))
    year = _YEAR - people.age
    first = (year - 1970).astype("datetime64[Y]").astype("datetime64[D]")
    born = (first + exact.uniform(365, count, bits).astype("timedelta64[D]")).astype(str)
    region = np.searchsorted(np.sort(REGIONS), people.region)
    town = exact.uniform(_TOWNS, count, bits)
    place = (10_000 * (1 + region) + 100 * town + 10 * exact.uniform(_QUARTERS, count, bits)).astype(str)
    cell = (region * _TOWNS + town) * 100 + (year % 1000) // 10
    struck = exact.bernoulli(_OUTBREAK, _CELLS, bits)[cell] & exact.bernoulli(_GRIP, count, bits)
    last = len(ILLNESSES) - 1
    other = exact.uniform(_RARE * last + 1, count, bits) // _RARE
    illness = np.asarray(ILLNESSES)[np.where(struck, last, other)]
    return Patients(born=born, sex=people.sex, postcode=place, diagnosis=illness)
