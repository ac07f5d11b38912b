"""Print what the changelog says of a release: ``python tools/release_notes.py vX.Y.Z``, the release's tag.

It fails, and so does the release, if the tag is not this tree's version, or if the newest entry of the changelog is not
that version with a date.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def notes(tag: str, module: str, changelog: str) -> str:
    """The changelog's entry of a release, without its heading.

    Args:
        tag: of the release, as "v0.1.0".
        module: text of arrcomp/__init__.py, which has the version.
        changelog: text of CHANGELOG.md.

    Raises:
        ValueError: the tag is another version, or the changelog's newest entry with text is another one.
    """
    version = re.findall(r'^__version__ = "(.+?)"', module, re.MULTILINE)
    if [tag] != [f"v{found}" for found in version]:
        raise ValueError(f"tag: expected v{', '.join(version)} as in arrcomp/__init__.py, got {tag}")
    entries = re.split(r"^## \[(.+?)\](.*)\n", changelog, flags=re.MULTILINE)[1:]
    for name, date, text in zip(entries[::3], entries[1::3], entries[2::3], strict=True):
        if text.strip():
            if name != version[0] or not re.fullmatch(r" - \d{4}-\d\d-\d\d", date):
                raise ValueError(f"CHANGELOG.md: expected '## [{version[0]}] - YYYY-MM-DD', got '## [{name}]{date}'")
            return text.strip() + "\n"
    raise ValueError("CHANGELOG.md: expected an entry with text, got none")


def main() -> None:
    """Print the notes of the tag that is named."""
    parser = argparse.ArgumentParser(description="Print what the changelog says of a release.")
    parser.add_argument("tag", help="the release's tag, vX.Y.Z")
    tag = parser.parse_args().tag
    module, changelog = TOP / "arrcomp" / "__init__.py", TOP / "CHANGELOG.md"
    try:
        print(notes(tag, module.read_text("utf-8"), changelog.read_text("utf-8")), end="")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
