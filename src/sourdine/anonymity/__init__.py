"""How identifiable a table is, and how to make it less so. None of this is differential privacy."""

from sourdine.anonymity.diversity import Ground, ValueDistance
from sourdine.anonymity.equivalence import Cells, Classes, cells_of, classes_of
from sourdine.anonymity.generalise import (
    GeneralisationMethod,
    Generalised,
    InformationLoss,
    generalise,
    generalise_records,
)
from sourdine.anonymity.hierarchy import (
    DatePrecision,
    Dates,
    GeneralisationHierarchy,
    Intervals,
    Ladder,
    Prefixes,
    Suppression,
    Tree,
    read_hierarchies,
)
from sourdine.anonymity.measures import (
    NOT_FOR_PUBLICATION,
    Measures,
    Sensitivity,
    Uniqueness,
    delta_disclosure,
    k_anonymity,
    l_diversity,
    measure,
    measure_records,
    t_closeness,
    uniqueness,
)
from sourdine.anonymity.records import Coded, Missing, Records
from sourdine.anonymity.requirement import Demand, Diversity
from sourdine.anonymity.risk import Risk, journalist_risk, prosecutor_risk

__all__ = [
    "NOT_FOR_PUBLICATION",
    "Cells",
    "Classes",
    "Coded",
    "DatePrecision",
    "Dates",
    "Demand",
    "Diversity",
    "GeneralisationHierarchy",
    "GeneralisationMethod",
    "Generalised",
    "Ground",
    "InformationLoss",
    "Intervals",
    "Ladder",
    "Measures",
    "Missing",
    "Prefixes",
    "Records",
    "Risk",
    "Sensitivity",
    "Suppression",
    "Tree",
    "Uniqueness",
    "ValueDistance",
    "cells_of",
    "classes_of",
    "delta_disclosure",
    "generalise",
    "generalise_records",
    "journalist_risk",
    "k_anonymity",
    "l_diversity",
    "measure",
    "measure_records",
    "prosecutor_risk",
    "read_hierarchies",
    "t_closeness",
    "uniqueness",
]
