"""RAPPOR: words and categories collected again and again, with a limit on what a device ever reveals.

`decode` reads counts and reports; `files` reads and writes those of Google's tools.
"""

from sourdine.local.rappor.basic import BasicOneTimeRappor, BasicRappor
from sourdine.local.rappor.device import Device, Life
from sourdine.local.rappor.rappor import OneTimeRappor, Rappor

__all__ = ["BasicOneTimeRappor", "BasicRappor", "Device", "Life", "OneTimeRappor", "Rappor"]
