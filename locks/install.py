"""Make an environment, or add a part to one: ``install.py <environment>/.<part> <lock>``.

The part is a file by which make knows it; it holds a digest of what was installed.

Torch comes first, by pip, which finds the build for this machine: the builds of one version are
many, and not all stand in one index. All other packages are pinned with hashes.

A kill leaves half of a package, which pip and uv take for a whole one. So the packages of an
environment in which an installation did not come to its end are removed, and installed anew.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

LOCKS = Path(__file__).resolve().parent
ROOT = LOCKS.parent
STUDIES = os.environ.get("VENV") or ".venv"  # its uv fills the other environments, too
READY = ".ready"  # the part that is the environment itself
UNFINISHED = ".unfinished"  # what it is called while something is installed
OWN = os.open(__file__, os.O_RDONLY)  # locked by one installation at a time
SAID = {
    True: "about half a minute with warm caches",
    False: "two to three minutes and 2.5 GB",
}


def contents(lock: Path) -> str:
    """Return a digest of what an environment is made of: a lock, and pyproject.toml's torch."""
    return hashlib.sha256(lock.read_bytes() + torch().encode()).hexdigest()


def torch() -> str:
    """Return the pinned torch of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    (pinned,) = (name for name in project["dependencies"] if name.startswith("torch=="))
    return pinned


def run(*command: str | Path) -> None:
    """Run a program, which keeps other installations waiting even where this one is killed."""
    subprocess.run(command, check=True, pass_fds=[OWN])


def pip(python: Path, *arguments: str) -> None:
    """Install with pip."""
    options = ["--quiet", "--quiet", "--disable-pip-version-check"]
    run(python, "-m", "pip", "install", *options, *arguments)


def uv(python: Path, *arguments: str) -> None:
    """Install with uv, which is pinned like the rest."""
    program = Path(STUDIES) / "bin" / "uv"
    options = ["--quiet", "--no-deps", "--python", str(python)]
    run(program, "pip", "install", *options, *arguments)


def wait() -> None:
    """Wait until no other installation works in this clone, and keep others waiting."""
    try:
        fcntl.flock(OWN, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another make makes an environment: waiting for it", flush=True)
        fcntl.flock(OWN, fcntl.LOCK_EX)


def begin(folder: Path) -> None:
    """Mark an environment as unfinished; where it is so already, remove its packages first."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / UNFINISHED
    if unfinished.exists():
        unfinished.write_text("", "utf8")
        for packages in folder.glob("lib/python*/site-packages"):
            shutil.rmtree(packages)
        for lock in LOCKS.glob("*.lock"):
            (folder / f".{lock.stem}").unlink(missing_ok=True)

    if (folder / READY).exists():
        (folder / READY).replace(unfinished)
    else:
        unfinished.touch()


def give_up(folder: Path) -> None:
    """Leave an environment as it was: a program that ends by itself leaves no half of a package."""
    unfinished = folder / UNFINISHED
    if unfinished.read_text("utf8"):
        unfinished.replace(folder / READY)
    else:
        unfinished.unlink()


def make(folder: Path, lock: Path) -> None:
    """Make an environment."""
    is_first = folder == Path(STUDIES)
    python = folder / "bin" / "python"
    index = os.environ.get("TORCH_INDEX")
    print(f"Making the environment in {folder} ({SAID[is_first]}) ...", flush=True)

    run(sys.executable, "-m", "venv", folder)
    pip(python, "--no-compile", *(["--index-url", index] if index else []), torch())
    if is_first:
        pip(python, "--require-hashes", "-r", str(LOCKS / "uv.lock"))
    uv(python, "--require-hashes", "-r", str(lock))
    uv(python, "--no-build-isolation", "--editable", str(ROOT))
    (folder / UNFINISHED).write_text(contents(lock), "utf8")


def add(part: Path, lock: Path) -> None:
    """Add a part to an environment."""
    folder = part.parent
    print(f"Adding {part.name[1:]} to {folder} ...", flush=True)
    uv(folder / "bin" / "python", "--require-hashes", "-r", str(lock))
    part.write_text(contents(lock), "utf8")


def main() -> int:
    """Command line; 0 when the part is there, 1 when a program failed and said why."""
    part, lock = map(Path, sys.argv[1:])
    folder = part.parent
    wait()
    if part.exists() and part.read_text("utf8") == contents(lock):  # touched, and not changed
        part.touch()
        return 0

    try:
        begin(folder)
        if part.name == READY:
            make(folder, lock)
        else:
            add(part, lock)
    except subprocess.CalledProcessError as error:
        if error.returncode > 0:  # else it was killed
            give_up(folder)
        return 1
    except OSError as problem:
        place = problem.filename or folder
        print(f"{place} cannot be written: {problem.strerror}", file=sys.stderr)
        return 1
    (folder / UNFINISHED).replace(folder / READY)
    return 0


if __name__ == "__main__":
    sys.exit(main())
