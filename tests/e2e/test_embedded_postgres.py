"""The embedded PostgreSQL through crashes, kills and unlucky surroundings."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from tests.support.waiting import wait_until

from crossdock.engines.sql.embedded import EmbeddedPostgres, attached
from crossdock.engines.sql.postmaster import is_postmaster_of, read_pid_file
from crossdock.engines.sql.server_files import find_programs
from crossdock.engines.sql.target import PostgresTarget, connect
from crossdock.kit.errors import Conflict, Unavailable

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="what it tests is done as root only")


@pytest.fixture
def empty_dir() -> Iterator[Path]:
    """A data directory that was never used."""
    directory = Path(tempfile.mkdtemp(prefix="crossdock-test-"))
    yield directory / "data"
    stop_whatever_runs_in(directory / "data")
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def used_dir() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="crossdock-test-"))
    with attached(directory / "data"):
        pass
    yield directory / "data"
    shutil.rmtree(directory)


@pytest.fixture
def data_dir(empty_dir: Path, used_dir: Path) -> Path:
    """A data directory that was used before: a copy, as creating one takes a second or more."""
    subprocess.run(["cp", "-a", used_dir, empty_dir], check=True)
    return empty_dir


def stop_whatever_runs_in(data_dir: Path) -> None:
    pid_file = read_pid_file(data_dir / "postgres")
    if pid_file is not None and is_postmaster_of(pid_file.pid, data_dir / "postgres"):
        kill_and_wait(pid_file.pid, data_dir)


def kill_and_wait(pid: int, data_dir: Path) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_postmaster_of(pid, data_dir / "postgres"))


def postmaster_pid(data_dir: Path) -> int:
    pid_file = read_pid_file(data_dir / "postgres")
    assert pid_file is not None
    return pid_file.pid


async def _run(target: PostgresTarget, query: str) -> object:
    connection = await connect(target)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def ask(target: PostgresTarget, query: str) -> object:
    return asyncio.run(_run(target, query))


OWN = """
import sys, time
from pathlib import Path
from crossdock.engines.sql.embedded import EmbeddedPostgres
print(EmbeddedPostgres(Path(sys.argv[1])).start().dsn, flush=True)
time.sleep(600)
"""


def start_owner(data_dir: Path) -> tuple[subprocess.Popen[str], PostgresTarget]:
    """Another process that owns the data directory, until it is killed."""
    owner = subprocess.Popen([sys.executable, "-c", OWN, str(data_dir)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    return owner, PostgresTarget(owner.stdout.readline().strip())


def kill_owner(owner: subprocess.Popen[str]) -> None:
    owner.kill()
    owner.communicate()


def test_it_starts_on_an_empty_directory_and_keeps_rows_across_a_stop(empty_dir: Path) -> None:
    server = EmbeddedPostgres(empty_dir)
    target = server.start()
    ask(target, "CREATE TABLE kept AS SELECT 7 AS number")
    server.stop()
    assert ask(server.start(), "SELECT number FROM kept") == 7
    server.stop()
    assert read_pid_file(empty_dir / "postgres") is None


def test_it_is_set_up_to_lose_nothing_and_to_sort_by_code_point(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    target = server.start()
    try:
        for name, value in {
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "data_checksums": "on",
            "server_encoding": "UTF8",
            "listen_addresses": "",
            "jit": "off",
            "deadlock_timeout": "200ms",
            "max_connections": "100",
        }.items():
            assert ask(target, f"SHOW {name}") == value, name
        assert ask(target, "SELECT 'Z' < 'a' AND 'z' < 'ä' AND upper('ä') = 'Ä'") is True
    finally:
        server.stop()


def test_nobody_but_us_reaches_its_socket_or_its_files(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    target = server.start()
    try:
        socket_dir = data_dir / "run" / "postgres"
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (socket_dir, data_dir / "postgres")]
        assert modes == [0o700, 0o700]
        assert stat.S_IMODE((socket_dir / ".s.PGSQL.5432").stat().st_mode) == 0o700
        assert "trust" not in (data_dir / "postgres" / "pg_hba.conf").read_text()
        assert ask(target, "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method <> 'peer'") == 0
    finally:
        server.stop()


@needs_root
def test_another_account_is_refused_by_peer_authentication(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    server.start()
    nobody = pwd.getpwnam("nobody")
    socket_dir = data_dir / "run" / "postgres"
    try:
        # Even if somebody opened the way to the socket, the server asks who is calling.
        for path in (socket_dir, data_dir / "run", data_dir, data_dir.parent, socket_dir / ".s.PGSQL.5432"):
            path.chmod(0o777)
        refused = subprocess.run(
            [find_programs().psql, "-h", socket_dir, "-U", "crossdock", "-c", "SELECT 1"],
            user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], cwd="/",
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        server.stop()
    assert refused.returncode != 0
    assert "Peer authentication failed" in refused.stderr


@needs_root
def test_as_root_it_runs_as_the_system_account_below_directories_closed_to_it(empty_dir: Path) -> None:
    empty_dir.mkdir(mode=0o700)
    empty_dir.parent.chmod(0o700)
    server = EmbeddedPostgres(empty_dir)
    server.start()
    try:
        owner = Path(f"/proc/{postmaster_pid(empty_dir)}").stat().st_uid
        assert owner == pwd.getpwnam("crossdock").pw_uid
        # The right to pass through, and no more.
        assert stat.S_IMODE(empty_dir.parent.stat().st_mode) == 0o701
        assert stat.S_IMODE(empty_dir.stat().st_mode) == 0o701
    finally:
        server.stop()


@needs_root
def test_a_data_directory_made_under_another_account_is_taken_over(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    ask(server.start(), "CREATE TABLE kept AS SELECT 7 AS number")
    server.stop()
    for directory, directories, files in os.walk(data_dir / "postgres"):
        for name in (".", *directories, *files):
            os.chown(Path(directory, name), 12345, 12345)
    assert ask(server.start(), "SELECT number FROM kept") == 7
    server.stop()


def test_two_owners_never_share_a_data_directory_and_the_second_is_told_who_has_it(data_dir: Path) -> None:
    owner, target = start_owner(data_dir)
    try:
        with pytest.raises(Conflict, match=f"process {owner.pid}"):
            EmbeddedPostgres(data_dir).start()
        assert ask(target, "SELECT 1") == 1
    finally:
        kill_owner(owner)


def test_a_server_left_behind_by_a_killed_owner_is_adopted_without_a_restart(data_dir: Path) -> None:
    owner, target = start_owner(data_dir)
    ask(target, "CREATE TABLE kept AS SELECT 7 AS number")
    left_behind = postmaster_pid(data_dir)
    kill_owner(owner)
    server = EmbeddedPostgres(data_dir)
    assert ask(server.start(), "SELECT number FROM kept") == 7
    assert postmaster_pid(data_dir) == left_behind
    server.stop()
    assert not is_postmaster_of(left_behind, data_dir / "postgres")


def test_a_server_left_behind_with_other_settings_is_restarted(data_dir: Path) -> None:
    owner, _ = start_owner(data_dir)
    left_behind = postmaster_pid(data_dir)
    kill_owner(owner)
    server = EmbeddedPostgres(data_dir, settings={"max_connections": "17"})
    assert ask(server.start(), "SHOW max_connections") == "17"
    assert postmaster_pid(data_dir) != left_behind
    server.stop()


def test_a_server_left_behind_that_hangs_is_stopped_and_started_anew(data_dir: Path) -> None:
    owner, target = start_owner(data_dir)
    ask(target, "CREATE TABLE kept AS SELECT 7 AS number")
    left_behind = postmaster_pid(data_dir)
    kill_owner(owner)
    # It accepts no connection any more; it still obeys a request to stop.
    (data_dir / "run" / "postgres" / ".s.PGSQL.5432").unlink()
    server = EmbeddedPostgres(data_dir)
    assert ask(server.start(), "SELECT number FROM kept") == 7
    assert postmaster_pid(data_dir) != left_behind
    server.stop()


def test_committed_rows_survive_kill_9_of_owner_and_server_at_once(data_dir: Path) -> None:
    owner, target = start_owner(data_dir)
    ask(target, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
    kill_owner(owner)
    kill_and_wait(postmaster_pid(data_dir), data_dir)
    server = EmbeddedPostgres(data_dir)
    assert ask(server.start(), "SELECT count(*) FROM kept") == 1000
    server.stop()


def test_a_killed_server_is_started_again_by_its_owner(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    target = server.start()
    assert not server.ensure_running()
    ask(target, "CREATE TABLE kept AS SELECT 7 AS number")
    kill_and_wait(postmaster_pid(data_dir), data_dir)
    assert server.ensure_running()
    assert ask(target, "SELECT number FROM kept") == 7
    server.stop()


def test_a_statement_that_outlives_a_killed_server_does_not_hold_up_the_next(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    target = server.start()

    async def kill_amid_a_long_statement() -> None:
        connection = await connect(target)
        # It computes all the time, so it does not notice that its server is gone.
        query = "SELECT count(*) FROM generate_series(1, 1000000000) AS n WHERE md5(n::text) = ''"
        statement = asyncio.create_task(connection.fetchval(query))
        await asyncio.sleep(0.3)
        os.kill(postmaster_pid(data_dir), signal.SIGKILL)
        async with asyncio.timeout(10):
            assert await asyncio.to_thread(server.ensure_running)
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await statement

    asyncio.run(kill_amid_a_long_statement())
    assert ask(target, "SELECT 1") == 1
    server.stop()


def test_a_pid_file_that_names_somebody_elses_process_does_not_block_the_start(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    target = server.start()
    ask(target, "CREATE TABLE kept AS SELECT 7 AS number")
    pid_path = data_dir / "postgres" / "postmaster.pid"
    text = pid_path.read_text()
    kill_and_wait(postmaster_pid(data_dir), data_dir)
    # As after a reboot, when the number belongs to whoever started next.
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        pid_path.write_text(text.replace(text.splitlines()[0], str(stranger.pid), 1))
        assert server.ensure_running()
        assert ask(target, "SELECT number FROM kept") == 7
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        server.stop()


def test_a_half_made_cluster_does_not_block_the_next_start(empty_dir: Path) -> None:
    server = EmbeddedPostgres(empty_dir)
    half_made = empty_dir / "postgres.unfinished.abc"
    half_made.mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("18\n")
    assert ask(server.start(), "SELECT 1") == 1
    server.stop()
    assert not half_made.exists()


def test_a_first_start_that_is_killed_at_any_moment_does_not_block_the_next(empty_dir: Path) -> None:
    for delay_seconds in (0.15, 0.3, 0.45, 0.6):
        owner = subprocess.Popen([sys.executable, "-c", OWN, str(empty_dir)], stdout=subprocess.DEVNULL)
        try:
            owner.wait(delay_seconds)
        except subprocess.TimeoutExpired:
            owner.kill()
            owner.wait()
    server = EmbeddedPostgres(empty_dir)
    assert ask(server.start(), "SELECT 1") == 1
    server.stop()


def test_a_path_too_long_for_a_socket_moves_the_socket_to_a_private_directory(empty_dir: Path) -> None:
    deep = empty_dir / ("d" * 60) / ("e" * 60)
    server = EmbeddedPostgres(deep)
    target = server.start()
    try:
        assert ask(target, "SELECT 1") == 1
        pid_file = read_pid_file(deep / "postgres")
        assert pid_file is not None
        assert deep not in pid_file.socket_dir.parents
        assert stat.S_IMODE(pid_file.socket_dir.stat().st_mode) == 0o700
    finally:
        server.stop()


@pytest.mark.parametrize("name", ["""it's "a" \\ b&c=d%20#?ü""", "a, b"])
def test_a_path_with_awkward_characters_works(name: str, empty_dir: Path) -> None:
    awkward = empty_dir / name
    with attached(awkward) as target:
        assert ask(target, "SELECT 1") == 1
        with attached(awkward) as again:
            assert ask(again, "SELECT 1") == 1


