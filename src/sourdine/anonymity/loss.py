"""What generalising has cost."""

from dataclasses import dataclass

from sourdine.anonymity.records import Codes


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Three measures of what is lost; a record left out counts as lost altogether.

    - `ncp`: the normalised certainty penalty, from 0 (nothing) to 1 (everything is '*'): the mean over
      records and quasi-identifiers of the share of other values a label may stand for (Xu et al. 2006;
      Ghinita et al. 2007).
    - `discernibility`: sum of squared class sizes, and the size of the table for each record left out
      (Bayardo, Agrawal 2005).
    - `average_class`: records in a class on average; over k it is the C_AVG of LeFevre et al. 2006.
    """

    ncp: float
    discernibility: int
    average_class: float

    @classmethod
    def of(cls, ncp: float, sizes: Codes, suppressed: int) -> "Loss":
        """The loss of a table by the sizes of its classes and the number of records left out."""
        kept = int(sizes.sum())
        squares = int((sizes.astype(object) ** 2).sum()) if kept >= 1 << 31 else int((sizes**2).sum())
        return cls(
            ncp=ncp,
            discernibility=squares + suppressed * (kept + suppressed),
            average_class=kept / len(sizes),
        )
