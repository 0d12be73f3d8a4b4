"""The files that say what is installed agree, and what a killed installation leaves is removed."""

import fcntl
import os
import re
import subprocess
import tomllib
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Timer

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement

from ingroup import paths

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text("utf8"))
DECLARED = {r.name: r for r in map(Requirement, PROJECT["project"]["dependencies"])}
LOCKS = [paths.ROOT / "requirements.lock", *sorted((paths.ROOT / "locks").glob("*.lock"))]


def pinned(lock):
    """The requirements of a lock, each with how many hashes stand below it."""
    _, *parts = re.split(r"^(?=[a-z0-9])", lock.read_text("utf8"), flags=re.MULTILINE)
    pins = []
    for part in parts:
        requirement, _, _ = part.partition("\\")
        pins.append((Requirement(requirement.strip()), part.count("--hash=sha256:")))
    return pins


LOCKED = [requirement for requirement, _ in pinned(LOCKS[0])]
CONDA = yaml.safe_load((paths.ROOT / "environment.yml").read_text("utf8"))["dependencies"]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("name", sorted(set(DECLARED) - {"torch"}))
def test_the_lock_pins_one_version_that_is_declared(name, version, platform):
    environment = {
        "python_full_version": f"{version}.1",
        "python_version": version,
        "sys_platform": platform,
    }

    pins = []
    for requirement in LOCKED:
        if requirement.name != name:
            continue
        marker = requirement.marker
        if marker is None or Marker(str(marker)).evaluate(environment):
            pins.append(requirement)

    assert len(pins) == 1, f"{name}: {len(pins)} pins in requirements.lock; run make lock"
    (pin,) = pins[0].specifier
    assert pin.operator == "=="
    assert pin.version in DECLARED[name].specifier


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_package_of_a_lock_has_its_version_and_hashes(lock):
    requirements = set()
    for requirement, hashes in pinned(lock):
        assert hashes > 0, requirement
        (version,) = requirement.specifier
        assert version.operator == "==", requirement
        assert requirement.name != "torch"
        requirements.add(requirement)

    declared = PROJECT["project"]["optional-dependencies"].get(lock.stem, [])
    assert set(map(Requirement, declared)) <= requirements


def test_the_build_tools_are_pinned():
    (hatchling,) = PROJECT["build-system"]["requires"]
    build = set(PROJECT["dependency-groups"]["build"])
    assert {hatchling} < build
    assert build <= set(map(str, LOCKED))


def test_no_lock_pins_torch():
    """pip installs it, from the build that fits the machine; the lock must not bring another."""
    for requirement in LOCKED:
        assert not re.match("torch|triton|nvidia", requirement.name)

    assert str(DECLARED["torch"].specifier).startswith("==")


def test_the_conda_environment_has_the_same_versions():
    (pip,) = [line["pip"] for line in CONDA if isinstance(line, dict)]
    lines = {}
    for line in [*CONDA, *pip]:
        if isinstance(line, str) and not line.startswith("-"):
            name = re.match(r"[\w-]+", line).group()
            lines[name] = line

    for name, requirement in DECLARED.items():
        line = lines[CONDA_NAMES.get(name, name)]
        assert set(Requirement(line).specifier) == set(requirement.specifier), line

    python = PROJECT["project"]["requires-python"].replace(" ", "")
    assert lines["python"] == f"python{python}"


def test_no_file_names_a_registry():
    for file in (
        *LOCKS,
        paths.ROOT / "pyproject.toml",
        paths.ROOT / "environment.yml",
        paths.ROOT / "Makefile",
    ):
        assert "://" not in file.read_text("utf8")


# --- locks/install.py

HALF = "lib/python3/site-packages/half"  # of a package


@pytest.fixture
def install(tmp_path, monkeypatch):
    """The program, with an environment of the test's own, whose programs install a file."""
    spec = spec_from_file_location("install", paths.ROOT / "locks" / "install.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STUDIES", str(tmp_path / "venv"))
    monkeypatch.setattr(module, "run", lambda *command: ran(tmp_path / "venv"))
    yield module
    os.close(module.OWN)  # it holds the lock


