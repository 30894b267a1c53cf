"""Rewrite what the console blocks of the pages show by running their commands (make outputs).

Python blocks of the same page run too, because they write the files that the commands read.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/quickstart.md", "docs/guide/files.md", "docs/guide/compare.md")
FENCE = re.compile(r"^```(python|pycon|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ lmssc (.+)\n", flags=re.MULTILINE)


def refreshed(page: str, folder: Path) -> str:
    """The text of a page with new outputs in the console blocks that show any; its code runs in `folder`."""
    names: dict[str, object] = {}

    def run(found: re.Match[str]) -> str:
        language, code = found.groups()
        if language == "python":
            with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)
        if language == "console" and any(COMMAND.split(code)[2::2]):
            return f"```console\n{_outputs(code, folder)}```"
        return found[0]

    return FENCE.sub(run, page)


def _outputs(code: str, folder: Path) -> str:
    """The block again, each command followed by what it prints now."""
    typed = [found[1] for found in COMMAND.finditer(code)]
    return "".join(f"$ lmssc {command}\n{_run(command, folder)}" for command in typed)


def _run(command: str, folder: Path) -> str:
    words = [name for word in shlex.split(command) for name in (sorted(_matches(word, folder)) or [word])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "lmssc", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"lmssc {command} ended with {done.returncode}: {done.stderr}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def _matches(word: str, folder: Path) -> list[str]:
    """Files that a word with a star stands for, as a shell would give them."""
    return glob(word, root_dir=folder) if "*" in word else []


def main() -> None:
    """Rewrite the pages in place."""
    for page in PAGES:
        path = ROOT / page
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(refreshed(path.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
        print(page)


if __name__ == "__main__":
    main()
