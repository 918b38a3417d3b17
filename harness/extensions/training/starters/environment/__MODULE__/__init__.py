"""A spec of harness as an environment for verifiers and prime-rl."""

from harness.extensions.training.verifiers_env import SeatHarness, environment

Tasks, Environment = environment("__SPEC__", learn=["__LEARN__"], beside=__file__)

__all__ = ["Environment", "SeatHarness", "Tasks"]
