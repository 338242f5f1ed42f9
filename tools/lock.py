"""Pins every dependency, hashed, into requirements/*.txt. `make lock` runs it.

uv does the resolving but does not read pip's configuration, so that is handed on: the locks come from
wherever `pip install` would look. The locks themselves name no index.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Later ones are held to what the earlier ones pinned: one version of a package, whichever lock installs it.
LOCKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("runtime", ("pyproject.toml",)),
    ("dev", ("pyproject.toml", "--group", "dev", "--constraints", "requirements/runtime.txt")),
    ("build", ("requirements/build.in", "--constraints", "requirements/dev.txt")),
    ("lock", ("requirements/lock.in",)),
)

COMMON = (
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-header",
    "--quiet",
)

PIP_TO_UV = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "cert": "SSL_CERT_FILE"}


def uv_environment(pip_config: str) -> dict[str, str]:
    """uv's variables for the output of `pip config list`; a setting named twice: the last (nearest) wins."""
    variables: dict[str, str] = {}
    for line in pip_config.splitlines():
        name, separator, value = line.partition("=")
        variable = PIP_TO_UV.get(name.rpartition(".")[2])
        if separator and variable:
            variables[variable] = value.strip("'\"").replace("\\n", " ").strip()
    return variables


def main() -> None:
    parser = argparse.ArgumentParser(description="Pin the dependencies into requirements/*.txt.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions allowed")
    upgrade = ["--upgrade"] if parser.parse_args().upgrade else []
    pip_config = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    environment = uv_environment(pip_config) | dict(os.environ)
    for name, sources in LOCKS:
        command = [sys.executable, "-m", "uv", "pip", "compile", *sources, *COMMON, *upgrade]
        subprocess.run(  # noqa: S603 (our own words)
            [*command, f"--output-file=requirements/{name}.txt"], cwd=ROOT, env=environment, check=True
        )
        print(f"requirements/{name}.txt")


if __name__ == "__main__":
    main()
