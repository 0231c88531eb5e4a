"""A delta that is too large for the number of people it is about."""

from sourdine.core.digits import plain


def warn_of_delta(delta: float, size: int, counted: str) -> str:
    """What is doubtful about a delta for so many units, in words too; empty if nothing is.

    Publishing the whole record of one in `size` units, drawn at random, is (0, 1/size)-DP.

    >>> warn_of_delta(1e-5, 60_000, "the 60,000 people")
    ''
    >>> warn_of_delta(0.1, 60_000, "the 60,000 people")[:57]
    'The delta of 0.1 is above 1 divided by the 60,000 people:'
    """
    if delta * size <= 1:
        return ""
    return (
        f"The delta of {plain(delta)} is above 1 divided by {counted}: such a guarantee would even allow "
        "to publish the whole record of somebody drawn at random. Take a delta far below that."
    )
