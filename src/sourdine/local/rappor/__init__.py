"""RAPPOR: words and categories collected again and again, with a limit on what a device ever reveals.

`decode` reads counts and reports; `files` reads and writes those of Google's tools.
"""

from sourdine.local.rappor.device import Device, Life
from sourdine.local.rappor.rappor import BasicOneTimeRappor, BasicRappor, OneTimeRappor, Rappor

__all__ = ["BasicOneTimeRappor", "BasicRappor", "Device", "Life", "OneTimeRappor", "Rappor"]
