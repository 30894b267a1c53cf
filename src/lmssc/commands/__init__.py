"""The commands of ``lmssc``, a module each: ``add`` describes it to the parser, ``run`` carries it out.

Whatever takes time to import is imported by ``run``: ``lmssc --help`` answers at once.
"""

from lmssc.commands import audit, classify, compare, datasets, demo, info, predict, reproduce
from lmssc.commands.errors import CommandError

COMMANDS = (demo, classify, predict, info, compare, datasets, reproduce, audit)

__all__ = ["COMMANDS", "CommandError"]