def ran(folder):
    """What a program leaves in an environment."""
    (folder / HALF).parent.mkdir(parents=True, exist_ok=True)
    (folder / "lib/python3/site-packages/whole").touch()


def call(install, monkeypatch, part, lock="requirements.lock"):
    """Install as make does."""
    part_file = Path(install.STUDIES) / part
    lock_file = paths.ROOT / lock
    monkeypatch.setattr("sys.argv", ["install.py", str(part_file), str(lock_file)])
    return install.main()


def marks(folder):
    """The files that say which parts of an environment are whole."""
    return {file.name for file in folder.glob(".*")}


def test_a_whole_environment_is_made_once(install, monkeypatch):
    assert call(install, monkeypatch, ".ready") == 0
    assert call(install, monkeypatch, ".ray", "locks/ray.lock") == 0

    folder = Path(install.STUDIES)
    assert marks(folder) == {".ready", ".ray"}
    assert (folder / ".ready").read_text() == install.contents(paths.ROOT / "requirements.lock")

    monkeypatch.setattr(install, "run", None)  # nothing is called
    assert call(install, monkeypatch, ".ready") == 0
    assert call(install, monkeypatch, ".ray", "locks/ray.lock") == 0


class KilledError(BaseException):
    """Ends an installation as a kill of the whole family would."""


@pytest.mark.parametrize("killed", [KilledError, subprocess.CalledProcessError(-9, "uv")])
@pytest.mark.parametrize("part", [".ready", ".ray"])
def test_a_killed_installation_is_removed_and_repeated(install, monkeypatch, part, killed):
    """Of the first installation or of a later one: nothing of the environment counts any more."""
    folder = Path(install.STUDIES)
    if part == ".ray":
        assert call(install, monkeypatch, ".ready") == 0
        assert call(install, monkeypatch, ".providers", "locks/providers.lock") == 0

    def die(*command):
        ran(folder)
        (folder / HALF).touch()
        raise killed

    with monkeypatch.context() as patch:
        patch.setattr(install, "run", die)
        with suppress(KilledError):
            assert call(install, monkeypatch, part, "locks/ray.lock") == 1
    assert not (folder / ".ready").exists()  # make calls the program again

    assert call(install, monkeypatch, ".ready") == 0
    assert not (folder / HALF).exists()
    assert (folder / "lib/python3/site-packages/whole").exists()
    assert marks(folder) == {".ready"}


def test_a_failed_optional_part_keeps_the_environment(install, monkeypatch):
    """Without a net, an optional part costs nobody the environment that works."""
    assert call(install, monkeypatch, ".ready") == 0
    folder = Path(install.STUDIES)
    before = (folder / ".ready").stat()

    def fail(*command):
        raise subprocess.CalledProcessError(1, "uv")

    monkeypatch.setattr(install, "run", fail)
    assert call(install, monkeypatch, ".ray", "locks/ray.lock") == 1

    assert (folder / ".ready").stat().st_mtime_ns == before.st_mtime_ns
    assert (folder / "lib/python3/site-packages/whole").exists()
    assert not (folder / ".ray").exists()


def test_two_installations_wait_for_each_other(install, monkeypatch, capsys):
    held = (paths.ROOT / "locks" / "install.py").open()
    fcntl.flock(held, fcntl.LOCK_EX)
    timer = Timer(0.5, held.close)
    timer.start()

    assert call(install, monkeypatch, ".ready") == 0

    timer.join()
    assert capsys.readouterr().out.startswith("Another make makes an environment: waiting for it\n")


def test_an_unwritable_environment_folder_is_one_sentence(install, monkeypatch, capsys):
    Path(install.STUDIES).write_text("a file")
    assert call(install, monkeypatch, ".ready") == 1
    assert capsys.readouterr().err == f"{install.STUDIES} cannot be written: File exists\n"
