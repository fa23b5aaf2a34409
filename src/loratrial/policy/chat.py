"""From messages to prompt token ids, and from completion token ids back to text.

One rule on top of the tokenizer's own chat template: text inside a message is text. If a message contains the
letters of a special token (`<|im_end|>`), they are encoded as ordinary characters, so that no note, user or
model output can end a turn or open another one. Tokens that the tokenizer does not declare special (Qwen3's
`<think>`) keep their usual meaning. Left out: tools, images, and continuing a half-written assistant turn.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerFast

from loratrial.errors import ModelError

END_OF_TEXT_TOKENS = frozenset(
    {"<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "</s>"}
)
"""Special tokens that end a text or a turn in every model family that has them."""


def prompt_ids(tokenizer: PreTrainedTokenizerFast, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """The token ids that a completion of the conversation continues: the template's rendering, then the bare
    header of an assistant turn, with thinking off where the template knows of it.

    Templates are followed as published: SmolLM2's puts its own system message first when there is none. For
    messages without the text of a special token the ids are exactly those of `apply_chat_template`.

    Raises:
        ModelError: the tokenizer has no chat template, or the template refuses the messages.
    """
    specials = special_texts(tokenizer)
    if not specials:
        return _encode(tokenizer, _render(tokenizer, messages))
    pattern = re.compile("|".join(re.escape(text) for text in sorted(specials, key=len, reverse=True)))
    if not any(pattern.search(message["content"]) for message in messages):
        return _encode(tokenizer, _render(tokenizer, messages))

    # Special text goes through the template as a stand-in, and is encoded apart, as letters. The rest is
    # split where a real special token would have split it, so nothing else about the prompt's ids changes.
    mark = _unused_mark(message["content"] for message in messages)
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        hidden.append(match.group())
        return f"{mark}{len(hidden) - 1}{mark}"

    guarded = [{**message, "content": pattern.sub(hide, message["content"])} for message in messages]
    pieces = re.split(f"{mark}([0-9]+){mark}", _render(tokenizer, guarded))
    ids: list[int] = []
    for index, piece in enumerate(pieces):
        if index % 2:
            ids += _encode(tokenizer, hidden[int(piece)], as_letters=True)
        elif piece:
            ids += _encode(tokenizer, piece)
    return ids


def decode(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int], end_ids: Collection[int] = ()) -> str:
    """The text of a completion: `ids` without their last one if that ends a sequence, all else as it is.

    `end_ids` are the model's end-of-sequence ids (default: those that the tokenizer itself shows). Special
    tokens elsewhere stay visible, spaces are not tidied, and bytes that are no UTF-8 become U+FFFD.
    """
    ends = end_ids or end_of_sequence_ids(tokenizer)
    kept = ids[:-1] if len(ids) and ids[-1] in ends else ids
    return str(tokenizer.decode(list(kept), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def completion_ids(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """The token ids that say `text` as a completion and then end the turn, as a policy would sample them.

    Special-token text inside `text` is encoded as letters.
    """
    closing = _closing_token(tokenizer, special_texts(tokenizer))
    ends = [tokenizer.eos_token_id if closing is None else closing]
    return [*_encode(tokenizer, text, as_letters=True), *(int(i) for i in ends if i is not None)]


def choice_ids(
    tokenizer: PreTrainedTokenizerFast, prefix: str, labels: Sequence[str]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that supply `prefix` before a choice, and one id a label: the label with a space before it
    where that is a single token, otherwise the bare label after a prefix that ends in the space.

    Raises:
        ModelError: neither way gives every label a token of its own.
    """
    for start, end in ((" ", ""), ("", " ")):
        ids = [_encode(tokenizer, start + label, as_letters=True) for label in labels]
        if all(len(own) == 1 for own in ids) and len({own[0] for own in ids}) == len(labels):
            return tuple(_encode(tokenizer, prefix + end, as_letters=True)), tuple(own[0] for own in ids)
    raise ModelError(
        f"the model's tokenizer has no single token for each of the labels {', '.join(labels)}; "
        'answer in free text instead (sampling.mode = "text")'
    )


def end_of_sequence_ids(tokenizer: PreTrainedTokenizerFast) -> tuple[int, ...]:
    """Every id that ends a completion as far as the tokenizer shows, sorted: its own end-of-sequence token,
    the token with which its chat template closes an assistant turn, and the well-known ends it contains."""
    specials = special_texts(tokenizer)
    found = {specials[text] for text in END_OF_TEXT_TOKENS & specials.keys()}
    if tokenizer.eos_token_id is not None:
        found.add(int(tokenizer.eos_token_id))
    closing = _closing_token(tokenizer, specials)
    if closing is not None:
        found.add(closing)
    return tuple(sorted(found))


def template_sha256(tokenizer: PreTrainedTokenizerFast) -> str:
    """SHA-256 (hex) of the chat template's source text: equal templates, equal prompts.

    Raises:
        ModelError: the tokenizer has no chat template.
    """
    return sha256(_template(tokenizer).encode()).hexdigest()


def special_texts(tokenizer: PreTrainedTokenizerFast) -> dict[str, int]:
    """The text and id of every token that the tokenizer declares special."""
    return {str(t.content): int(i) for i, t in tokenizer.added_tokens_decoder.items() if t.special}


def _template(tokenizer: PreTrainedTokenizerFast) -> str:
    try:
        return str(tokenizer.get_chat_template())
    except ValueError:
        raise ModelError(
            "the model's tokenizer has no chat template: choose an instruction-tuned model, or add a "
            "chat_template.jinja to the model's folder"
        ) from None


def _render(
    tokenizer: PreTrainedTokenizerFast, messages: Sequence[Mapping[str, str]], generation_prompt: bool = True
) -> str:
    _template(tokenizer)
    try:
        text = tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            tokenize=False,
            add_generation_prompt=generation_prompt,
            enable_thinking=False,
        )
    except TemplateError as error:
        roles = ", ".join(message["role"] for message in messages)
        raise ModelError(f"the model's chat template refuses a conversation of ({roles}): {error}") from None
    return str(text)


def _encode(tokenizer: PreTrainedTokenizerFast, text: str, as_letters: bool = False) -> list[int]:
    encoded = tokenizer(text, add_special_tokens=False, split_special_tokens=as_letters)
    return [int(i) for i in encoded["input_ids"]]


def _unused_mark(texts: Iterable[str]) -> str:
    """A private-use character that none of the texts contains."""
    used = set().union(*texts)
    return next(mark for mark in map(chr, range(0xE000, 0xF900)) if mark not in used)


def _closing_token(tokenizer: PreTrainedTokenizerFast, specials: Mapping[str, int]) -> int | None:
    """The first special token that the template writes after an assistant's words, if it writes one."""
    probe = "the words of the assistant"
    conversation = [{"role": "user", "content": "a question"}, {"role": "assistant", "content": probe}]
    try:
        text = _render(tokenizer, conversation, generation_prompt=False)
    except ModelError:
        return None
    after = text.partition(probe)[2]
    places = {after.find(special): i for special, i in specials.items() if special in after}
    return places[min(places)] if places else None
