"""`python -m sourdine` is the command `sourdine`."""

from sourdine.cli import main

if __name__ == "__main__":
    main()
