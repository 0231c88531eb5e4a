"""An audit of private training: canaries, one run with every step watched, lower bounds on its epsilon."""

from sourdine.audit.training.advantage import GradientAudit
from sourdine.audit.training.audit import TrainingAudit, audit_training
from sourdine.audit.training.canaries import Canaries, Score, pixel_canaries
from sourdine.audit.training.checks import Check
from sourdine.audit.training.correlated import CorrelatedAudit, audit_correlated
from sourdine.audit.training.watched import Secrecy

__all__ = [
    "Canaries",
    "Check",
    "CorrelatedAudit",
    "GradientAudit",
    "Score",
    "Secrecy",
    "TrainingAudit",
    "audit_correlated",
    "audit_training",
    "pixel_canaries",
]
