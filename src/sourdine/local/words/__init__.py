"""Words that nobody listed: each device tells a prefix of its word, and a tree finds the common ones."""

from sourdine.local.words.device import WordMemo
from sourdine.local.words.search import FoundWord, WordFindings, find_words, least_share, words_document
from sourdine.local.words.spelling import ALPHABET
from sourdine.local.words.tree import WordTree

__all__ = [
    "ALPHABET",
    "FoundWord",
    "WordFindings",
    "WordMemo",
    "WordTree",
    "find_words",
    "least_share",
    "words_document",
]
