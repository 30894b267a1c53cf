"""Run the code in Markdown pages as written, and list the links of pages."""

import doctest
import re
import tomllib
from glob import glob
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(python|pycon|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", flags=re.MULTILINE)
# How sure it is and what new samples get changes with the model, and a sample or two with the BLAS.
VAGUE = re.compile(
    r"mean confidence of [\d.]+ %; \d+ below|^\d+ samples? unreached.*\n|^Labels: .*\n", flags=re.MULTILINE
)


def blocks(text, *languages):
    """(language, code) of the blocks in these languages, in order."""
    return [found.groups() for found in FENCE.finditer(text) if found[1] in languages]


def assert_same_percentages(shown, printed):
    """Words and methods are equal; another BLAS may change the label of a sample or two, and every run the time."""
    assert [words for words, _ in _percentages(shown)] == [words for words, _ in _percentages(printed)]
    for (_, number), (_, right) in zip(_percentages(shown), _percentages(printed), strict=True):
        assert abs(number - right) <= 0.5, (number, right)


def _percentages(text):
    """(words before, percentage) of all percentages; other numbers with a point do not count."""
    percentages = re.findall(r"([^\n\d]*[^\d.]) (\d+\.\d)(?= (?:%|±))", text)
    assert len(percentages) >= 3
    return [(" ".join(words.split()), float(number)) for words, number in percentages]


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
    for command, output in commands(block):
        assert VAGUE.sub("", run_command(command, capsys)) == VAGUE.sub("", output)


def run_command(command, capsys):
    """What a command prints, without blanks at the ends of lines; it must end well."""
    from lmssc.cli import main

    arguments = [path for word in command.split() for path in (sorted(glob(word)) if "*" in word else [word])]
    assert main(arguments) == 0
    return "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())


def marked_block(text, name):
    """The console block between the comments NAME and /NAME."""
    return re.search(rf"<!-- {name} -->\n```console\n(.*?)```\n<!-- /{name} -->", text, flags=re.DOTALL)[1]


def repository():
    """Address of the repository; pyproject.toml is the one place that says it."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]


def bad_links(text, folder):
    """Links of a page that lead nowhere: files of the repository that are missing, and headings that a page lacks.

    `folder` is where relative links start; None for a page that must not have any.
    """
    tree = f"{repository()}/blob/main/"
    raw = repository().replace("github.com", "raw.githubusercontent.com") + "/main/"
    bad = []
    for link in LINK.findall(FENCE.sub("", text)):
        path, _, heading = link.removeprefix(tree).removeprefix(raw).partition("#")
        if link.startswith("https://") and path == link.partition("#")[0]:
            continue  # elsewhere
        if not link.startswith("https://") and folder is None:
            bad.append(f"{link} is relative")
            continue
        target = ROOT / path if link.startswith("https://") else folder / path
        if not target.exists():
            bad.append(f"{link}: there is no {path}")
        elif heading and target.is_file() and heading not in anchors(target.read_text(encoding="utf-8")):
            bad.append(f"{link}: {target.name} has no heading #{heading}")
    return bad


def anchors(text):
    """Anchors of the headings, as GitHub and MyST make them."""
    return {re.sub(r"[^\w\- ]", "", found.lower()).strip().replace(" ", "-") for found in HEADING.findall(text)}
