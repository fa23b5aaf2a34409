"""AdamW against its formulas, the cap on the gradient, and a state that survives a restart."""

import math

import pytest
import torch

from loratrial.learning.optimizer import Optimizer


def _parameters():
    generator = torch.Generator().manual_seed(1)
    return {
        name: torch.randn(shape, generator=generator).requires_grad_()
        for name, shape in (("b", (3, 2)), ("a", (4,)))
    }


def _set_gradients(parameters, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    for value in parameters.values():
        value.grad = scale * torch.randn(value.shape, generator=generator)


def _optimizer(parameters, weight_decay=0.0, clip=1e9):
    return Optimizer(parameters, 0.01, weight_decay, clip)


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_steps_follow_the_published_formulas(weight_decay):
    parameters = _parameters()
    optimizer = _optimizer(parameters, weight_decay)
    value, first, second = parameters["a"].detach().double(), 0.0, 0.0
    for step in range(1, 4):
        _set_gradients(parameters, step)
        gradient = parameters["a"].grad.double()
        optimizer.step()
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        value = value - 0.01 * weight_decay * value
        value = value - 0.01 * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        torch.testing.assert_close(parameters["a"].detach().double(), value, rtol=1e-5, atol=1e-6)


def test_a_step_tells_the_norm_before_the_cap_and_how_far_everything_moved():
    parameters = _parameters()
    before = {name: value.detach().clone() for name, value in parameters.items()}
    _set_gradients(parameters, 1)
    norm = math.sqrt(sum(float((value.grad**2).sum()) for value in parameters.values()))
    found, change = _optimizer(parameters, clip=0.1).step()
    moved = sum(float(((value.detach() - before[name]) ** 2).sum()) for name, value in parameters.items())
    assert found == pytest.approx(norm)
    assert change == pytest.approx(math.sqrt(moved))
    assert all(value.grad is None for value in parameters.values())


def test_the_cap_scales_all_gradients_together():
    small, large = _parameters(), _parameters()
    capped, free = _optimizer(small, clip=0.5), _optimizer(large)
    for step in range(3):
        _set_gradients(small, step)
        _set_gradients(large, step)
        norm = torch.cat([value.grad.flatten() for value in large.values()]).norm()
        for value in large.values():
            value.grad *= 0.5 / norm
        capped.step()
        free.step()
    for name, value in small.items():
        torch.testing.assert_close(value, large[name], rtol=1e-4, atol=1e-6)


def test_a_step_takes_the_learning_rate_that_it_is_given():
    parameters = _parameters()
    optimizer = _optimizer(parameters)
    _set_gradients(parameters, 1)
    _, first = optimizer.step(0.002)
    assert first == pytest.approx(0.002 * math.sqrt(10), rel=1e-3)  # Adam's first step is +-rate everywhere


def test_a_restarted_optimizer_goes_on_to_the_bit_and_one_without_its_state_does_not():
    ends = []
    for restart in ("never", "with its state", "without"):
        parameters = _parameters()
        optimizer = _optimizer(parameters, weight_decay=0.1, clip=1.0)
        for step in range(6):
            if step == 3 and restart != "never":
                state = optimizer.state()
                optimizer = _optimizer(parameters, weight_decay=0.1, clip=1.0)
                if restart == "with its state":
                    optimizer.set_state(state)
            _set_gradients(parameters, step, scale=step + 1)
            optimizer.step()
        ends.append(torch.cat([value.detach().flatten() for value in parameters.values()]))
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


def test_its_state_is_a_copy_by_name_and_empty_before_the_first_step():
    parameters = _parameters()
    optimizer = _optimizer(parameters)
    assert optimizer.state() == {}
    optimizer.set_state({})
    parameters["a"].grad = torch.ones(4)
    optimizer.step()
    state = optimizer.state()
    assert sorted(state) == ["exp_avg:a", "exp_avg_sq:a", "step:a"]
    kept = {name: value.clone() for name, value in state.items()}
    _set_gradients(parameters, 2)
    optimizer.step()
    assert all(torch.equal(value, kept[name]) for name, value in state.items())
