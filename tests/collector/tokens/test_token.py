"""A token from its request to its text and back."""

import pytest

from sourdine.collector.tokens.blind import blind_sign, new_key
from sourdine.collector.tokens.token import Token, TokenRequest
from sourdine.core.errors import InvalidParameter

KEY, OTHER = new_key(), new_key()


def token() -> Token:
    request = TokenRequest.draw(KEY.public_key())
    return request.finish(blind_sign(KEY, request.blinding.blinded))


def test_a_token_is_valid_under_its_key_alone_and_goes_through_a_header() -> None:
    made = token()
    again = Token.from_text(made.to_text())
    assert again == made
    assert made.is_valid(KEY.public_key())
    assert not made.is_valid(OTHER.public_key())
    assert made.message.hex() not in repr(made)


def test_tokens_are_spent_under_numbers_of_their_own() -> None:
    one, other = token(), token()
    assert one.spent_as != other.spent_as
    assert Token(one.message, other.signature).spent_as == one.spent_as


@pytest.mark.parametrize(
    "text", ["", "00", "g" * 640, "0" * 2000, "AB" * 320, "ab" * 320 + "\n", "0" * 641, "0" * 1151]
)
def test_what_is_no_token(text: str) -> None:
    assert Token.from_text(text) is None


def test_a_request_refuses_the_answer_of_another_key() -> None:
    request = TokenRequest.draw(KEY.public_key())
    with pytest.raises(InvalidParameter):
        request.finish(bytes(256))
