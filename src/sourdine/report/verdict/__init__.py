"""A verdict on a release that a privacy officer can sign: what was checked, and what it means."""

from sourdine.report.verdict.checks import CheckOutcome, ReleaseCheck
from sourdine.report.verdict.verdict import Light, ReleaseVerdict, judge, wrong_of

__all__ = ["CheckOutcome", "Light", "ReleaseCheck", "ReleaseVerdict", "judge", "wrong_of"]
