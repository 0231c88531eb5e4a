"""Random plans over random declarations, by seed or as a strategy of Hypothesis."""

from tests.random_plans.columns import public_tables
from tests.random_plans.plans import FORMS, KINDS, plans, random_plan

__all__ = ["FORMS", "KINDS", "plans", "public_tables", "random_plan"]
