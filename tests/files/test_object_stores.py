"""Files in an object store, and on a web server, both on this machine."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import checks
import child_programs
from arrcomp import append_file, load_file, open_file, save_file

pytest.importorskip("safetensors")
s3fs = pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")
web = pytest.importorskip("aiohttp.web")
pytestmark = pytest.mark.full  # the extra test-full has them

ARRAYS: dict[str, NDArray[Any]] = {
    "large": np.random.default_rng(1).integers(0, 1 << 60, (3000, 1000)),
    "small": np.arange(10),
}
URL = "s3://bucket/folder/x.safetensors"
PART = 5 << 20  # bytes, the least that S3 takes


class Store:
    """An object store, and the requests that it gets."""

    def __init__(self, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.options = {"endpoint_url": endpoint, "key": "key", "secret": "secret"}
        self.system = s3fs.S3FileSystem(**self.options)
        self.system.mkdir("bucket")
        self.requests: list[tuple[str, str | None]] = []
        self.fails_at = 0  # the number of the part whose upload fails
        inherited = s3fs.S3FileSystem._call_s3
        store = self

        async def call(system: Any, method: str, *arguments: Any, **options: Any) -> Any:
            store.requests.append((method, options.get("Range")))
            if method == "upload_part" and options["PartNumber"] == store.fails_at:
                raise OSError("the network is down")
            return await inherited(system, method, *arguments, **options)

        monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", call)
        monkeypatch.setattr("s3fs.core.calculate_chunksize", lambda *_, **options: PART)

    def save(self, arrays: Any, url: str = URL, **options: Any) -> None:
        save_file(arrays, url, storage_options=self.options, **options)

    def load(self, url: str = URL, **options: Any) -> Any:
        return load_file(url, storage_options=self.options, **options)

    def unfinished(self) -> list[Any]:
        """Uploads of parts that were begun and neither completed nor aborted."""
        return list(self.system.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads", []))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = Store(endpoint, monkeypatch)
    yield store
    store.system.rm("bucket", recursive=True)


def check_arrays(found: Any, expected: dict[str, NDArray[Any]]) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        checks.check_same_bits(found[name], array)


def test_a_file_comes_back_in_ranges(store: Store) -> None:
    store.save(ARRAYS)
    assert sum(method == "upload_part" for method, _ in store.requests) > 2
    check_arrays(store.load(), ARRAYS)
    store.requests.clear()
    with open_file(URL, storage_options=store.options) as file:
        assert [method for method, _ in store.requests] == ["head_object", "get_object"]
        np.testing.assert_array_equal(file.slice("large")[2000:2002], ARRAYS["large"][2000:2002])
        assert (file.path, file.base) == (URL, None)
    ranges = [text for method, text in store.requests if method == "get_object"]
    starts, ends = zip(*(map(int, str(text).removeprefix("bytes=").split("-")) for text in ranges), strict=True)
    assert len(ranges) <= 4
    assert sum(ends) - sum(starts) < 1 << 20


def test_what_another_program_writes_is_seen(store: Store) -> None:
    store.save({"a": np.arange(3)})
    store.system.ls("bucket/folder")  # fsspec keeps what it lists
    other = s3fs.S3FileSystem(**store.options, skip_instance_cache=True)
    content = other.cat_file(URL)
    append_file({"b": np.arange(4)}, URL, storage_options=store.options)
    assert list(store.load()) == ["a", "b"]
    store.system.ls("bucket/folder")
    other.pipe_file(URL, content)
    assert list(store.load()) == ["a"]


def test_a_chain_of_bases_is_found_with_the_options_of_the_first(store: Store) -> None:
    steps = [{"x": ARRAYS["large"][:100] + step} for step in range(3)]
    store.save(steps[0], "s3://bucket/0.safetensors")
    for step in (1, 2):
        store.save(steps[step], f"s3://bucket/{step}.safetensors", base=f"s3://bucket/{step - 1}.safetensors")
    check_arrays(store.load("s3://bucket/2.safetensors"), steps[2])
    with open_file("s3://bucket/2.safetensors", storage_options=store.options) as file:
        assert file.base == "s3://bucket/1.safetensors"
    store.system.rm("bucket/0.safetensors")
    with pytest.raises(FileNotFoundError, match=r"expected the base of s3://bucket/1\.safetensors"):
        store.load("s3://bucket/2.safetensors")


def test_an_upload_that_fails_leaves_the_old_object_and_no_parts(store: Store) -> None:
    store.save({"a": np.arange(3)})
    store.fails_at = 3
    with pytest.raises(OSError, match="the network is down"):
        store.save(ARRAYS)
    check_arrays(store.load(), {"a": np.arange(3)})
    assert store.unfinished() == []
    assert store.system.find("bucket") == ["bucket/folder/x.safetensors"]


KILLED = """
import os, signal, sys
import numpy as np
import arrcomp
import s3fs

