"""The point from which a killed training goes on: adapter, optimizer, token price, and how far the walk had
come.

One safetensors file, written beside its place and renamed, so that there is always a whole one or none.
Nothing else is needed to go on: every random number comes from a seed that its place in the walk names.
"""

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from loratrial.errors import RunFolderError
from loratrial.evidence.folder import write_atomic


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training after `n_groups` of its ledger and `n_lines` of its learning record."""

    adapter: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    version: int
    n_groups: int
    n_lines: int
    price: str = ""
    """The state of the token price, as `trial.pricing` writes it."""


_COUNTS = ("version", "n_groups", "n_lines")


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    tensors = {f"adapter/{name}": value for name, value in checkpoint.adapter.items()}
    tensors |= {f"optimizer/{name}": value.contiguous() for name, value in checkpoint.optimizer.items()}
    counts = {name: str(getattr(checkpoint, name)) for name in _COUNTS}
    write_atomic(path, save(tensors, metadata={**counts, "price": checkpoint.price}))


def load_checkpoint(path: Path) -> Checkpoint | None:
    """The checkpoint at `path`, or None when there is none; raises RunFolderError when it is damaged."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            said = file.metadata() or {}
            counts = {name: int(said[name]) for name in _COUNTS}
            return Checkpoint(
                _part(tensors, "adapter/"), _part(tensors, "optimizer/"), **counts, price=said["price"]
            )
    except (SafetensorError, KeyError, ValueError) as error:
        raise RunFolderError(f"{path} is damaged ({error}); delete it to train this arm anew") from None


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
