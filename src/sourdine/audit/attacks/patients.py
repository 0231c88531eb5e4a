"""Made-up patients with dates of birth, postcodes and illnesses that gather in places: nobody exists."""

from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity import Dates, Hierarchy, Period, Prefixes, Suppression
from sourdine.core import exact
from sourdine.core.bits import Bits
from sourdine.tables.register import REGIONS, draw_register

Texts = NDArray[np.str_]
QUASI = ("born", "sex", "postcode")
SECRET = "diagnosis"
OUTBREAK = "hepatitis"
ILLNESSES = ("fracture", "asthma", "diabetes", "infection", "cancer", OUTBREAK)
HIERARCHIES: MappingProxyType[str, Hierarchy] = MappingProxyType(
    {
        "born": Dates((Period.YEAR, Period.DECADE)),
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
