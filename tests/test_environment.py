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
LOCKED = [
    Requirement(line)
    for line in (paths.ROOT / "requirements.lock").read_text("utf8").splitlines()
    if re.match(r"[a-z0-9]", line)
]
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
    for name in ("requirements.lock", "pyproject.toml", "environment.yml", "Makefile"):
        assert "://" not in (paths.ROOT / name).read_text("utf8")
