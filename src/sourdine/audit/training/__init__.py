"""An audit of private training: canaries, one run, and a lower bound on its epsilon."""

from sourdine.audit.training.canaries import Canaries, pixel_canaries
from sourdine.audit.training.one_call import TrainingAudit, audit_training
from sourdine.audit.training.scores import Score

__all__ = ["Canaries", "Score", "TrainingAudit", "audit_training", "pixel_canaries"]
