"""What a process uses: peak memory, as the system counts it."""

import resource
import sys

import torch


def peak_memory_bytes() -> int:
    """The largest memory so far: of the GPU when one is in use, of the process otherwise."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return int(torch.cuda.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
