"""The special functions of scipy, which is loaded when one of them is first called.

That takes longer than everything else that a table needs before its first question.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import betainc, expit, gammaln, lambertw, log_ndtr, logsumexp, ndtr, ndtri, ndtri_exp

__all__ = ["betainc", "expit", "gammaln", "lambertw", "log_ndtr", "logsumexp", "ndtr", "ndtri", "ndtri_exp"]


def _late(name: str) -> Any:
    """A function that looks itself up when it is called."""

    def function(*args: Any, **options: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*args, **options)

    function.__name__ = function.__qualname__ = name
    return function


if not TYPE_CHECKING:
    globals().update({name: _late(name) for name in __all__})
