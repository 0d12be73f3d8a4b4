"""The way around vLLM against vLLM alone."""

import json
import subprocess
import sys
from pathlib import Path


def rows() -> list[dict]:
    """One row; `sys.argv` names the Python that has vLLM (the Makefile does)."""
    script = Path(__file__).with_name("vllm_overhead.py")
    run = subprocess.run([sys.argv[1], script], stdout=subprocess.PIPE, check=True, text=True)
    found = json.loads(run.stdout.splitlines()[-1])
    return [
        {
            "name": "engine_overhead",
            "ours": found["ours"],
            "baseline": found["baseline"],
            "ratio": found["baseline"] / found["ours"],
            "baseline_is": f"LLM.generate of the same {found['trials']:,} prompts as token ids",
        }
    ]
