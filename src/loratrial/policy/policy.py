"""The policy: a frozen base model and one LoRA adapter, which can be fresh, loaded, trained, saved or off.

PEFT makes the adapter and its files, so that plain PEFT loads what a trial saves. Everything that samples,
scores or trains goes through here, so that adapter state is set in one place. Left out: what an arm is,
and the optimizer, which belong to those who train.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from loratrial.errors import ModelError
from loratrial.policy import chat
from loratrial.policy.attention import IMPLEMENTATION
from loratrial.policy.completion import Choice, Completion
from loratrial.policy.linear import use_few_rows
from loratrial.policy.logprobs import completion_logprobs
from loratrial.policy.models import BaseModel
from loratrial.policy.sampler import Request, sample

ADAPTER_FILE = "adapter_model.safetensors"
CONFIG_FILE = "adapter_config.json"


class Policy:
    """A base model with one adapter on it.

    `version` counts the updates that the adapter has received; whoever updates it sets it.
    """

    def __init__(
        self,
        base: BaseModel,
        *,
        rank: int,
        alpha: int,
        targets: Sequence[str],
        dropout: float = 0.0,
        gradient_checkpointing: bool = False,
    ) -> None:
        """Raises ModelError when the base has none of the `targets`."""
        self.base = base
        self.version = 0
        self.tokenizer = base.tokenizer
        self.eos_ids = base.eos_ids
        self._on = True
        self._targets = sorted(targets)
        self._config = LoraConfig(
            r=rank,
            lora_alpha=alpha,
            lora_dropout=dropout,
            target_modules=self._targets,
            task_type="CAUSAL_LM",
            bias="none",
        )
        base.model.set_attn_implementation(IMPLEMENTATION)
        use_few_rows(base.model)
        with warnings.catch_warnings():
            # names that transformers has replaced and that this version and PEFT's still have to use
            warnings.simplefilter("ignore", FutureWarning)
            if gradient_checkpointing:
                base.model.gradient_checkpointing_enable(  # type: ignore[no-untyped-call]
                    {"use_reentrant": False}
                )
            try:
                self._peft = get_peft_model(base.model, self._config)
            except ValueError as error:
                raise ModelError(
                    f"adapter.targets: the base {base.identity['base']} has no such layers ({error})"
                ) from None
        use_few_rows(base.model)
        self._peft.eval()
        self.model: Any = self._peft.get_base_model()

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The adapter's trainable tensors (float32) by name, in a fixed order."""
        return dict(
            sorted((name, value) for name, value in self.model.named_parameters() if value.requires_grad)
        )

    def reset(self, seed: int) -> None:
        """Make the adapter fresh: A drawn from `seed`, B zero, so that it changes nothing yet."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, value in self.parameters.items():
                if "lora_B" in name:
                    value.zero_()
                else:
                    bound = value.shape[1] ** -0.5  # PEFT's own: uniform, Kaiming with a = sqrt(5)
                    drawn = torch.empty(value.shape).uniform_(-bound, bound, generator=generator)
                    value.copy_(drawn)
        self.version = 0
        self._on = True

    def state(self) -> dict[str, Tensor]:
        """A copy of the adapter's tensors by PEFT's names."""
        state = self._tensors()
        return {name: state[name].detach().to("cpu", copy=True).contiguous() for name in sorted(state)}

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the adapter's tensors as they are now: equal weights, equal fingerprints."""
        digest = sha256()
        for value in self.parameters.values():
            digest.update(value.detach().to("cpu").contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def set_state(self, state: Mapping[str, Tensor]) -> None:
        """Put tensors from `state` into the adapter; raises ModelError when they do not fit."""
        own = self._tensors()
        if own.keys() != state.keys():
            odd = sorted(own.keys() ^ state.keys())[0]
            raise ModelError(f"the adapter does not fit this trial's model: {odd} is only on one side")
        with torch.no_grad():
            for name, value in own.items():
                if value.shape != state[name].shape:
                    raise ModelError(f"the adapter does not fit: {name} is {tuple(state[name].shape)}")
                value.copy_(state[name])
        self._on = True

    def save(self, folder: Path) -> str:
        """Write the adapter as PEFT writes one; returns the SHA-256 of its weights file."""
        folder.mkdir(parents=True, exist_ok=True)
        self._config.base_model_name_or_path = self.base.identity["base"]
        self._config.revision = self.base.identity.get("revision")
        self._config.inference_mode = True
        self._config.target_modules = self._targets  # PEFT keeps a set, and would write it in any order
        self._config.save_pretrained(str(folder))
        data = save(self.state(), metadata={"format": "pt"})
        (folder / ADAPTER_FILE).write_bytes(data)
        return sha256(data).hexdigest()

    def load(self, folder: Path) -> str:
        """Take the adapter's weights from a folder; returns the SHA-256 of their file.

        Raises ModelError when they are missing, damaged, or do not fit.
        """
        path = folder / ADAPTER_FILE
        try:
            data = path.read_bytes()
            state = load(data)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{path} cannot be read as an adapter ({error})") from None
        self.set_state(state)
        return sha256(data).hexdigest()

    def turn_off(self) -> None:
        """Be the plain base model until the adapter is reset, set or loaded."""
        self._on = False
        self.version = 0

    @contextmanager
    def adapter_off(self) -> Iterator[None]:
        """The plain base model, for as long as the context lasts."""
        was_on, self._on = self._on, False
        try:
            yield
        finally:
            self._on = was_on

    @contextmanager
    def with_state(self, state: Mapping[str, Tensor]) -> Iterator[None]:
        """The policy as it was at `state`, for as long as the context lasts; not for gradients."""
        mine = self.state()
        version = self.version
        self.set_state(state)
        try:
            yield
        finally:
            self.set_state(mine)
            self.version = version

    @contextmanager
    def training(self) -> Iterator[None]:
        """Dropout and gradient checkpointing live where they are configured; elsewhere they are off."""
        self._peft.train()
        try:
            yield
        finally:
            self._peft.eval()

    def prompt_ids(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The token ids of a chat prompt, ready to be completed."""
        return chat.prompt_ids(self.tokenizer, messages)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of a completion, its end token dropped."""
        return chat.decode(self.tokenizer, token_ids, self.eos_ids)

    def text(self, completion: Completion) -> str:
        """What a completion says: free text without its end token, then what was supplied, and the label."""
        if completion.choice is None:
            return self.decode(completion.token_ids)
        return self.decode([*completion.inputs, completion.token_ids[-1]])

    def choice(self, prefix: str, labels: Sequence[str]) -> Choice:
        """The choice of one of `labels` after `prefix`; raises ModelError where the model has no single token
        for each of them."""
        supplied, label_ids = chat.choice_ids(self.tokenizer, prefix, labels)
        return Choice(supplied, label_ids)

    def sample(self, requests: Sequence[Request], temperature: float) -> list[list[Completion]]:
        """Sample the groups of all requests side by side."""
        with self._adapter():
            return sample(self.model, requests, temperature, self.eos_ids)

    def logprobs(
        self, prompt_ids: Sequence[int], completions: Sequence[Completion], temperature: float
    ) -> list[Tensor]:
        """Log-probabilities of the drawn tokens of each completion, float32 [R_i], under the temperature."""
        with self._adapter():
            return completion_logprobs(self.model, prompt_ids, completions, temperature)

    def _tensors(self) -> dict[str, Tensor]:
        # left to itself, PEFT looks on the hub, by the base's name, whether the embeddings were changed
        tensors: dict[str, Tensor] = get_peft_model_state_dict(self._peft, save_embedding_layers=False)
        return tensors

    @contextmanager
    def _adapter(self) -> Iterator[None]:
        if self._on:
            yield
        else:
            with self._peft.disable_adapter():
                yield
