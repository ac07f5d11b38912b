"""Write a package index for each variant of the wheels: ``python tools/make_wheel_index.py FOLDER SITE [--files URL]``.

FOLDER has the wheels of one or several releases. The label of a wheel names its variant: SITE/cu12 lists
``arrcomp-0.1.0+cu12-...whl``, and ``pip install arrcomp --extra-index-url <address of SITE>/cu12`` takes it from there
(PEP 503). pip prefers it to the wheel of the same version without a label. Wheels without a label are left out, because
the package registry has them.

The wheels are copied into SITE. With --files they are not: the links lead to URL/NAME, and ``{version}`` in URL becomes
the version of the wheel without its label.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import shutil
import sys
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import quote

PROJECT = "arrcomp"
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="pypi:repository-version" content="1.0"><title>{title}</title></head>
<body>
{links}
</body>
</html>
"""


def write(folder: Path, site: Path, files: str | None = None) -> dict[str, int]:
    """Write an index for each label, and copy the wheels unless `files` says where they are.

    Returns:
        The number of wheels that each label's index lists.

    Raises:
        ValueError: no wheel in the folder has a label, or one has another version in its metadata than in its name.
    """
    links: defaultdict[str, list[str]] = defaultdict(list)
    for wheel in sorted(folder.glob(f"{PROJECT}-*.whl")):
        version, _, label = wheel.name.split("-")[1].partition("+")
        if not label:
            continue
        place = "../../files" if files is None else files.format(version=version)
        links[label].append(_link(wheel, place))
        if files is None:
            (site / "files").mkdir(parents=True, exist_ok=True)
            shutil.copy2(wheel, site / "files")
    if not links:
        raise ValueError(f"{folder}: expected wheels with a label, such as {PROJECT}-0.1.0+cpu-*.whl, got none")
    for label, lines in links.items():
        _write_page(site / label, label, [f'<a href="{PROJECT}/">{PROJECT}</a>'])
        _write_page(site / label / PROJECT, PROJECT, lines)
    return {label: len(lines) for label, lines in links.items()}


def _link(wheel: Path, place: str) -> str:
    """A line of the page: the wheel's address, its hash, and the versions of Python that it is for."""
    fields = _metadata(wheel)
    version = wheel.name.split("-")[1]
    if fields["Version"] != version:
        raise ValueError(f"{wheel.name}: expected version {version} in its metadata, got {fields['Version']}")
    address = f"{place.rstrip('/')}/{quote(wheel.name)}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    requires = html.escape(fields["Requires-Python"])
    return f'<a href="{address}" data-requires-python="{requires}">{wheel.name}</a><br>'


def _metadata(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        folder = "-".join(wheel.name.split("-")[:2])
        return dict(HeaderParser().parsestr(archive.read(f"{folder}.dist-info/METADATA").decode()))


def _write_page(folder: Path, title: str, links: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(_PAGE.format(title=title, links="\n".join(links)), encoding="utf-8")


def main() -> None:
    """Parse the command line, write the indexes and say what they list."""
    parser = argparse.ArgumentParser(description="Write a package index for each variant of the wheels.")
    parser.add_argument("folder", type=Path, help="has the wheels")
    parser.add_argument("site", type=Path, help="folder to write into")
    parser.add_argument("--files", metavar="URL", help="where the wheels are, if they are not to be copied")
    arguments = parser.parse_args()
    try:
        counts = write(arguments.folder, arguments.site, arguments.files)
    except ValueError as error:
        sys.exit(str(error))
    for label, count in sorted(counts.items()):
        print(f"{arguments.site / label}: {count} wheels")


if __name__ == "__main__":
    main()
