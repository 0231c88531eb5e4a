"""What is published of Sourdine: the wheel, the source distribution, the lock, the bill of materials.

`make dist` and `make lock` run it, with the tools that `tools.txt` pins.
"""
