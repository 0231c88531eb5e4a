"""Audit of plans: made-up neighbouring tables, replayed through every query on every engine."""

from sourdine.audit.plans.replay import LineAudit, PlanAudit, Violation, audit_plan
from sourdine.audit.plans.series import SeriesAudit, audit_series

__all__ = ["LineAudit", "PlanAudit", "SeriesAudit", "Violation", "audit_plan", "audit_series"]
