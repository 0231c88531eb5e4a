"""The source's four experiments with RAPPOR, the life of one report, and what reports reveal."""

from sourdine_reproduction.rappor import exponential_law, home_pages, normal_law, one_life, processes
from sourdine_reproduction.registry import Experiment, Result, Settings, experiment

__all__ = ["Experiment", "rappor"]


@experiment("rappor", "RAPPOR: which words are found among noisy reports, in four experiments")
def rappor(settings: Settings) -> Result:
    """A normal law, an exponential law, names of processes and home pages."""
    return Result.of(
        *(
            each.reproduce(settings)
            for each in (one_life, normal_law, exponential_law, processes, home_pages)
        ),
        name="rappor",
        title="RAPPOR, as published and as it is",
        lead=(
            "RAPPOR collects words from people who are asked again and again. The source retells four "
            "experiments of its authors. They are done again here, on made-up people, with what the reports "
            "reveal and how surely words are found."
            + (
                " This is the quick run: fewer crowds, and a twentieth of the reports about home pages."
                if settings.quick
                else ""
            )
        ),
    )
