"""The commands of ``lmssc``, a module each: ``add`` describes it to the parser, ``run`` carries it out.

Whatever takes time to import is imported by ``run``: ``lmssc --help`` answers at once.
"""

from lmssc.cli import audit_command as audit
from lmssc.cli import classify_command as classify
from lmssc.cli import compare_command as compare
from lmssc.cli import datasets_command as datasets
from lmssc.cli import demo_command as demo
from lmssc.cli import info_command as info
from lmssc.cli import predict_command as predict
from lmssc.cli import reproduce_command as reproduce
from lmssc.io.errors import CommandError

COMMANDS = (demo, classify, predict, info, compare, datasets, reproduce, audit)

__all__ = ["COMMANDS", "CommandError"]
