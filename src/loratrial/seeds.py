"""Where every random number of a trial comes from: one hash, one seed a candidate.

Arms that are compared sample with the same noise item by item, because nothing in the hash names the arm
(common random numbers). Nothing here needs torch, so that a recount derives the seeds again.
"""

from hashlib import sha256


def derive_seed(*parts: str | int) -> int:
    """The 63-bit seed of a purpose named by `parts` (order matters; parts are length-prefixed, so no two
    different sequences of parts meet in one text)."""
    text = "".join(f"{len(str(part))}:{part}," for part in parts)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def candidate_seed(trial_seed: int, walk: str, stream: str, item: int, candidate: int) -> int:
    """The seed of one candidate's own generator.

    `walk` names the pass: `eval-7319` for the evaluation with seed 7319, `train-0` for the first pass of
    training.
    """
    return derive_seed("candidate", trial_seed, walk, stream, item, candidate)
