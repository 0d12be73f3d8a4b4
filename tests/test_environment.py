"""pyproject.toml, requirements.lock and environment.yml say the same."""

import re
import tomllib

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
    parts = re.split(r"^(?=[a-z0-9])", lock.read_text("utf8"), flags=re.MULTILINE)[1:]
    return [
        (Requirement(part.split("\\")[0].strip()), part.count("--hash=sha256:")) for part in parts
    ]


LOCKED = [requirement for requirement, _ in pinned(LOCKS[0])]
CONDA = yaml.safe_load((paths.ROOT / "environment.yml").read_text("utf8"))["dependencies"]
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("name", sorted(set(DECLARED) - {"torch"}))
def test_the_lock_pins_one_version_that_is_declared(name, version, platform):
    environment = {"python_full_version": f"{version}.1", "python_version": version}
    environment["sys_platform"] = platform
    pins = [
        r for r in LOCKED
        if r.name == name and (r.marker is None or Marker(str(r.marker)).evaluate(environment))
    ]  # fmt: skip
    assert len(pins) == 1, f"{name}: {len(pins)} pins in requirements.lock; run make lock"
    (pin,) = pins[0].specifier
    assert pin.operator == "=="
    assert pin.version in DECLARED[name].specifier


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_package_of_a_lock_has_its_version_and_hashes(lock):
    for requirement, hashes in pinned(lock):
        assert hashes > 0, requirement
        assert [one.operator for one in requirement.specifier] == ["=="], requirement
        assert requirement.name != "torch"
    declared = PROJECT["project"]["optional-dependencies"].get(lock.stem, [])
    assert set(map(Requirement, declared)) <= {requirement for requirement, _ in pinned(lock)}


def test_what_builds_is_pinned():
    (hatchling,) = PROJECT["build-system"]["requires"]
    assert {hatchling} < set(PROJECT["dependency-groups"]["build"])
    assert set(PROJECT["dependency-groups"]["build"]) <= set(map(str, LOCKED))


def test_torch_stands_apart():
    """pip installs it, from the build that fits the machine; the lock must not bring another."""
    assert [r.name for r in LOCKED if re.match("torch|triton|nvidia", r.name)] == []
    assert str(DECLARED["torch"].specifier).startswith("==")


def test_conda_gets_the_same_environment():
    pip = next(line["pip"] for line in CONDA if isinstance(line, dict))
    named = [line for line in [*CONDA, *pip] if isinstance(line, str) and line[0] != "-"]
    here = {re.match(r"[\w-]+", line).group(): line for line in named}
    for name, requirement in DECLARED.items():
        line = here[CONDA_NAMES.get(name, name)]
        assert set(Requirement(line).specifier) == set(requirement.specifier), line
    assert here["python"] == "python" + PROJECT["project"]["requires-python"].replace(" ", "")


def test_no_file_names_a_registry():
    names = ("pyproject.toml", "environment.yml", "Makefile")
    for file in (*LOCKS, *(paths.ROOT / name for name in names)):
        assert "://" not in file.read_text("utf8")
