"""From counts or reports back to words: one file a method."""

from sourdine.local.rappor.decode.association import Association, Variable, associate
from sourdine.local.rappor.decode.decoding import Candidates, Correction, Decoding, DecodingTerms, Evidence
from sourdine.local.rappor.decode.mixture import decode_by_expectation
from sourdine.local.rappor.decode.regression import (
    decode_by_lasso,
    decode_by_least_squares,
    decode_nonnegative,
)

__all__ = [
    "Association",
    "Candidates",
    "Correction",
    "Decoding",
    "DecodingTerms",
    "Evidence",
    "Variable",
    "associate",
    "decode_by_expectation",
    "decode_by_lasso",
    "decode_by_least_squares",
    "decode_nonnegative",
]
