"""Codecs and rules from the command line."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from .._arguments import shortened, shown
from ..codecs import Codec, ErrorBounded, available_codecs, codec_from_config
from ..codecs._base import PREDICTORS as _PREDICTORS
from ..codecs._presets import PRESETS, preset
from ..codecs._rules import Rule, rule_from_config
from ..errors import UnknownCodecError
from .program import did_you_mean
from .words import codec_text, names_text, options_with

PREDICTORS = "|".join(_PREDICTORS)  # as options name them


class NamedRule(NamedTuple):
    """A rule, and its text on the command line."""

    rule: Rule
    text: str


def rules_of_options(texts: Sequence[str]) -> list[NamedRule]:
    """The rules of --rule."""
    return [NamedRule(_rule(text), text) for text in texts]


def check_rules_match(rules: Sequence[NamedRule], names: Sequence[str]) -> None:
    """Raise ValueError if a rule of --rule matches none of these arrays: its pattern has a typing error."""
    for rule, text in rules:
        patterns = [rule.names] if isinstance(rule.names, str) else rule.names
        if not any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
            raise ValueError(f"rule {shown(text)}: matches no array (arrays: {names_text(names)})")


def check_seed(codec: Codec, seed: int | None) -> None:
    """Raise ValueError if a codec needs a seed, and there is none."""
    if codec.needs_seed and seed is None:
        raise ValueError(f"--seed: expected a number, which {codec_text(codec)} needs, got none; for instance --seed 0")


def codec_named(name: str, options: Mapping[str, Any], option: str = "--codec") -> Codec:
    """The codec of this name, or short name, with those parameters that are not None. ValueError if either is wrong."""
    given = {key: value for key, value in options.items() if value is not None}
    config = preset(name)
    if config is None or name in available_codecs():
        config = {"codec": codec_class(name, option).name}
    try:
        return codec_from_config({**config, **given})
    except (TypeError, ValueError) as error:
        text = re.sub("^config: ", "", str(error))
        raise ValueError(f"{option} {name}: {text}{_way_out(str(config['codec']), given)}") from None


def codec_class(name: str, option: str = "--codec") -> type[Codec]:
    """The codec of this name. ValueError if there is none."""
    kinds = available_codecs()
    if name not in kinds:
        hint = did_you_mean(name, [*kinds, *PRESETS])
        more = hint or f"; short names are {', '.join(PRESETS)}"
        raise ValueError(f"{option}: expected {', '.join(kinds)}, or a short name, got {shown(name)}{more}")
    return kinds[name]


def _way_out(codec: str, given: Mapping[str, Any]) -> str:
    """What to type in place of a codec with wrong or missing parameters."""
    kind = available_codecs()[codec]
    unknown = [name for name in given if name not in (*kind.examples()[0].config(), *_fields(kind))]
    if not unknown:
        names = [name for name, config in PRESETS.items() if config["codec"] == codec]
        examples = ["--abs 1e-4"] if codec == ErrorBounded.name else [f"--codec {name}" for name in names[:3]]
        return "" if given or not examples else f"; for instance {', '.join(examples)}"
    if unknown[0] in _fields(ErrorBounded):
        return f"; --codec error-bounded takes --{unknown[0]}"
    example = options_with(unknown[0], given[unknown[0]])
    return "" if example is None else f"; for instance {example}"


def _fields(kind: type[Codec]) -> list[str]:
    return [field.name for field in fields(kind)]


def completed_codecs(incomplete: str) -> list[str]:
    """Completions of the beginning of a codec's name, or of a short name."""
    return [name for name in (*available_codecs(), *PRESETS) if name.startswith(incomplete)]


def completed_kinds(incomplete: str) -> list[str]:
    """Completions of the beginning of a codec's name."""
    return [name for name in available_codecs() if name.startswith(incomplete)]


def parameters(settings: Sequence[str], option: str) -> dict[str, Any]:
    """Parameters from NAME=VALUE. Values are JSON (a number, true, false) or else strings."""
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not (name and equals):
            raise ValueError(f"{option}: expected NAME=VALUE, for instance bits=4, got {shortened(setting)}")
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    return found


def _rule(text: str) -> Rule:
    """A rule from PATTERN=CODEC[:NAME=VALUE,...]."""
    pattern, equals, described = text.partition("=")
    name, colon, settings = described.partition(":")
    if not (pattern and equals and name):
        example = "'*.weight=error-bounded:abs=1e-4'"
        raise ValueError(f"--rule: expected PATTERN=CODEC[:NAME=VALUE,...], as {example}, got {shortened(text)}")
    options = parameters(settings.split(","), f"--rule {text}") if colon else {}
    return Rule(codec_named(name, options, f"--rule {text}: codec"), pattern)


def rules_of_file(path: Path) -> list[Rule]:
    """The rules of --rules, which may be for many models: some of them may match nothing."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--rules {path}: expected JSON, got {error}") from None
    if not isinstance(found, list):
        raise ValueError(f"--rules {path}: expected a JSON list of rules, got {type(found).__name__}")
    rules = []
    for number, config in enumerate(found):
        try:
            rules.append(rule_from_config(config))
        except (UnknownCodecError, TypeError, ValueError) as error:
            raise ValueError(f"--rules {path}, rule {number}: {error}") from None
    return rules
