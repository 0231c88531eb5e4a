import pytest

import sourdine.mechanisms
from sourdine.audit import find_examples
from sourdine.audit.outcomes import change, kinds, title
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import BoundedLaplace, Geometric, OneCoin


def test_finds_every_concrete_mechanism() -> None:
    assert {"Laplace", "Gaussian", "KaryResponse", "SparseVector"} <= set(kinds())
    assert all(issubclass(kind, Mechanism) for kind in kinds().values())
    assert OneCoin.__name__ in sourdine.mechanisms.__all__
    assert OneCoin.__name__ not in kinds()


def test_finds_by_name_whatever_its_case() -> None:
    assert {type(one.mechanism) for one in find_examples("gEoMetric")} == {Geometric}


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidParameter, match=r"one of .*Gaussian.*Got 'Gossip'"):
        find_examples("Gossip")


def test_titles_leave_out_defaults_and_long_fractions() -> None:
    assert title(Geometric(scale=2, lower=0)) == "Geometric(scale=2, lower=0)"
    calibrated = BoundedLaplace.calibrated(epsilon=1, lower=0, upper=10, cells=100, sensitivity=1)
    assert title(calibrated).startswith("BoundedLaplace(scale=~1.")


def test_changes_name_their_norm() -> None:
    shown = {change(one) for one in find_examples()}
    assert {"1 in L1", "√2 in L2", "1 in Hamming"} <= shown
