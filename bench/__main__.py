"""`python -m bench [NAME …]`: runs the benches and prints ratios. Exit status 1 when a bar does not hold."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from bench import devices, hooks
from bench.harness.options import Options
from bench.harness.report import document, table
from bench.harness.rounds import Comparison

BENCHES: dict[str, Callable[[Options], Awaitable[list[Comparison]]]] = {
    "hooks": hooks.run,
    "devices": devices.run,
}


def parse(arguments: list[str]) -> tuple[list[str], Options, Path | None]:
    parser = argparse.ArgumentParser(prog="bench", description="Measure Crossdock beside its yardsticks.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(BENCHES)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=4, help="how long each measurement lasts (default 4)"
    )
    parser.add_argument(
        "--workers", type=int, default=1, help="lane processes, ours and the yardstick's (default 1)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.names) - set(BENCHES))
    if unknown:
        parser.error(f"no bench named {', '.join(unknown)}; there are: {', '.join(BENCHES)}")
    options = Options(
        rounds=chosen.rounds,
        seconds=chosen.seconds,
        workers=chosen.workers,
        directory=Path(tempfile.gettempdir()),
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    return chosen.names or list(BENCHES), options, chosen.json


async def run(names: list[str], options: Options) -> list[Comparison]:
    comparisons: list[Comparison] = []
    with tempfile.TemporaryDirectory(prefix="crossdock-bench-") as directory:
        for name in names:
            options.say(f"{name}:")
            comparisons += await BENCHES[name](msgspec.structs.replace(options, directory=Path(directory)))
    return comparisons


def main() -> int:
    names, options, json_file = parse(sys.argv[1:])
    comparisons = asyncio.run(run(names, options))
    print(table(comparisons))
    if json_file is not None:
        json_file.write_bytes(
            msgspec.json.format(msgspec.json.encode(document(comparisons)), indent=2) + b"\n"
        )
    return 0 if all(comparison.passed for comparison in comparisons) else 1


if __name__ == "__main__":
    sys.exit(main())
