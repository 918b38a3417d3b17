"""What vLLM's workers on a CPU do beside their own work. They import this module; nothing else does."""

from __future__ import annotations

from typing import Any


class ReloadsHead:
    """Methods that vLLM adds to its worker (`worker_extension_cls`)."""

    model_runner: Any
    reload_weights: Any

    def reload_with_head(self, weights_path: str) -> None:
        """Load a checkpoint in place.

        On a CPU a linear layer computes with a packed copy of its weights. vLLM packs those again that a checkpoint
        names, but an output layer that shares the embedding's weights has no name of its own there: it would go on
        with the old copy.
        """
        from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
        from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

        self.reload_weights(weights_path=weights_path)
        for layer in self.model_runner.get_model().modules():
            if isinstance(layer, ParallelLMHead) and hasattr(layer, "cpu_linear"):
                dispatch_cpu_unquantized_gemm(layer, remove_weight=False)
