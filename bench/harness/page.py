"""A page of figures that programs measure by sections: what bench/results.py and bench/trust.py share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import figures
from harness.conditions import Watch, machine_found, machine_name
from harness.section import Section

BENCH = Path(__file__).parent.parent

Document = dict[str, Any]


def _read_json(path: Path) -> Document:
    document: Document = json.loads(path.read_text())
    return document


def _write_json(path: Path, document: Document) -> None:
    """Write a line a section."""
    lines = [f"{json.dumps(name)}: {json.dumps(made)}" for name, made in document.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


@dataclass(frozen=True)
class Page:
    """What is measured, and what is written of it.

    Attributes:
        file: name of the file of figures.
        about: the program's help.
        sections: what measures each part, by its name in the file; with True, quickly.
        versions: packages whose versions stand beside each part.
        texts: the text of each file beside the file of figures, given that and its folder.
        draw: makes pictures of the parts that are named, of the same.
        conditions: measured beside each section.
        read: reads the file of figures.
        write: writes it.
    """

    file: str
    about: str
    sections: Mapping[str, Callable[[bool], Any]]
    versions: Callable[[str], Sequence[str]]
    texts: Callable[[Document, Path], Mapping[Path, str]]
    draw: Callable[[Document, Path, Sequence[str]], None] = lambda document, folder, names: None
    conditions: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    read: Callable[[Path], Document] = _read_json
    write: Callable[[Path, Document], None] = _write_json

    def main(self) -> Document:
        """Parse the command line, measure, write the files; the figures.

        Raises:
            SystemExit: with 1 where --check finds a page that is not as the figures give it.
        """
        options = self._parsed()
        if options.check:
            self.check(options.output)
        elif not options.redraw:
            return self.measure(options.names, quick=options.quick, folder=options.output, anew=not options.only)
        else:
            self.show(options.output, options.names)
        return self.read(options.output / self.file)

    def measure(
        self, names: Sequence[str], *, quick: bool = False, folder: Path = BENCH, anew: bool = False
    ) -> Document:
        """Measure these sections, write files and pictures; all figures.

        Args:
            names: of sections.
            quick: whether a little is enough.
            folder: of the files.
            anew: whether to leave out what else was measured before.
        """
        path = folder / self.file
        kept = {"machines": {}} if anew or not path.exists() else self.read(path)
        for name in names:
            kept[name] = self._measured(name, quick)
            machine = machine_found()
            kept[name]["machine"] = machine_name(machine)
            kept.setdefault("machines", {})[machine_name(machine)] = machine
            self.write(path, kept)
        self.show(folder, names)
        return self.read(path)

    def _measured(self, name: str, quick: bool) -> Document:
        watch = Watch(self.versions(name))
        made = {name: measure() for name, measure in self.conditions.items()} | ({"quick": True} if quick else {})
        made["found"] = self.sections[name](quick)
        return watch.stop() | made

    def show(self, folder: Path, names: Sequence[str]) -> None:
        """Draw the pictures of these sections, and write all files, from the figures in a folder."""
        document = self.read(folder / self.file)
        self.draw(document, folder, [name for name in names if name in document])
        for page, text in self.texts(document, folder).items():
            page.write_text(text)

    def check(self, folder: Path) -> None:
        """Raise SystemExit where a page of a folder is not as its figures give it."""
        texts = self.texts(self.read(folder / self.file), folder)
        stale = [path.name for path, text in texts.items() if path.read_text() != text]
        if stale:
            raise SystemExit(f"{' and '.join(stale)}: not what {self.file} gives; run with --redraw")
        print(f"{' and '.join(path.name for path in texts)}: as {self.file} gives")

    def _parsed(self) -> argparse.Namespace:
        parser = argparse.ArgumentParser(description=self.about, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--quick", action="store_true", help="a little of everything: figures mean little")
        parser.add_argument("--only", metavar="NAME,...", help=f"measure these alone: {', '.join(self.sections)}")
        parser.add_argument("--redraw", action="store_true", help=f"measure nothing: read {self.file} again")
        parser.add_argument("--check", action="store_true", help=f"compare the pages with {self.file}")
        parser.add_argument("--output", type=Path, default=BENCH, metavar="FOLDER", help="for the files")
        options = parser.parse_args()
        options.names = list(self.sections) if options.only is None else options.only.split(",")
        for name in options.names:
            if name not in self.sections:
                parser.error(f"--only: expected {', '.join(self.sections)}, got {name}")
        return options


def page_of_sections(
    stem: str,
    about: str,
    sections: Mapping[str, Section],
    texts: Callable[[Document, Path], Mapping[Path, str]],
    **others: Any,
) -> Page:
    """A page whose figures are a table, STEM.csv.

    Args:
        stem: of the program, and of the file of figures.
        about: the program's help.
        sections: by their names in the file.
        texts: same as in `Page`.
        **others: of `Page`, too.
    """
    return Page(
        file=f"{stem}.csv",
        about=about,
        sections={name: section.measure for name, section in sections.items()},
        versions=lambda name: sections[name].versions,
        texts=texts,
        read=lambda path: figures.read(path, sections),
        write=lambda path, document: figures.write(path, document, sections),
        **others,
    )


def markdown_of(stem: str, title: str, parts: Iterable[tuple[str, str]]) -> str:
    """The text of such a page, of titles and texts of its parts."""
    head = f"Written by `python bench/{stem}.py`; [{stem}.csv]({stem}.csv) has every figure, one a line."
    return "\n\n".join([f"# {title}", head, *(f"## {part}\n\n{text}" for part, text in parts)]) + "\n"
