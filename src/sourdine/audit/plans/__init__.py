"""Audit of plans: made-up neighbouring tables, replayed through every query on every engine."""

from sourdine.audit.plans.replay import LineAudit, PlanAudit, Violation, audit_plan

__all__ = ["LineAudit", "PlanAudit", "Violation", "audit_plan"]
