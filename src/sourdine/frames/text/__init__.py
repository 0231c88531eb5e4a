"""Files of text, read so that one record never changes how another is read."""

from sourdine.frames.text.format import TextFormat

__all__ = ["TextFormat"]
