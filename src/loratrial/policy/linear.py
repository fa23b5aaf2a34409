"""Linear layers that are quick for a handful of rows of one token each.

A decode step multiplies each weight matrix with a few rows. On a processor, the matrix library reads the
weights two to four times faster when the few rows stand as columns on the right: (W x^T)^T in place of
x W^T. The sums are the same; only their order differs. A row of several tokens goes the plain way, however
short, so that scoring it gives the same bits with gradients and without.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

FEW_ROWS = 64


class FewRowsLinear(nn.Linear):
    """An `nn.Linear` that turns the product around for few rows, on a CPU and without gradients."""

    def forward(self, input: Tensor) -> Tensor:
        n_rows = input.shape[0]
        one_token = input.numel() == n_rows * input.shape[-1]
        if n_rows > FEW_ROWS or not one_token or torch.is_grad_enabled() or input.device.type != "cpu":
            return linear(input, self.weight, self.bias)
        product = (self.weight @ input.reshape(n_rows, -1).T).T.reshape(*input.shape[:-1], -1)
        return product if self.bias is None else product + self.bias


def use_few_rows(model: nn.Module) -> None:
    """Let every plain linear layer of `model` take the quick way; weights and names stay as they are."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = FewRowsLinear
