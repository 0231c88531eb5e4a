"""Central and local mechanisms, one file each."""

from sourdine.mechanisms.gaussian import Gaussian
from sourdine.mechanisms.geometric import Geometric
from sourdine.mechanisms.laplace import Laplace

__all__ = ["Gaussian", "Geometric", "Laplace"]
