"""Tables that may be handed out: every cell of every declared column is made private on its own."""

from sourdine.local.cleaner.cells import CleanedCells, Gap
from sourdine.local.cleaner.cleaner import Cleaner, CleanTable
from sourdine.local.cleaner.numbers import Method

__all__ = ["CleanTable", "CleanedCells", "Cleaner", "Gap", "Method"]
