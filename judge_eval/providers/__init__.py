"""One request to an OpenAI-compatible endpoint: what is sent, what comes, what may go wrong."""
