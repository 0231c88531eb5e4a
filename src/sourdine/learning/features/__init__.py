"""Features that need no private data to be learned."""
