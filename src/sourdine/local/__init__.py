"""Answers collected without trusting the collector: oracles, their reports, counts and estimates."""

from sourdine.local.counts import Counts
from sourdine.local.estimate import Estimate
from sourdine.local.kary import KaryOracle
from sourdine.local.oracle import FrequencyOracle, Oracle

__all__ = ["Counts", "Estimate", "FrequencyOracle", "KaryOracle", "Oracle"]
