from __future__ import annotations

import pytest
from tests.unit.hooks.providers.senders import NOW_MS, SENDERS, URL, arrival, b64, mac

from crossdock.hooks.rules.providers.model import RefusalReason
from crossdock.hooks.rules.providers.recipes import recipe_of

SECRET = SENDERS["hubspot"].secrets[0].configured
STAMP = str(NOW_MS)


@pytest.mark.parametrize(
    ("called", "signed"),
    [
        ("?a=%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B", "?a=:/?@!$'()*,;"),
        ("?a=%3a%2f%3f%2c", "?a=:/?,"),
        ("?a=%20%26%3D%25%23%C3%A9+%5B", "?a=%20%26%3D%25%23%C3%A9+%5B"),
        ("/a%2Fb", "/a/b"),
        ("?a=%253A", "?a=%253A"),
    ],
)
def test_hubspot_signs_a_url_with_some_marks_decoded_and_all_else_as_it_is(called: str, signed: str) -> None:
    text = f"POST{URL}{signed}[]{STAMP}"
    headers = {
        "X-HubSpot-Request-Timestamp": STAMP,
        "X-HubSpot-Signature-v3": b64(mac(SECRET, text.encode())),
    }
    recipe = recipe_of("hubspot", None)
    assert recipe.verify(arrival(b"[]", headers, url=URL + called), [SECRET]) is None
    if called != signed:
        text = f"POST{URL}{called}[]{STAMP}"
        headers |= {"X-HubSpot-Signature-v3": b64(mac(SECRET, text.encode()))}
        assert recipe.verify(arrival(b"[]", headers, url=URL + called), [SECRET]) is not None


def test_hubspot_signs_the_method() -> None:
    sent = SENDERS["hubspot"].send()
    put = arrival(sent.body, dict(sent.headers), method="PUT")
    refusal = recipe_of("hubspot", None).verify(put, [SECRET])
    assert refusal is not None
    assert refusal.reason is RefusalReason.SIGNATURE_MISMATCH


@pytest.mark.parametrize("name", ["square", "hubspot"])
def test_no_part_of_a_signed_body_passes_for_more_of_the_path(name: str) -> None:
    """URL and body are signed without a boundary: the same bytes, cut elsewhere, are another body."""
    sent = SENDERS[name].send()
    for cut in range(1, len(sent.body)):
        url = URL + sent.body[:cut].decode("latin-1")
        moved = arrival(sent.body[cut:], dict(sent.headers), url=url)
        refusal = SENDERS[name].recipe.verify(moved, [SECRET])
        assert refusal is not None
        assert refusal.reason is RefusalReason.URL_MALFORMED
