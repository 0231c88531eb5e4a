"""Guarantees that others published for systems in use."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One published guarantee. Two of them compare only where unit and period are the same."""

    name: str
    epsilon: float
    delta: float
    unit: str
    period: str
    model: str
    source: str


DEPLOYMENTS = (
    Deployment(
        name="Apple, health types in use",
        epsilon=2,
        delta=0,
        unit="one person's reports",
        period="each day anew",
        model="local",
        source="Apple Differential Privacy Team 2017",
    ),
    Deployment(
        name="US Census 2020, redistricting data, housing units",
        epsilon=2.47,
        delta=1e-10,
        unit="one housing unit",
        period="once",
        model="central",
        source="Abowd et al. 2022",
    ),
    Deployment(
        name="Apple, popular emoji",
        epsilon=4,
        delta=0,
        unit="one person's reports",
        period="each day anew",
        model="local",
        source="Apple Differential Privacy Team 2017",
    ),
    Deployment(
        name="Israel, registry of live births 2014",
        epsilon=9.98,
        delta=0,
        unit="one birth (mother and child)",
        period="once",
        model="central",
        source="Hod and Canetti 2024",
    ),
    Deployment(
        name="US Census 2020, redistricting data, persons",
        epsilon=17.14,
        delta=1e-10,
        unit="one person",
        period="once",
        model="central",
        source="Abowd et al. 2022",
    ),
    Deployment(
        name="LinkedIn, audience engagements",
        epsilon=34.9,
        delta=7e-9,
        unit="one member, towards one analyst",
        period="each month anew",
        model="central",
        source="Rogers et al. 2020",
    ),
)
"""From the smallest epsilon to the largest."""

UNITS_DIFFER = (
    "These numbers do not rank the systems: a guarantee for one day's reports adds up over days, a local one "
    "trusts nobody with the answers, and a central one trusts whoever publishes."
)
