"""A made-up run of the first study, for tests of its appendix.

Its texts are hostile: they look like commands of LaTeX, like HTML, and like marks that turn text.
"""

import json

import nbformat
import pandas as pd
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image

from ingroup import latex, paths
from ingroup.commands import settings
from ingroup.commands.run_parameters import jobs_of, merged_parameters

NAME = "mine"
NOTEBOOK = "10_empathy_gap"
SETTING = "P0,S0,T0"
HOSTILE = [
    r"\input{secret} $ # % & _ ^ ~ < > | \\ x",
    r"\end{longtable} \end{document}",
    "<script>alert(1)</script>",
    "[2cm] * -- ?` `` '' ,, ‘‘",
    "W" * 200,
    "\x1b[m \u202e \u4e2d\u6587 δ ≤ \U0001f600",
]


def place(monkeypatch, folder):
    """Redirect the paths of runs, recordings and figures to new, empty folders below a folder."""
    for name, part in (("BUILD", "build"), ("FIGURES", "figures"), ("RECORDINGS", "recordings")):
        (folder / part).mkdir()
        monkeypatch.setattr(paths, name, folder / part)
    monkeypatch.setattr(paths, "RESPONSES", folder / "build" / "responses")
    monkeypatch.setattr(settings, "BUILD", folder / "build")
    monkeypatch.delenv("MAKEFLAGS", raising=False)


def parameters(run=NAME):
    """Return the parameters of the run's only notebook."""
    given = {"MODELS": "calibrant", "SETTINGS": SETTING, "CATEGORIES": "Religion"}
    return merged_parameters(NOTEBOOK, "demo", given, run)


def write(run=NAME):
    """Write notebook, manifests, tables and a figure of the run, and return its folder."""
    folder = paths.run_folder(run)
    _notebook(folder / "notebooks", run)
    for job in jobs_of(NOTEBOOK, parameters(run)):
        _manifest(job)
    _tables(folder / "tables")

    figures = paths.figure_folder(run) / "empathy_gap"
    figures.mkdir(parents=True)
    Image.new("RGB", (600, 300)).save(figures / "figure2.png", dpi=(150, 150))
    return folder


def _notebook(folder, run):
    cells = [
        new_markdown_cell("# The empathy gap\n\nAbout it.\n\n## Question\n\nWhich?"),
        new_markdown_cell("**Figure 2.** Dark is *high*, as $\\delta$ in `matrix` says."),
        new_code_cell('out.save(draw(), "figure2")'),
        new_markdown_cell("## Limits\n\n- A rating is no feeling (50 %).\n- Few [events](x.md)."),
        new_markdown_cell("### Try it\n\nNot a limit."),
    ]
    papermill = {"parameters": parameters(run), "start_time": "2026-11-26T02:05:46.9+00:00"}
    book = new_notebook(cells=cells, metadata={"papermill": papermill})

    folder.mkdir(parents=True)
    nbformat.write(book, folder / f"{NOTEBOOK}.ipynb")
    (folder / f"{NOTEBOOK}.txt").write_text(f"{NOTEBOOK}: 38 s, MODELS=calibrant\n")


def _manifest(job):
    manifest = {
        "model": "calibrant",
        "engine": "transformers",
        "engine_version": "5.23.0",
        "revision": "909b39b14eac455a",
        "dtype": "float32",
        "sampling_temperature": 0.7,
        "sampling_top_p": 1.0,
        "sampling_max_tokens": 128,
        "sampling_seed": 41,
        "prompts": job.design.fingerprint,
        "chats": "18408f7e336f5a70",
        "trials": len(job.design),
        "shard_size": 4096,
        "sent_reasoning": HOSTILE[0],
        "left_out": [],
    }

    job.folder.mkdir(parents=True)
    (job.folder / "manifest.json").write_text(json.dumps(manifest), "utf8")
    (job.folder / "part-00000.parquet").write_bytes(b"")


def _tables(folder):
    study = folder / "empathy_gap"
    study.mkdir(parents=True)
    about = {"model": "calibrant", "setting": SETTING, "category": "Religion"}
    delta = pd.DataFrame(
        [
            {
                **about,
                "delta": 2.54321,
                "null_low": -0.678,
                "null_high": 1.294,
                "low": 2.1,
                "high": 2.9,
                "p_holm_least": 0.0083,
                "finding": "could not have been significant",
            }
        ]
    )
    delta.to_csv(study / "table02_delta.csv", index=False)
    tex = latex.tables(delta, "empathy_gap", "table02_delta")
    (study / "table02_delta.tex").write_text(tex, "utf8")

    pairs = pd.DataFrame(
        {
            **about,
            "perceiver": HOSTILE,
            "experiencer": "a Hindu",
            "percent_lost": 16.7,
        }
    )
    tex = latex.tables(pairs, "empathy_gap", "table06_pairs")
    (study / "table06_pairs.tex").write_text(tex, "utf8")

    counts = {"ok": 420, "refused": 12, "unparsable": 0, "cut": 0, "failed": 0, "missing": 0}
    pd.DataFrame([{**about, **counts}]).to_csv(study / "responses.csv", index=False)

    usage = {
        "model": ["calibrant", "all"],
        "mode": ["free text", ""],
        "prompts": 432,
        "prompt_tokens": 43524,
        "cached_tokens": 13113,
        "output_tokens": 924,
        "failed": 0,
        "cost": 1.25,
    }
    pd.DataFrame(usage).to_csv(study / "usage.csv", index=False)

    reasons = pd.DataFrame({**about, "reason": HOSTILE})
    reasons.to_csv(study / "scopes.csv", index=False)

    synthesis = folder / "synthesis"
    synthesis.mkdir()
    shares = pd.DataFrame(
        {
            "model": "calibrant",
            "study": "empathy_gap",
            "claim": ["Religion", *HOSTILE],
            "paths": 448,
            "undefined": 3,
            "testable": 406,
            "stands": 93.75,
            "reversed": 0.0,
            "median": 1.778923,
            "lowest": 1.6,
            "highest": 1.98,
        }
    )
    shares.to_csv(synthesis / "multiverse_shares.csv", index=False)