def test_a_data_directory_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for start in (
        EmbeddedPostgres(tmp_path / "file" / "data").start,
        attached(tmp_path / "file" / "data").__enter__,
    ):
        with pytest.raises(Unavailable, match="--data-dir") as raised:
            start()
        assert str(tmp_path / "file" / "data") in raised.value.message


def test_a_server_that_cannot_start_says_why(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir, settings={"shared_buffers": "much"})
    with pytest.raises(Unavailable, match="shared_buffers"):
        server.start()
    # And the directory is free again.
    mended = EmbeddedPostgres(data_dir)
    mended.start()
    mended.stop()


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(data_dir: Path) -> None:
    owner, _ = start_owner(data_dir)
    try:
        assert os.getsid(postmaster_pid(data_dir)) != os.getsid(owner.pid)
    finally:
        kill_owner(owner)


def test_attaching_starts_a_server_for_the_block_and_stops_it(data_dir: Path) -> None:
    with attached(data_dir) as target:
        assert ask(target, "SELECT 1") == 1
    assert read_pid_file(data_dir / "postgres") is None


def test_attaching_uses_the_running_server_and_leaves_it_running(data_dir: Path) -> None:
    owner, target = start_owner(data_dir)
    try:
        running = postmaster_pid(data_dir)
        with attached(data_dir) as attached_target:
            assert attached_target == target
        assert postmaster_pid(data_dir) == running
        assert ask(target, "SELECT 1") == 1
    finally:
        kill_owner(owner)


