"""From counts or reports back to words: one file a method."""

from sourdine.local.rappor.decode.association import Association, Variable, associate
from sourdine.local.rappor.decode.candidates import Candidates
from sourdine.local.rappor.decode.correction import Correction
from sourdine.local.rappor.decode.decoding import Decoding, Terms
from sourdine.local.rappor.decode.evidence import Evidence
from sourdine.local.rappor.decode.expectation import decode_by_expectation
from sourdine.local.rappor.decode.lasso import decode_by_lasso
from sourdine.local.rappor.decode.least_squares import decode_by_least_squares
from sourdine.local.rappor.decode.nonnegative import decode_nonnegative

__all__ = [
    "Association",
    "Candidates",
    "Correction",
    "Decoding",
    "Evidence",
    "Terms",
    "Variable",
    "associate",
    "decode_by_expectation",
    "decode_by_lasso",
    "decode_by_least_squares",
    "decode_nonnegative",
]
