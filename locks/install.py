"""Make an environment, or add a part to one: ``install.py <environment>/.<part> <lock>``.

The part is a file by which make knows it; it holds a digest of what was installed.

Torch comes first, by pip, which finds the build for this machine: the builds of one version are
many, and not all stand in one index. All other packages are pinned with hashes.
"""

import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

LOCKS = Path(__file__).resolve().parent
ROOT = LOCKS.parent
STUDIES = os.environ.get("VENV") or ".venv"  # its uv fills the other environments, too
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


def pip(python: Path, *arguments: str) -> None:
    """Install with pip."""
    options = ["--quiet", "--quiet", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *options, *arguments], check=True)


def uv(python: Path, *arguments: str) -> None:
    """Install with uv, which is pinned like the rest."""
    program = Path(STUDIES) / "bin" / "uv"
    options = ["--quiet", "--no-deps", "--python", str(python)]
    subprocess.run([program, "pip", "install", *options, *arguments], check=True)


def main() -> int:
    """Command line; 0 when the part is there, 1 when a program failed and said why."""
    part, lock = map(Path, sys.argv[1:])
    folder = part.parent
    python = folder / "bin" / "python"
    if part.exists() and part.read_text("utf8") == contents(lock):  # touched, and not changed
        part.touch()
        return 0
    try:
        if part.name != ".ready":
            print(f"Adding {part.name[1:]} to {folder} ...", flush=True)
            uv(python, "--require-hashes", "-r", str(lock))
        else:
            is_first = folder == Path(STUDIES)
            print(f"Making the environment in {folder} ({SAID[is_first]}) ...", flush=True)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            index = os.environ.get("TORCH_INDEX")
            pip(python, "--no-compile", *(["--index-url", index] if index else []), torch())
            if is_first:
                pip(python, "--require-hashes", "-r", str(LOCKS / "uv.lock"))
            uv(python, "--require-hashes", "-r", str(lock))
            uv(python, "--no-build-isolation", "--editable", str(ROOT))
    except subprocess.CalledProcessError:
        return 1
    part.write_text(contents(lock), "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
