"""``python -m lmssc``: the same as the command ``lmssc``."""

import sys

from lmssc.cli import main

if __name__ == "__main__":
    sys.exit(main())
