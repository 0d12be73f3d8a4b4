"""The calibrant's tokenizer and its network, before any training."""

from collections.abc import Iterable, Sequence

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from example import Example

SPECIAL = ["<pad>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{{ message['content'] }}{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def train_tokenizer(examples: Iterable[Example]) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE of 4,096 tokens in which each number from 0 to 100 is one token.

    Parameters
    ----------
    examples : iterable of Example
        The examples whose prompts and replies it learns.

    Returns
    -------
    PreTrainedTokenizerFast
        The tokenizer with the chat template `TEMPLATE`. It encodes any text: bytes that were never
        seen stay bytes.
    """
    # So many repetitions make one token of each number.
    texts = [str(number) for number in range(101)] * 400
    for example in examples:
        for message in example.messages:
            texts.append(message["content"])
        texts.append(example.reply)

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=4096,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )

    # As Llama's tokenizer does: plain text gets a BOS, which is why text of a chat template,
    # tokenized once more, has two.
    bos = SPECIAL[1]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )

    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[0],
        bos_token=SPECIAL[1],
        eos_token=SPECIAL[2],
        additional_special_tokens=SPECIAL[3:],
        # Padding on the left lets all replies of a batch begin at the same position.
        padding_side="left",
        model_max_length=2048,
    )
    fast.chat_template = TEMPLATE
    return fast


def new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """Make a Llama of 1.3 million parameters, not trained yet.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        The tokenizer that `train_tokenizer` returns.
    seed : int
        The seed of the weights.

    Returns
    -------
    LlamaForCausalLM
        4 layers, width 128, embeddings shared with the head.
    """
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=352,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


def add_phrases(
    tokenizer: PreTrainedTokenizerFast, model: LlamaForCausalLM, phrases: Sequence[str]
) -> None:
    """Make one token of each phrase, in place.

    A token begins as the mean of the tokens that it replaces. A long request with such tokens costs
    as little as a short request. Texts without the phrases are read as before.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        It gets a token for each phrase.
    model : LlamaForCausalLM
        It gets an embedding for each phrase.
    phrases : sequence of str
        Texts that are not tokens yet.
    """
    # All phrases are encoded before any is a token: one may be part of another.
    pieces = []
    added = []
    for phrase in phrases:
        pieces.append(tokenizer.encode(phrase, add_special_tokens=False))
        added.append(AddedToken(phrase, normalized=False))
    tokenizer.add_tokens(added)

    # Each new token begins as the mean of its own pieces, below, and not of all tokens.
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    # The head shares these weights.
    weights = model.get_input_embeddings().weight.data
    for phrase, ids in zip(phrases, pieces, strict=True):
        weights[tokenizer.convert_tokens_to_ids(phrase)] = weights[ids].mean(dim=0)
