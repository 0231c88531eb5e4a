"""Any table in, and what is declared of it."""

from sourdine.frames.schema import Category, Flag, Integer, Real, Schema
from sourdine.frames.source import Source, open_source

__all__ = ["Category", "Flag", "Integer", "Real", "Schema", "Source", "open_source"]
