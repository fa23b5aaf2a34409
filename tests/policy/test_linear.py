"""Linear layers that turn the product around: the same sums, and only where that is quicker."""

import pytest
import torch
from torch import nn

from loratrial.policy import linear as module
from loratrial.policy.linear import FEW_ROWS, FewRowsLinear, use_few_rows


def _layer(bias):
    plain = nn.Linear(6, 5, bias=bias)
    quick = nn.Linear(6, 5, bias=bias)
    quick.load_state_dict(plain.state_dict())
    use_few_rows(nn.Sequential(quick))
    return plain, quick


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 6), (3, 6), (3, 1, 6), (1, 4, 6), (FEW_ROWS + 1, 6)])
def test_every_shape_gives_what_a_plain_layer_gives(bias, shape):
    plain, quick = _layer(bias)
    assert isinstance(quick, FewRowsLinear)
    rows = torch.randn(shape)
    with torch.no_grad():
        torch.testing.assert_close(quick(rows), plain(rows))


def test_gradients_and_rows_of_several_tokens_go_the_plain_way(monkeypatch):
    taken = []
    plain_linear = module.linear
    monkeypatch.setattr(module, "linear", lambda *a: taken.append(a[0].shape) or plain_linear(*a))
    _, quick = _layer(False)
    quick(torch.randn(3, 1, 6))
    with torch.no_grad():
        quick(torch.randn(3, 1, 6))
        quick(torch.randn(1, 3, 6))
        quick(torch.randn(FEW_ROWS + 1, 1, 6))
    assert taken == [(3, 1, 6), (1, 3, 6), (FEW_ROWS + 1, 1, 6)]


def test_only_plain_layers_are_changed_and_weights_stay():
    class Own(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(2, 2), Own(2, 2), nn.ReLU())
    names = [name for name, _ in model.named_parameters()]
    use_few_rows(model)
    assert [type(each) for each in model] == [FewRowsLinear, Own, nn.ReLU]
    assert [name for name, _ in model.named_parameters()] == names
