"""Tasks whose input is split among agents."""

from .tasks import Items, ShardedTask, credit_for, joined, shard_text

__all__ = ["Items", "ShardedTask", "credit_for", "joined", "shard_text"]
