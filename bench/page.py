"""A page of figures that a program measures by sections: what bench/results.py and bench/trust.py share."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conditions import machine_found, version

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """What is measured, and what is written of it.

    Attributes:
        name: of the file of figures, without its ending.
        about: the program's help.
        sections: what measures each part, by its name in the file; with True, quickly. What it gives goes into JSON.
        versions: packages whose versions the file has.
        texts: the text of each file beside the file of figures, given that and its folder.
        draw: makes pictures, of the same.
        conditions: measured beside each section.
    """

    name: str
    about: str
    sections: Mapping[str, Callable[[bool], Any]]
    versions: Sequence[str]
    texts: Callable[[Document, Path], Mapping[Path, str]]
    draw: Callable[[Document, Path], None] = lambda document, folder: None
    conditions: Mapping[str, Callable[[], Any]] = field(default_factory=dict)

    def main(self) -> Document:
        """Parse the command line, measure, write the files; the figures.

        Raises:
            SystemExit: with 1 where --check finds a page that is not as the figures give it.
        """
        options = self._parsed()
        path = options.output / f"{self.name}.json"
        if options.check:
            self._check(json.loads(path.read_text()), options.output)
        elif not options.redraw:
            kept = json.loads(path.read_text()) if options.only else {}
            for name in options.names:
                kept |= self._conditions() | {name: self._measured(name, options.quick)}
                path.write_text(json.dumps(kept, indent=1) + "\n")
        document: Document = json.loads(path.read_text())
        if not options.check:
            self.draw(document, options.output)
            for page, text in self.texts(document, options.output).items():
                page.write_text(text)
        return document

    def _conditions(self) -> dict[str, Any]:
        return {"machine": machine_found(), "versions": {name: version(name) for name in self.versions}}

    def _measured(self, name: str, quick: bool) -> dict[str, Any]:
        start, load = time.monotonic(), os.getloadavg()[0]
        made = {"date": datetime.now(UTC).date().isoformat(), "machine": machine_found(), "quick": quick}
        made |= {name: measure() for name, measure in self.conditions.items()}
        made["found"] = self.sections[name](quick)
        return made | {"minutes": (time.monotonic() - start) / 60, "load": [load, os.getloadavg()[0]]}

    def _check(self, document: Document, folder: Path) -> None:
        texts = self.texts(document, folder)
        stale = [path.name for path, text in texts.items() if path.read_text() != text]
        if stale:
            raise SystemExit(f"{' and '.join(stale)}: not what {self.name}.json gives; run with --redraw")
        print(f"{' and '.join(path.name for path in texts)}: as {self.name}.json gives")

    def _parsed(self) -> argparse.Namespace:
        parser = argparse.ArgumentParser(description=self.about, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--quick", action="store_true", help="a little of everything: figures mean little")
        parser.add_argument("--only", metavar="NAME,...", help=f"measure these alone: {', '.join(self.sections)}")
        parser.add_argument("--redraw", action="store_true", help=f"measure nothing: read {self.name}.json again")
        parser.add_argument("--check", action="store_true", help=f"compare the pages with {self.name}.json")
        parser.add_argument(
            "--output", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="for the files"
        )
        options = parser.parse_args()
        options.names = list(self.sections) if options.only is None else options.only.split(",")
        for name in options.names:
            if name not in self.sections:
                parser.error(f"--only {name}: {', '.join(self.sections)} are allowed")
        return options
