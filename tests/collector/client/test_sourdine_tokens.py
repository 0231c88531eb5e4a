"""The browser's tokens: the vectors of RFC 9474, and tokens that Python takes, in Node."""

import pytest

from sourdine.collector.tokens.blind import blind_sign, new_key, public_text
from sourdine.collector.tokens.token import Token
from tests.collector.client import node
from tests.collector.tokens.test_blind import FILE, published

__all__ = ["published"]
KEY = new_key()
BYTES = "const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));"
HEX = "const hex = (row) => Array.from(row, (byte) => byte.toString(16).padStart(2, '0')).join('');"


def test_the_vectors_of_the_standard(published: object) -> None:
    script = f"""{BYTES} {HEX}
    const out = [];
    for (const one of given.vectors) {{
      const [message, salt, inverse] = [bytes(one.prepared_msg), bytes(one.salt), BigInt('0x' + one.inv)];
      const request = await client.TokenRequest.draw(given.key, {{ message, salt, inverse }});
      const token = await request.finish(bytes(one.blind_sig));
      out.push([hex(request.blinded) === one.blinded_msg, token === one.prepared_msg + one.sig]);
    }}
    console.log(JSON.stringify(out));"""
    key = public_text(published.public_key())  # type: ignore[attr-defined]
    answer = node.run(script, {"key": key, "vectors": FILE["vectors"]})
    assert answer == [[True, True]] * len(FILE["vectors"])


def test_a_token_of_the_browser_is_one_for_python() -> None:
    """The signature is made between two runs, so the device's part is kept as a browser keeps it."""
    draw = f"""{HEX}
    const request = await client.TokenRequest.draw(given);
    const [message, inverse] = [hex(request.message), request.inverse.toString(16)];
    console.log(JSON.stringify({{ message, inverse, blinded: hex(request.blinded) }}));"""
    key = public_text(KEY.public_key())
    drawn = node.run(draw, key)
    signed = blind_sign(KEY, bytes.fromhex(drawn["blinded"]))
    finish = f"""{BYTES}
    const [message, inverse] = [bytes(given.drawn.message), BigInt('0x' + given.drawn.inverse)];
    const request = await client.TokenRequest.draw(given.key, {{ message, inverse }});
    console.log(JSON.stringify(await request.finish(bytes(given.signed))));"""
    text = node.run(finish, {"key": key, "drawn": drawn, "signed": signed.hex()})
    token = Token.from_text(text)
    assert token is not None
    assert token.is_valid(KEY.public_key())


@pytest.mark.parametrize("wrong", ["", "00", "zz"])
def test_a_key_that_is_none_is_refused(wrong: str) -> None:
    script = (
        "try { await client.TokenRequest.draw(given); } catch (e) { console.log(JSON.stringify(e.code)); }"
    )
    assert node.run(script, wrong) == "token"
