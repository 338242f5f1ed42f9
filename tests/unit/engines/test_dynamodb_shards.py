"""Which shards are read, in which order, and which were lost."""

import pytest

from crossdock.engines.items.dynamodb.shards import Position, Shard, readable_shards, trimmed_shards

BEGUN = Position("17", is_finished=False)
NEW = Position(None, is_finished=False)
DONE = Position("99", is_finished=True)

ROOT = Shard("root", None)
LEFT, RIGHT = Shard("left", "root"), Shard("right", "root")
LEAF = Shard("leaf", "left")
FAMILY = [ROOT, LEFT, RIGHT, LEAF]


@pytest.mark.parametrize(
    ("shards", "positions", "expected"),
    [
        (FAMILY, {}, ["root"]),
        (FAMILY, {"root": BEGUN}, ["root"]),
        (FAMILY, {"root": DONE}, ["left", "right"]),
        (FAMILY, {"root": DONE, "left": DONE, "right": BEGUN}, ["right", "leaf"]),
        (FAMILY, dict.fromkeys(("root", "left", "right", "leaf"), DONE), []),
        # The parent is older than AWS's 24 hours and not listed any more.
        ([LEFT, RIGHT, LEAF], {}, ["left", "right"]),
        ([LEAF], {"left": DONE}, ["leaf"]),
        ([LEAF], {"left": BEGUN}, ["leaf"]),
        ([], {}, []),
    ],
)
def test_a_shard_is_read_when_its_parent_is_finished_or_out_of_reach(
    shards: list[Shard], positions: dict[str, Position], expected: list[str]
) -> None:
    assert readable_shards(shards, positions) == expected


@pytest.mark.parametrize(
    ("shards", "positions", "expected"),
    [
        ([], {}, []),
        (FAMILY, {}, []),
        (FAMILY, {"root": BEGUN}, []),
        # Read to the end, then gone: as it should be.
        ([LEFT, RIGHT], {"root": DONE}, []),
        # Gone in the middle of reading, and before it had begun in earnest.
        ([LEFT, RIGHT], {"root": BEGUN}, ["root"]),
        ([LEFT, RIGHT], {"root": NEW}, ["root"]),
        # It came and went unseen; its child tells of it.
        ([LEAF], {"root": DONE}, ["left"]),
        # The first reading of a stream: what was before is nobody's loss, then or later.
        ([LEFT, RIGHT], {}, []),
        ([LEFT, RIGHT], {"left": BEGUN, "right": NEW}, []),
    ],
)
def test_a_shard_that_went_before_it_was_read_to_its_end_is_told(
    shards: list[Shard], positions: dict[str, Position], expected: list[str]
) -> None:
    assert trimmed_shards(shards, positions) == expected


def test_a_loss_is_told_once() -> None:
    positions = {"root": BEGUN}
    for lost in trimmed_shards([LEFT, RIGHT], positions):
        positions[lost] = DONE
    assert trimmed_shards([LEFT, RIGHT], positions) == []
