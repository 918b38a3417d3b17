"""The engine for vLLM in this process."""
