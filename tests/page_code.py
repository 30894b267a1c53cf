"""The code in Markdown pages, run as it stands there."""

import doctest
import re
from glob import glob

FENCE = re.compile(r"^```(python|pycon|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
# How sure it is and what new samples get changes with the model, and a sample or two with the BLAS.
VAGUE = re.compile(
    r"mean confidence of [\d.]+ %; \d+ below|^\d+ samples? unreached.*\n|^Labels: .*\n", flags=re.MULTILINE
)


def blocks(text, *languages):
    """(language, code) of the blocks in these languages, in order."""
    return [found.groups() for found in FENCE.finditer(text) if found[1] in languages]


def run_python(text, names=None):
    """Run the Python of a page, and compare what its sessions show; the names that it leaves."""
    names = {} if names is None else names
    for language, code in blocks(text, "python", "pycon"):
        run_block(language, code, names)
    return names


def run_block(language, code, names):
    """Run one block; a session must print what it shows."""
    if language == "python":
        exec(code, names)
        return
    test = doctest.DocTestParser().get_doctest(code, {}, "page", None, 0)
    test.globs = names
    failures = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=failures.append, clear_globs=False)
    assert not failures, "".join(failures)


def commands(block):
    """(arguments of lmssc, what is shown to be printed) for each command of a console block."""
    shown = re.split(r"^\$ lmssc (.+)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(shown[::2], shown[1::2], strict=True))


def run_commands(block, capsys):
    """Run the commands of a console block; they must end well and print what is shown."""
    from lmssc.cli import main

    for command, output in commands(block):
        arguments = [path for word in command.split() for path in (sorted(glob(word)) if "*" in word else [word])]
        assert main(arguments) == 0
        assert VAGUE.sub("", capsys.readouterr().out) == VAGUE.sub("", output)
