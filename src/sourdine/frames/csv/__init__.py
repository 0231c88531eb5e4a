"""Text files, read so that one record never changes how another is read."""

from sourdine.frames.csv.format import TextFormat

__all__ = ["TextFormat"]
