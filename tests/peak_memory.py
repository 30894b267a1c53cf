"""Peak memory of a separate Python process, in MiB."""

import subprocess
import sys
from pathlib import Path

# Of a process that was forked, `getrusage` tells the parent's; this is of the program alone.
STATUS = Path("/proc/self/status")
TELL = """
import re
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


def run_and_measure(code, *arguments, env=None):
    """What the code printed, and the memory; none is known where there is no /proc."""
    told = STATUS.exists()
    command = [sys.executable, "-c", code + (TELL if told else "print(0)"), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    *lines, mebibytes = run.stdout.splitlines()
    return "\n".join(lines), int(mebibytes)
