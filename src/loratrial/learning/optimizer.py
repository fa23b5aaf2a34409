"""AdamW on the adapter's tensors, with a cap on the gradient's norm, and state that survives a restart."""

from collections.abc import Mapping

import torch
from torch import Tensor


class Optimizer:
    """One optimizer over named tensors.

    Decoupled weight decay: Loshchilov and Hutter 2019, arXiv 1711.05101; betas 0.9 and 0.999, epsilon 1e-8.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        learning_rate: float,
        weight_decay: float,
        gradient_clip: float,
    ) -> None:
        self._parameters = dict(parameters)
        self._clip = gradient_clip
        self._adam = torch.optim.AdamW(
            self._parameters.values(), lr=learning_rate, weight_decay=weight_decay, foreach=True
        )

    def step(self, learning_rate: float | None = None) -> tuple[float, float]:
        """Apply the gathered gradients and drop them; returns the gradient's norm before the cap, and the
        norm of the change of the adapter."""
        if learning_rate is not None:
            self._adam.param_groups[0]["lr"] = learning_rate
        before = [value.detach().clone() for value in self._parameters.values()]
        norm = torch.nn.utils.clip_grad_norm_(self._parameters.values(), self._clip)
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)
        change = torch.stack(
            [(new.detach() - old).norm() for new, old in zip(self._parameters.values(), before, strict=True)]
        ).norm()
        return float(norm), float(change)

    def state(self) -> dict[str, Tensor]:
        """Moments and step counts as plain tensors by name; empty before the first step."""
        tensors = {}
        for name, value in self._parameters.items():
            for key, moment in self._adam.state.get(value, {}).items():
                tensors[f"{key}:{name}"] = moment.detach().to("cpu", copy=True)
        return tensors

    def set_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from `state()`."""
        for name, value in self._parameters.items():
            own = {}
            for key in ("step", "exp_avg", "exp_avg_sq"):
                if (stored := tensors.get(f"{key}:{name}")) is not None:
                    own[key] = stored.clone() if key == "step" else stored.to(value.device, copy=True)
            if own:
                self._adam.state[value] = own
