"""A model of a run behind the APIs of OpenAI and Anthropic, on this machine, for programs that play a seat."""