ATTACH = """
import asyncio, sys
from pathlib import Path
from crossdock.engines.sql.embedded import attached
from crossdock.engines.sql.server_files import find_programs
from crossdock.engines.sql.target import connect

async def work(target):
    connection = await connect(target)
    await connection.execute("SELECT pg_sleep($1::float8)", float(sys.argv[2]))
    await connection.close()

with attached(Path(sys.argv[1])) as target:
    asyncio.run(work(target))
"""


def test_a_block_that_started_the_server_waits_for_the_others_that_use_it(data_dir: Path) -> None:
    with attached(data_dir):
        pass
    blocks = [
        subprocess.Popen([sys.executable, "-c", ATTACH, str(data_dir), seconds], stderr=subprocess.PIPE)
        for seconds in ("0.5", "1", "1.5", "0.2")
    ]
    for block in blocks:
        _, errors = block.communicate(timeout=30)
        assert block.returncode == 0, errors.decode()
    assert read_pid_file(data_dir / "postgres") is None


def test_a_transaction_in_flight_does_not_hold_up_a_stop(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    target = server.start()

    async def stop_amid_a_transaction() -> None:
        connection = await connect(target)
        await connection.execute("BEGIN; CREATE TABLE lost (id int)")
        async with asyncio.timeout(10):
            await asyncio.to_thread(server.stop)
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await connection.execute("COMMIT")
        connection.terminate()

    asyncio.run(stop_amid_a_transaction())
