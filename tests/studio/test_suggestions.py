"""Suggestions by names and types alone."""

import pytest

from sourdine.studio.review import suggest


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("species", "a known list of keys"),
        ("native-country", "a known list of keys"),
        ("marital-status", "a known list of keys"),
        ("relationship", "a known list of keys"),  # which ends like an address of a computer
        ("bill_length_mm", "numbers from 0"),
        ("body_mass_g", "numbers from 0"),
        ("education-num", "whole numbers from 0"),
        ("hours-per-week", "whole numbers from 0"),
        ("year", "whole numbers"),
        ("patientId", "leave it out"),
        ("surname", "leave it out"),
        ("e-mail", "leave it out"),
        ("client_ip", "leave it out"),
    ],
)
def test_names_that_others_gave_are_understood(name: str, words: str) -> None:
    suggestion = suggest(name, "")
    assert suggestion is not None
    assert suggestion.words == words


@pytest.mark.parametrize("name", ["q17", "fnlwgt", "x", ""])
def test_of_other_names_nothing_is_guessed(name: str) -> None:
    assert suggest(name, "") is None
