"""The issuer: one token a code, the same answer again, and nothing for anybody else."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sourdine.collector.announcement import SignedAnnouncement
from sourdine.collector.blocks import recount
from sourdine.collector.issuer import CodeStore, IssuerApplication, IssuerSettings, check_codes
from sourdine.collector.period import KeptPeriod
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.collector.tokens.blind import blind_sign, key_name, new_key, public_text
from sourdine.collector.tokens.token import Token, TokenRequest
from sourdine.core.errors import InvalidParameter
from tests.collector.parts import WORK, Answer, Client, announced, lines, new_store, running

KEY, OTHER = new_key(), new_key()
SIGNED = announced(period=KeptPeriod.WHOLE, tokens=public_text(KEY.public_key()))
PATH = f"/v1/questions/{WORK.fingerprint}/tokens"
CODE, SECOND = "correct-horse-battery", "staple-correct-horse"


def issuer(folder: Path, **more: Any) -> IssuerApplication:
    settings = IssuerSettings(folder / "codes.db", {WORK.fingerprint: [KEY]}, **more)
    application = IssuerApplication(settings)
    application._codes = CodeStore(settings.store)
    application._codes.add(WORK.fingerprint, [CODE, SECOND])
    return application


def ask(
    application: IssuerApplication, body: bytes, code: str = CODE, path: str = PATH, **more: str
) -> Answer:
    headers = {"Authorization": f"Bearer {code}", **more}
    return asyncio.run(Client(application).ask("POST", path, headers, body))  # type: ignore[arg-type]


def token(key: Any = KEY) -> Token:
    request = TokenRequest.draw(key.public_key())
    return request.finish(blind_sign(key, request.blinding.blinded))


def test_a_code_is_good_for_one_token_and_for_its_answer_again(tmp_path: Path) -> None:
    application = issuer(tmp_path)
    first, second = TokenRequest.draw(KEY.public_key()), TokenRequest.draw(KEY.public_key())
    answer = ask(application, first.blinding.blinded)
    assert answer.status == 200
    assert first.finish(answer.body).is_valid(KEY.public_key())
    assert ask(application, first.blinding.blinded).body == answer.body
    assert ask(application, second.blinding.blinded).status == 409
    assert ask(application, second.blinding.blinded, SECOND).status == 200
    assert application._codes is not None
    assert application._codes.used == 2


def test_what_an_issuer_refuses(tmp_path: Path) -> None:
    application, request = (
        issuer(tmp_path, origins=("https://survey.example",)),
        TokenRequest.draw(KEY.public_key()),
    )
    blinded = request.blinding.blinded
    assert ask(application, blinded, "unknown-code-of-nobody").status == 401
    assert ask(application, blinded, "short").status == 401
    assert ask(application, blinded[:-1]).status == 400
    assert ask(application, b"\xff" * 600).status == 400
    assert ask(application, blinded, path=PATH.replace(WORK.fingerprint, "0" * 16)).status == 404
    assert ask(application, blinded, Origin="https://evil.example").status == 403
    good = ask(application, blinded, Origin="https://survey.example")
    assert good.status == 200
    assert good.headers[b"access-control-allow-origin"] == b"https://survey.example"
    assert CODE.encode() not in (tmp_path / "codes.db").read_bytes()


def test_too_many_requests_wait(tmp_path: Path) -> None:
    application = issuer(tmp_path, rate=1.0)
    statuses = [ask(application, b"").status for _ in range(6)]
    assert statuses[-1] == 429


def test_codes_are_long() -> None:
    assert check_codes([CODE]) == [CODE]
    for wrong in ("short", "with a space in it all", "ümlaut-ümlaut-ümlaut"):
        with pytest.raises(InvalidParameter, match="Code 2"):
            check_codes([CODE, wrong])


def posted(folder: Path, body: bytes, text: str | None, **more: str) -> int:
    settings = CollectorSettings(store=str(folder / "c.db"))
    new_store(settings.store, SIGNED).close()

    async def run() -> int:
        async with running(settings) as client:
            headers = {} if text is None else {"Sourdine-Token": text}
            return (await client.post(body, headers={**headers, **more})).status

    return asyncio.run(run())


def test_a_token_is_spent_once_with_one_report(tmp_path: Path) -> None:
    made = token()
    assert posted(tmp_path, lines(1), None) == 401
    assert posted(tmp_path, lines(1), token(OTHER).to_text()) == 401
    assert posted(tmp_path, lines(1), made.to_text()[:-2] + "00") == 401
    assert posted(tmp_path, lines(2), made.to_text()) == 422
    assert posted(tmp_path, lines(1), made.to_text()) == 201
    assert posted(tmp_path, lines(1), made.to_text()) == 200  # another id, the same token and report
    assert posted(tmp_path, lines(1, 1), made.to_text()) == 409
    store = open_store(str(tmp_path / "c.db"))
    assert recount(store, 1, WORK).reports == 1
    assert posted(tmp_path, lines(1, 1), token().to_text()) == 201


def test_a_number_that_nobody_blinded_does_not_use_up_a_code(tmp_path: Path) -> None:
    """0, 1, n - 1 and n have roots that everybody knows, or none; a client at fault keeps its code."""
    application, n = issuer(tmp_path), KEY.public_key().public_numbers().n
    for wrong in (0, 1, n - 1, n, n + 1, 2**2048 - 1):
        assert ask(application, wrong.to_bytes(256, "big")).status == 400
    assert ask(application, TokenRequest.draw(KEY.public_key()).blinding.blinded).status == 200


def test_a_token_is_spent_once_in_whatever_form_and_at_the_same_time(tmp_path: Path) -> None:
    made, n = token(), KEY.public_key().public_numbers().n
    text = made.to_text()
    again = int.from_bytes(made.signature, "big") + n  # the same number to whoever does not look at its size
    for wrong in (
        text.upper(),
        f" {text}",
        f"{text}0" * 2,
        "00" + text,
        (made.message + b"\0" + made.signature).hex(),
        (made.message + again.to_bytes(257, "big")).hex(),
    ):
        assert posted(tmp_path, lines(1), wrong) == 401
    settings = CollectorSettings(store=str(tmp_path / "c.db"))

    async def both() -> list[int]:
        async with running(settings) as client:
            tries = [client.post(lines(1, seed), headers={"Sourdine-Token": text}) for seed in range(8)]
            return [each.status for each in await asyncio.gather(*tries)]

    statuses = asyncio.run(both())
    assert statuses.count(201) == 1
    assert set(statuses) <= {200, 201, 409}
    assert recount(open_store(settings.store), 1, WORK).reports == 1


@pytest.mark.parametrize("end", [b"\r", b"\x0b", b"\x0c", b"\x1e", b"\xc2\x85", b"\xe2\x80\xa8"])
def test_with_a_token_goes_one_report_by_whatever_end_of_a_line(tmp_path: Path, end: bytes) -> None:
    body = lines(1).rstrip(b"\n") + end + lines(1, 1)
    assert posted(tmp_path, body, token().to_text()) in (409, 422)
    assert posted(tmp_path, b"\n" + lines(2), token().to_text()) == 422
    assert recount(open_store(str(tmp_path / "c.db")), 1, WORK).reports == 0


def rotated(folder: Path) -> IssuerApplication:
    """The issuer after a change of keys, which still has the earlier one."""
    application = issuer(folder)
    settings = replace(application.settings, keys={WORK.fingerprint: [OTHER, KEY]})
    changed = IssuerApplication(settings)
    changed._codes = application._codes
    return changed


def test_a_code_is_not_used_twice_over_a_change_of_keys(tmp_path: Path) -> None:
    first = TokenRequest.draw(KEY.public_key())
    assert ask(issuer(tmp_path), first.blinding.blinded).status == 200
    application, second = rotated(tmp_path), TokenRequest.draw(OTHER.public_key())
    assert ask(application, second.blinding.blinded).status == 409
    again = ask(application, second.blinding.blinded, **{"Sourdine-Token-Key": key_name(OTHER.public_key())})
    assert again.status == 409
    assert ask(application, second.blinding.blinded, SECOND).status == 200


def test_an_answer_that_was_lost_before_a_change_of_keys_is_given_again(tmp_path: Path) -> None:
    first = TokenRequest.draw(KEY.public_key())
    before = ask(issuer(tmp_path), first.blinding.blinded)
    for more in ({}, {"Sourdine-Token-Key": key_name(KEY.public_key())}):
        again = ask(rotated(tmp_path), first.blinding.blinded, **more)
        assert again.body == before.body
        assert first.finish(again.body).is_valid(KEY.public_key())


def test_a_token_drawn_for_a_key_that_is_gone_uses_up_no_code(tmp_path: Path) -> None:
    application = issuer(tmp_path)
    gone = TokenRequest.draw(OTHER.public_key())
    answer = ask(application, gone.blinding.blinded, **{"Sourdine-Token-Key": key_name(OTHER.public_key())})
    assert (answer.status, answer.body) == (400, b'{"error":"key"}')
    assert application._codes is not None
    assert application._codes.used == 0


def test_unspent_tokens_stay_good_and_spent_ones_spent_over_a_change_of_keys(tmp_path: Path) -> None:
    """Of a key that is not named any more they end at once, as after a theft."""
    place = tmp_path / "reports.db"
    spent, unspent = token(), token()
    new, old = public_text(OTHER.public_key()), public_text(KEY.public_key())

    def sent(signed: SignedAnnouncement, *tokens: Token) -> list[int]:
        new_store(str(place), signed).close()

        async def act() -> list[int]:
            async with running(CollectorSettings(store=str(place))) as client:
                return [
                    (await client.post(lines(1, i), headers={"Sourdine-Token": each.to_text()})).status
                    for i, each in enumerate(tokens)
                ]

        return asyncio.run(act())

    assert sent(SIGNED, spent) == [201]
    kept = announced(period=KeptPeriod.WHOLE, version=2, tokens=new, former_tokens=(old,))
    assert sent(kept, token(OTHER), spent, unspent) == [201, 409, 201]
    assert sent(announced(period=KeptPeriod.WHOLE, version=3, tokens=new), token(), token(OTHER)) == [
        401,
        201,
    ]


def test_metrics_are_shown_on_their_own_port_alone(tmp_path: Path) -> None:
    application = issuer(tmp_path, results_port=9)
    assert ask(application, b"no number").status == 400

    def shown(port: int, host: str = "127.0.0.1:9") -> Answer:
        client: Any = Client(application)  # type: ignore[arg-type]
        answer: Answer = asyncio.run(client.ask("GET", "/metrics", {"Host": host}, port=port))
        return answer

    assert shown(8080).status == 404
    assert shown(9, "evil.example:9").status == 404  # a page's own name, which it led here
    assert b'sourdine_token_requests_total{outcome="number"} 1' in shown(9).body


def test_an_issuer_is_ready_while_its_codes_can_be_used(tmp_path: Path) -> None:
    """It said so without codes too."""

    def ready(application: IssuerApplication) -> int:
        client: Any = Client(application)  # type: ignore[arg-type]
        answer: Answer = asyncio.run(client.ask("GET", "/ready"))
        return answer.status

    application = issuer(tmp_path)
    assert ready(application) == 200
    assert application._codes is not None
    application._codes.close()
    assert ready(application) == 503
    assert ready(IssuerApplication(application.settings)) == 503
