"""Items to DynamoDB's typed JSON and back."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engines.items.dynamodb.marshal import (
    Attribute,
    marshal,
    marshal_value,
    number,
    unmarshal,
    unmarshal_value,
)
from crossdock.engines.items.port import Value

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.text() | FINITE | st.integers(-(10**37), 10**37)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=6))
def test_an_item_comes_back_equal(item: dict[str, Value]) -> None:
    over_the_wire = msgspec.json.decode(msgspec.json.encode(marshal(item)))
    assert unmarshal(over_the_wire) == item


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=6))
def test_what_came_back_stays_as_it_is_when_it_is_stored_again(item: dict[str, Value]) -> None:
    read = unmarshal(marshal(item))
    assert repr(unmarshal(marshal(read))) == repr(read)


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        ("", {"S": ""}),
        ("text", {"S": "text"}),
        (None, {"NULL": True}),
        (True, {"BOOL": True}),
        (False, {"BOOL": False}),
        (1, {"N": "1"}),
        (-5, {"N": "-5"}),
        (1.5, {"N": "1.5"}),
        (1e-7, {"N": "1e-07"}),
        ([1, "a"], {"L": [{"N": "1"}, {"S": "a"}]}),
        ({"a": {}}, {"M": {"a": {"M": {}}}}),
    ],
)
def test_a_value_has_the_type_that_boto3_would_give_it(value: Value, attribute: Attribute) -> None:
    assert marshal_value(value) == attribute
    assert unmarshal_value(attribute) == value


@pytest.mark.parametrize(
    ("value", "literal"),
    [(1.0, "1"), (-0.0, "0"), (1e21, "1000000000000000000000"), (1e100, "1e+100"), (-2.0, "-2")],
)
def test_a_whole_float_is_sent_as_the_whole_number_that_it_is_read_as(value: float, literal: str) -> None:
    assert marshal_value(value) == {"N": literal}


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("0", 0),
        ("-1", -1),
        ("9" * 38, int("9" * 38)),
        ("1" + "0" * 38, 1e38),
        ("1.5", 1.5),
        ("0.00000000015", 1.5e-10),
        ("1e+21", 1e21),
    ],
)
def test_a_number_is_an_int_when_38_digits_name_it_and_a_float_otherwise(
    literal: str, expected: int | float
) -> None:
    assert repr(number(literal)) == repr(expected)


@pytest.mark.parametrize("kind", ["B", "SS", "NS", "BS"])
def test_a_type_that_we_never_write_is_an_error_and_no_guess(kind: str) -> None:
    with pytest.raises(ValueError, match=f"type {kind}"):
        unmarshal_value({kind: []})
