"""Which intervals of an answer stay valid although noise chose the rows that are shown.

HAVING and LIMIT keep rows by noisy values, and what is kept is more often too high than too low. An answer
whose noise took no part in the choice keeps its intervals. One that is compared with a constant gets
intervals that are valid given that its row is shown. All others get intervals that hold for every declared
key at once, whichever of them are shown (docs/guarantees/row_selection.md).
"""

from collections.abc import Mapping, Sequence

from sourdine.tables.compare import AnswerStep
from sourdine.tables.intervals import LinearNoise
from sourdine.tables.row_selection import IntervalKind, SelectedIntervals
from sourdine.tables.shown_rows import RowFilter, Show

_ABOVE = (">", ">=")


def selected_intervals(
    show: Show,
    steps: Sequence[AnswerStep],
    *,
    rows: frozenset[str],
    lines: Mapping[str, object],
    keys: Mapping[str, int],
    noises: Mapping[str, tuple[LinearNoise | None, float | None]],
) -> dict[str, SelectedIntervals]:
    """Return what becomes of the intervals of each answer whose rows are chosen, by its label.

    All of it follows from declarations.

    Args:
        show: how the answers are shown.
        steps: what is computed from answers.
        rows: the labels of the answers whose rows are chosen.
        lines: what each statistic is read off, by its label: two with the same share their noise.
        keys: how many declared keys each statistic has.
        noises: the noise of each statistic that is a weighted sum, and what no true number of it is below.
    """
    sources: dict[str, frozenset[str]] = {label: frozenset({label}) for label in lines}
    for step in steps:
        sources[step.label] = frozenset().union(*(sources[each] for each in step.uses))
    read_off = {label: {id(lines[each]) for each in parts} for label, parts in sources.items()}
    most = {label: max(keys[each] for each in parts) for label, parts in sources.items()}
    limited = show.limits(max(keys.values()))
    ranked: set[int] = set()
    if limited:
        ranked = set().union(*(read_off[each.of] for each in show.order if each.of in read_off))
    filters = [each for each in show.having if any(part.of in read_off for part in each.filters)]
    found: dict[str, SelectedIntervals] = {}
    for label in rows:
        if not (show.having or limited):
            continue
        own = [
            each
            for each in filters
            if any(read_off.get(part.of, set()) & read_off[label] for part in each.filters)
        ]
        if not own and not read_off[label] & ranked:
            found[label] = SelectedIntervals(kind=IntervalKind.USUAL)
            continue
        noise, floor = noises.get(label, (None, None))
        above = tuple(
            each for each in own if isinstance(each, RowFilter) and each.of == label and each.sign in _ABOVE
        )
        alone = not read_off[label] & ranked and len(above) == len(own)
        # without a floor an interval of Laplace noise may have no lower end, since its tail has no memory
        if alone and noise is not None and noise.known and (noise.normal or floor is not None):
            found[label] = SelectedIntervals(kind=IntervalKind.CONDITIONAL, filters=above, floor=floor)
        else:
            found[label] = SelectedIntervals(kind=IntervalKind.SIMULTANEOUS, keys=most[label])
    return found
