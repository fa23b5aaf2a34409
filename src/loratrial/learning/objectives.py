"""The losses of one group, token by token. Every tensor is [N]: all completion tokens of the group in a row.

A loss is a sum over tokens, to be divided by something of the **whole** group, so that it is the same however
the group's candidates are split over passes: GRPO by its completion tokens, REINFORCE by its candidates.
"""

import torch
from torch import Tensor


def grpo_token_losses(
    logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, clip_ratio: float
) -> Tensor:
    """-min(ratio A, clip(ratio, 1 - c, 1 + c) A), ratio = exp(logprob - old).

    PPO's clipped surrogate as GRPO uses it: Shao et al. 2024, arXiv 2402.03300, equation 3.
    """
    ratio = (logprobs - old_logprobs).exp()
    clipped = ratio.clamp(1 - clip_ratio, 1 + clip_ratio)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def kl_tokens(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """exp(d) - d - 1 with d = reference - policy: the k3 estimator of KL(policy, reference), never negative.

    Shao et al. 2024, arXiv 2402.03300, equation 4.
    """
    difference = reference_logprobs - logprobs
    return difference.exp() - difference - 1


def reinforce_token_losses(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """-A log p, summed over a completion's tokens: REINFORCE with a baseline, no clipping, no KL.

    The published repair pilot; Ahmadian et al. 2024, arXiv 2402.14740, section 2.3.
    """
    return -advantages * logprobs
