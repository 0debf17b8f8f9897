"""The data folder, its lock, its key and its broker, as processes really use them."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from humanjudge.server.launcher import embedded
from tests.helpers.waiting import eventually, gone

pytestmark = [pytest.mark.process, pytest.mark.fault]

ROOT = Path(__file__).resolve().parents[3]
HOLD = "import sys; from humanjudge.server.launcher import embedded; from pathlib import Path"


def in_another_process(code: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", f"{HOLD}; {code}", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def hold(data: Path) -> subprocess.Popen:
    code = "embedded.lock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    return in_another_process(code, str(data))


def test_the_secret_key_is_made_once_and_private(tmp_path):
    key = embedded.secret_key(tmp_path)
    assert len(key) >= 50
    assert embedded.secret_key(tmp_path) == key
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600


def test_first_starts_at_the_same_time_agree_on_the_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: embedded.secret_key(tmp_path), range(64)))
    assert len(keys) == 1


def test_the_data_folder_is_made_with_its_parents(tmp_path):
    data = embedded.data_folder(tmp_path / "a" / "b c")
    assert data.is_dir()
    assert data.is_absolute()


def test_a_data_folder_that_cannot_be_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(embedded.RefusalError, match="is not a folder"):
        embedded.data_folder(tmp_path / "file")
    with pytest.raises(embedded.RefusalError, match="cannot make the data folder"):
        embedded.data_folder(tmp_path / "file" / "below")


@pytest.mark.parametrize("ours", [True, False])
def test_a_data_folder_that_others_can_read_is_closed_to_them(tmp_path, ours):
    data = tmp_path / "data"
    data.mkdir()
    if ours:
        (data / "secret_key").write_text("k")
    data.chmod(0o755)
    embedded.data_folder(data)
    assert data.stat().st_mode & 0o777 == 0o700


def test_a_folder_with_other_files_that_others_can_read_is_refused(tmp_path):
    data = tmp_path / "shared"
    data.mkdir()
    (data / "letter.txt").touch()
    data.chmod(0o750)
    with pytest.raises(embedded.RefusalError, match=r"other users can read .*\(mode 750\)"):
        embedded.data_folder(data)
    assert data.stat().st_mode & 0o777 == 0o750


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    embedded.refuse_full_disk(tmp_path)
    monkeypatch.setattr(embedded, "LEAST_FREE", shutil.disk_usage(tmp_path).total + 1)
    with pytest.raises(embedded.RefusalError, match=r"the disk of .* is full: \d+ MB are free"):
        embedded.refuse_full_disk(tmp_path)


def test_a_lock_is_refused_while_its_holder_lives(tmp_path):
    with hold(tmp_path) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(embedded.RefusalError, match=rf"process {holder.pid}\)"):
            embedded.lock(tmp_path)
        holder.kill()
    os.close(embedded.lock(tmp_path))


def test_a_lock_left_to_the_guard_of_a_dead_holder_is_waited_for(tmp_path):
    descriptor = embedded.lock(tmp_path)
    os.pwrite(descriptor, b"999999999\n", 0)
    with hold(tmp_path) as second:
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(1)
        os.close(descriptor)
        assert second.stdout.readline() == "held\n"
        second.kill()


def test_the_socket_is_short_private_and_the_data_folders_own(tmp_path):
    deep = tmp_path.joinpath(*["a rather long name"] * 8)
    deep.mkdir(parents=True)
    path = embedded.broker_socket(deep)
    assert path != embedded.broker_socket(tmp_path)
    assert path == embedded.broker_socket(deep / ".." / deep.name)
    assert len(str(path)) < 100
    assert " " not in str(path)
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_broker_serves_its_socket_only_and_keeps_what_it_acknowledged(tmp_path):
    data = tmp_path / "data with a space"
    data.mkdir()
    for expected in (None, b"kept"):
        broker = subprocess.Popen(embedded.valkey_command(data), stdout=subprocess.DEVNULL)
        with redis.Redis(unix_socket_path=str(embedded.broker_socket(data))) as client:
            try:
                eventually(lambda client=client: answers(client))
                assert client.config_get("port")["port"] == "0"
                assert client.get("key") == expected
                client.set("key", "kept")
            finally:
                broker.terminate()
                broker.wait()
    assert gone(broker.pid)


def answers(client: redis.Redis) -> bool:
    try:
        return client.ping()
    except redis.ConnectionError:
        return False
