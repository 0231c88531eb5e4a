import math

import pytest
import scipy.special

import sourdine.accounting
from sourdine.core import lazy as module
from sourdine.core.lazy import _SPECIAL, gammaln, late, ndtr


def test_a_name_comes_from_its_module_and_a_module_by_its_own() -> None:
    find = late("sourdine.core", {"errors": ("InvalidParameter",)})
    assert find("InvalidParameter").__name__ == "InvalidParameter"  # type: ignore[attr-defined]
    assert find("lazy").__name__ == "sourdine.core.lazy"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'sourdine\.core' has no attribute 'nothing'"):
        find("nothing")


def test_every_name_of_accounting_has_its_home() -> None:
    for name in sourdine.accounting.__all__:
        assert getattr(sourdine.accounting, name) is not None
    listed = [name for names in sourdine.accounting._HOMES.values() for name in names]
    assert sorted(listed) == sorted(sourdine.accounting.__all__)


def test_special_functions_are_those_of_scipy() -> None:
    assert ndtr(0.0) == 0.5
    assert gammaln(5.0) == pytest.approx(math.log(24))
    for name in _SPECIAL:
        assert getattr(module, name).__name__ == getattr(scipy.special, name).__name__
