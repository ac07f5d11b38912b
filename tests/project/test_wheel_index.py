"""`tools/make_wheel_index.py`: pip finds the variant that a user names."""

import functools
import http.server
import importlib.metadata
import runpy
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "make_wheel_index.py"))
write: Any = TOOL["write"]


def make_wheel(folder: Path, version: str, *, metadata: str | None = None, python: str = ">=3.11") -> Path:
    """A wheel with nothing in it."""
    folder.mkdir(exist_ok=True)
    wheel = folder / f"arrcomp-{version}-py3-none-any.whl"
    inside = f"arrcomp-{version}.dist-info"
    headers = f"Metadata-Version: 2.1\nName: arrcomp\nVersion: {metadata or version}\nRequires-Python: {python}\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{inside}/METADATA", headers)
        archive.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{inside}/RECORD", "")
    return wheel


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Tests print nothing."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a server that serves the test's folder."""
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def downloaded(folder: Path, *options: str) -> list[str]:
    """What pip takes for `pip install arrcomp` with these options."""
    command = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "download", "--no-deps"]
    command += ["--no-cache-dir", "--quiet", "--dest", str(folder), *options, "arrcomp"]
    environment = {"NO_PROXY": "*", "PIP_CONFIG_FILE": "/dev/null"}
    subprocess.run(command, check=True, timeout=120, env=environment)
    return sorted(path.name for path in folder.iterdir())


# Not find_spec: asked for pip, setuptools takes its distutils away, which PyTorch's compiler needs.
@pytest.mark.skipif(not any(importlib.metadata.distributions(name="pip")), reason="this environment has no pip")
@pytest.mark.parametrize("copied", [True, False])
def test_pip_takes_the_variant_of_the_index(tmp_path: Path, address: str, copied: bool) -> None:
    registry = tmp_path / "registry" / "arrcomp"
    registry.parent.mkdir()
    plain = make_wheel(registry, "0.2.0")
    (registry / "index.html").write_text(f'<a href="{plain.name}">{plain.name}</a>')
    for version in ("0.1.0+cpu", "0.2.0+cpu", "0.2.0+cu12"):
        make_wheel(tmp_path / "wheels", version)
    make_wheel(tmp_path / "wheels", "0.3.0+cu12", python=">=4")  # for a later Python
    make_wheel(tmp_path / "wheels", "0.2.0")
    files = None if copied else f"{address}/release"
    if not copied:
        (tmp_path / "release").symlink_to("wheels")
    assert write(tmp_path / "wheels", tmp_path / "site", files) == {"cpu": 2, "cu12": 2}
    assert (tmp_path / "site" / "files").exists() == copied

    main = ["--index-url", f"{address}/registry"]
    for label in ("cpu", "cu12"):
        extra = ["--extra-index-url", f"{address}/site/{label}"]
        assert downloaded(tmp_path / label, *main, *extra) == [f"arrcomp-0.2.0+{label}-py3-none-any.whl"]


def test_links_can_name_the_release_of_each_wheel(tmp_path: Path) -> None:
    for version in ("0.1.0+cpu", "0.2.0+cpu"):
        make_wheel(tmp_path / "wheels", version)
    write(tmp_path / "wheels", tmp_path / "site", "https://example.org/v{version}")
    page = (tmp_path / "site" / "cpu" / "arrcomp" / "index.html").read_text("utf-8")
    for version in ("0.1.0", "0.2.0"):
        assert f'href="https://example.org/v{version}/arrcomp-{version}%2Bcpu-py3-none-any.whl#sha256=' in page


def test_a_wheel_that_contradicts_its_name_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path, "0.1.0+cpu", metadata="0.1.0")
    with pytest.raises(ValueError, match=r"expected version 0.1.0\+cpu in its metadata, got 0.1.0"):
        write(tmp_path, tmp_path / "site")


def test_a_folder_without_labelled_wheels_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path, "0.1.0")
    with pytest.raises(ValueError, match="expected wheels with a label"):
        write(tmp_path, tmp_path / "site")
