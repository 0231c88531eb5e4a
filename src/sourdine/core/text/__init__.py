"""Texts that people and programs read: TOML, advice as the caller writes, characters that nothing obeys."""
