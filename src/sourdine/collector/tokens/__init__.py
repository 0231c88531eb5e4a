"""Tokens: the right to one report, signed blindly, so that nobody can tell to whom a token was given."""
