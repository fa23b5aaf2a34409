"""Controlled trials of reinforcement learning on LoRA adapters."""

__version__ = "0.1.0"
