"""An audit of private training: canaries, one run with every step watched, lower bounds on its epsilon."""

from sourdine.audit.training.advantage import GradientAudit
from sourdine.audit.training.audit import TrainingAudit, audit_training
from sourdine.audit.training.canaries import Canaries, Score, pixel_canaries
from sourdine.audit.training.checks import Check
from sourdine.audit.training.watched import Secrecy

__all__ = [
    "Canaries",
    "Check",
    "GradientAudit",
    "Score",
    "Secrecy",
    "TrainingAudit",
    "audit_training",
    "pixel_canaries",
]
