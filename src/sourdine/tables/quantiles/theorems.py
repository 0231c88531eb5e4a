"""Forecasts of errors from the source's theorems (Canesse 2022), as published and as corrected.

| theorem | function |
| --- | --- |
| 2.4.1.3 | histogram_tail |
| 2.4.1.4 and its corollary | histogram_error |
| the least n | least_size |
| 2.4.2.1 | histogram_rate |
| 2.5.0.1 | histogram_on_normal |
| 3.3.1.1 | inverse_tail_of_sample |
| 3.3.1.2 | inverse_tail |
| 3.3.2.1 | inverse_tail_on_uniform |
| 3.3.2.2 | inverse_error |
"""

from sourdine.tables.quantiles.histogram_bounds import (
    histogram_error,
    histogram_on_normal,
    histogram_rate,
    histogram_tail,
    least_size,
)
from sourdine.tables.quantiles.inverse_bounds import (
    inverse_error,
    inverse_tail,
    inverse_tail_of_sample,
    inverse_tail_on_uniform,
)
from sourdine.tables.quantiles.stated import Stated, Tail

__all__ = [
    "Stated",
    "Tail",
    "histogram_error",
    "histogram_on_normal",
    "histogram_rate",
    "histogram_tail",
    "inverse_error",
    "inverse_tail",
    "inverse_tail_of_sample",
    "inverse_tail_on_uniform",
    "least_size",
]
