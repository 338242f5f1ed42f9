from __future__ import annotations

import pytest

from crossdock.engines.mqtt.broker import Broker, parse_broker


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mqtt://broker", Broker("broker", 1883, False)),
        ("mqtt://broker/", Broker("broker", 1883, False)),
        ("mqtts://broker.example", Broker("broker.example", 8883, True)),
        ("mqtt://127.0.0.1:18830", Broker("127.0.0.1", 18830, False)),
        ("mqtt://[::1]:1884", Broker("::1", 1884, False)),
        ("mqtts://greenhouse:s%40fe@broker", Broker("broker", 8883, True, "greenhouse", "s@fe")),
        ("mqtt://greenhouse@broker", Broker("broker", 1883, False, "greenhouse")),
    ],
)
def test_a_url_says_where_the_broker_is_and_who_we_are(url: str, expected: Broker) -> None:
    assert parse_broker(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "broker",
        "broker:1883",
        "http://broker",
        "mqtt://",
        "mqtt://:secret@",
        "mqtt://broker:0",
        "mqtt://broker:65536",
        "mqtt://broker:secret",
        "mqtt://broker/topic",
        "mqtt://broker?secret=1",
        "mqtt://broker#secret",
        "mqtt://bro ker",
        "mqtt://broker\n",
        "mqtt://[::1",
    ],
)
def test_anything_else_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="must be a URL like mqtt://host") as refusal:
        parse_broker(url)
    assert "secret" not in str(refusal.value)


def test_neither_the_label_nor_the_repr_has_the_password() -> None:
    broker = parse_broker("mqtts://greenhouse:secret@[2001:db8::1]:8884")
    assert broker.label == "mqtts://[2001:db8::1]:8884"
    assert "secret" not in repr(broker)
