"""The files behind a model's name, what pins them, and the engine that loads them."""

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, PreTrainedModel

from ingroup import corpora
from ingroup.design import Message
from ingroup.inference.engine import EngineError, Reply, Sampling
from ingroup.inference.prompts import Bos, Prompter, SystemRole

# Configurations and tokenizers, chat templates, weights; vocabularies of older tokenizers.
READ = {".json", ".jinja", ".safetensors", ".model", ".txt"}


class Weights:
    """A model in a folder or on the hub, or an EngineError. Code from the hub is never run."""

    def __init__(self, model: str):
        if Path(model).is_absolute() and not Path(model).is_dir():
            raise EngineError(f"there is no model folder {model}")
        self.model, self.folder = model, Path(model)
        if not self.folder.is_dir():
            self.folder = self._fetched()

    def _fetched(self) -> Path:
        """The hub's files, each compared with the hash that names it in the cache."""
        try:
            read = [f"*{suffix}" for suffix in READ]
            folder = Path(snapshot_download(self.model, allow_patterns=read))
        except (OSError, ValueError) as error:
            raise self._unusable(error) from error
        for file in _read(folder):
            blob = file.resolve()
            if not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", blob.name):
                raise EngineError(
                    f"{file}: the cache was copied without its links, which name the hashes; "
                    "copy it with them, or give the folder itself as MODEL"
                )
            scheme = "sha256" if len(blob.name) == 64 else "git"  # of small files
            if problem := corpora.fault(blob, f"{scheme}:{blob.name}"):
                raise EngineError(
                    f"{file}: found other bytes than the hub's hash names: it {problem}; delete "
                    f"{blob} and run again"
                )
        return folder

    def _unusable(self, error: Exception) -> EngineError:
        """The sentence with the first line of a reason."""
        reason = str(error).strip().split("\n")[0]
        here = "" if Path(self.model).is_dir() else ", and there is no such folder"
        return EngineError(f"the model {self.model!r} cannot be loaded{here}: {reason}")

    def load(self, loader: Callable, **options) -> Any:
        """What a ``from_pretrained`` of transformers makes of these files, or an EngineError."""
        try:
            return loader(str(self.folder), trust_remote_code=False, **options)
        except Exception as error:  # files of each kind have errors of their own
            raise self._unusable(error) from error

    def causal_model(self, **options) -> PreTrainedModel:
        """The model, every tensor from its files and of its generation defaults the end tokens.

        What else stands there (beams, penalties, a least length) the other engines do not apply.
        EngineError where the files lack a tensor, which would then be random, hold one that the
        model has no place for, or one of another shape.
        """
        loader = partial(AutoModelForCausalLM.from_pretrained, output_loading_info=True)
        model, found = self.load(loader, use_safetensors=True, **options)
        for what in ("missing", "unexpected", "mismatched"):
            if keys := sorted(map(str, found[f"{what}_keys"])):
                more = f" and {len(keys) - 1:,} more" if keys[1:] else ""
                raise EngineError(
                    f"the files of the model {self.model!r} do not fit its config.json: {what} "
                    f"tensor {keys[0]}{more}; fetch it again"
                )
        ends = model.generation_config.eos_token_id
        model.generation_config = GenerationConfig(eos_token_id=ends)
        return model

    def identity(self) -> dict[str, str]:
        """Model, and its commit on the hub or the hash of a folder's files."""
        if self.folder == Path(self.model):
            return {"model": self.folder.name, "revision": self._hash}
        return {"model": self.model, "revision": self.folder.name}

    @cached_property
    def _hash(self) -> str:
        """Hash over names and contents of all files that a loader may read."""
        digest = hashlib.sha256()
        for file in _read(self.folder):
            digest.update(str(file.relative_to(self.folder)).encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()[:16]


def _read(folder: Path) -> list[Path]:
    """All files of a model's folder that a loader may read, in the order of their paths."""
    return [f for f in sorted(folder.rglob("*")) if f.suffix in READ and f.is_file()]


class LocalEngine:
    """An engine that loads a model, a folder or a name on the hub, here and when first asked.

    ``complete`` takes prompts as token ids; ``about`` is engine, version and what else of it can
    change a reply; for ``system`` and ``bos`` see :class:`ingroup.inference.prompts.Prompter`.
    EngineError where the model cannot be found or its chat template does not fit.
    """

    asks_again = False

    def __init__(
        self, model: str, system: SystemRole, bos: Bos, about: dict[str, str], **tokenizer: Any
    ):
        self.weights, self.about = Weights(model), about
        self.tokenizer = self.weights.load(AutoTokenizer.from_pretrained, **tokenizer)
        self.prompter = Prompter(self.tokenizer, system, bos)
        decode = self.tokenizer.decode
        self._token_text = cache(lambda token: decode([token]))
        # Most replies come many times.
        self._reply_text = lru_cache(1 << 16)(partial(decode, skip_special_tokens=True))

    def identity(self) -> dict[str, str]:
        """``about``, the model with its commit or hash, and how a chat is rendered."""
        return self.about | self.weights.identity() | self.prompter.identity()

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in order."""
        return self.complete(self.prompter.batch(conversations), sampling)
