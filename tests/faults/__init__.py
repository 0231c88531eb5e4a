"""Faults planted in the planner and in what engines are asked: an audit of plans must catch each."""

from tests.faults.asking import ASKING_FAULTS
from tests.faults.fault import Fault
from tests.faults.planning import PLANNING_FAULTS

__all__ = ["FAULTS", "Fault"]

FAULTS = (*PLANNING_FAULTS, *ASKING_FAULTS)