inherited = s3fs.S3FileSystem._call_s3

async def call(system, method, *arguments, **options):
    if method == "complete_multipart_upload":
        os.kill(os.getpid(), signal.SIGKILL)
    return await inherited(system, method, *arguments, **options)

s3fs.S3FileSystem._call_s3 = call
s3fs.core.calculate_chunksize = lambda *_, **options: 5 << 20
options = {"endpoint_url": sys.argv[1], "key": "key", "secret": "secret"}
x = np.random.default_rng(1).integers(0, 1 << 60, 2_000_000)
arrcomp.save_file({"x": x}, sys.argv[2], storage_options=options)
"""


def test_an_upload_that_is_killed_leaves_the_old_object(store: Store, endpoint: str) -> None:
    store.save({"a": np.arange(3)})
    child = child_programs.start(KILLED, endpoint, URL)
    child.communicate(timeout=child_programs.SECONDS)
    assert child.returncode == -signal.SIGKILL
    check_arrays(store.load(), {"a": np.arange(3)})


def test_a_bucket_that_is_not_there_is_told(store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        store.save({"a": np.arange(3)}, "s3://none/x.safetensors")
    with pytest.raises(FileNotFoundError, match=r"s3://none/x\.safetensors"):
        store.load("s3://none/x.safetensors")


class Server:
    """A web server of the files in a folder, and the ranges that it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.ranges: list[str | None] = []
        self.sends_ranges = True
        self._folder, self._started = folder, threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Server:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        app.router.add_get("/{name}", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._started.set()
        await self._ended.wait()
        await runner.cleanup()

    async def _answer(self, request: Any) -> Any:
        path = self._folder / request.match_info["name"]
        if not path.exists():
            raise web.HTTPNotFound
        if request.method == "GET":
            self.ranges.append(request.headers.get("Range"))
        return web.FileResponse(path) if self.sends_ranges else web.Response(body=path.read_bytes())


def test_a_web_server_is_read_in_ranges_and_not_written(tmp_path: Path) -> None:
    save_file(ARRAYS, tmp_path / "x.safetensors")
    save_file({"small": np.arange(9)}, tmp_path / "the base%2e.safetensors")
    save_file({"small": np.arange(9) * 2}, tmp_path / "y.safetensors", base=tmp_path / "the base%2e.safetensors")
    with Server(tmp_path) as server:
        url = f"{server.address}/x.safetensors"
        with open_file(f"{url}?signature=secret") as file:
            assert file.path == url
            np.testing.assert_array_equal(file.slice("large")[5:9], ARRAYS["large"][5:9])
        assert len(server.ranges) <= 4
        assert all(text is not None and text.startswith("bytes=") for text in server.ranges)
        check_arrays(load_file(url), ARRAYS)
        check_arrays(load_file(f"{server.address}/y.safetensors"), {"small": np.arange(9) * 2})
        with pytest.raises(ValueError, match="expected a URL that can be written to, got one of HTTP"):
            save_file(ARRAYS, url)
        with pytest.raises(FileNotFoundError, match=r"none\.arrcomp"):
            load_file(f"{server.address}/none.arrcomp")
        server.sends_ranges = False
        with pytest.raises(OSError, match=r"it sends no ranges"):
            load_file(url)
