"""A part of an experiment."""

from typing import NamedTuple

from sourdine.experiments.registry import Verdict
from sourdine.report.page import Section


class Part(NamedTuple):
    """Verdicts, and the section of the page that shows where they come from."""

    verdicts: tuple[Verdict, ...]
    section: Section
