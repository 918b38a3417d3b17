"""The engine for servers that speak the API of OpenAI."""
