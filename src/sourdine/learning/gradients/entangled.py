"""What is raised where the gradients of a batch cannot be told apart, though one by one they may be taken."""

from sourdine.core.errors import InvalidParameter


class Entangled(InvalidParameter):
    """The gradients of a batch cannot be taken apart by example, for a reason that its text gives.

    Each example may still be run alone (`alone`). Where that is not the same model, this is what is told.
    """
