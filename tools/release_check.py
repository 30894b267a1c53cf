"""Build the files to publish, check them, and run the demo from each in a new environment (make release-check)."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
# What the source distribution may hold, at its root; hatchling adds PKG-INFO and .gitignore.
SDIST_ROOTS = {
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "conftest.py",
    "pyproject.toml",
    "src",
    "tests",
}
MAX_BYTES = 5_000_000


def main() -> None:
    """Stop with a message at the first thing that is wrong."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="lmssc-release-") as folder:
        tools = make_environment(Path(folder) / "tools", "build", "twine")
        run(tools, "-m", "build", "--outdir", DIST, ROOT)
        files = sorted(DIST.iterdir())
        run(tools, "-m", "twine", "check", "--strict", *files)
        (sdist,), (wheel,) = ([f for f in files if f.name.endswith(end)] for end in (".tar.gz", ".whl"))
        check_members(sdist, wheel)
        for file in (wheel, sdist):
            run_demo(file, Path(folder) / file.suffix.strip("."))
    print("Ready to publish:", ", ".join(file.name for file in files))


def check_members(sdist: Path, wheel: Path) -> None:
    """Both files hold the same package, and nothing that does not belong there."""
    with tarfile.open(sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()]
    in_sdist = set(find_package(names, "src/lmssc/"))
    if strangers := sorted({name.split("/")[0] for name in names} - SDIST_ROOTS):
        sys.exit(f"{sdist.name} holds {', '.join(strangers)}; see [tool.hatch.build.targets.sdist]")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(find_package(archive.namelist(), "lmssc/"))
    if in_sdist != in_wheel:
        sys.exit(f"the sdist and the wheel differ in {sorted(in_sdist ^ in_wheel)}")
    for file in (sdist, wheel):
        size = file.stat().st_size
        print(f"{file.name}: {len(names) if file is sdist else len(in_wheel)} files, {size / 1e3:.0f} kB")
        if size > MAX_BYTES:
            sys.exit(f"{file.name} is larger than {MAX_BYTES / 1e6:.0f} MB")


def find_package(names: list[str], folder: str) -> list[str]:
    """Files of the package, relative to it."""
    return [name.removeprefix(folder) for name in names if name.startswith(folder)]


def run_demo(file: Path, folder: Path) -> None:
    """Install a file into a new environment and run ``lmssc demo`` there, outside the repository."""
    start = time.perf_counter()
    python = make_environment(folder / "env", file)
    run(python, "-m", "lmssc", "demo", "--no-figures", "--out", folder / "demo", cwd=folder)
    print(f"{file.name}: installed, and the demo ran, in {time.perf_counter() - start:.0f} s")


def make_environment(folder: Path, *packages: str | Path) -> Path:
    """The Python of a new virtual environment with some packages."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command; the whole check ends if it fails. PYTHONPATH would hide what is missing from the files."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


if __name__ == "__main__":
    main()
