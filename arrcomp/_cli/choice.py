"""Codecs and rules from the command line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..codecs import Codec, Lossless, available_codecs, codec_from_config
from ..codecs._rules import Rule, rule_from_config
from ..errors import UnknownCodecError
from .program import did_you_mean


def chosen_rules(rules: Sequence[str], path: Path | None, rest: Codec) -> list[Rule]:
    """The rules of --rule, then those of --rules, then the codec for all other arrays."""
    return [*map(_rule, rules), *([] if path is None else _rules_of_file(path)), Rule(rest)]


def codec_named(name: str, options: Mapping[str, Any], option: str = "--codec") -> Codec:
    """The codec of this name, with those parameters that are not None. ValueError if either is wrong."""
    given = {key: value for key, value in options.items() if value is not None}
    kind = codec_class(name, option)
    try:
        return codec_from_config({"codec": name} | given)
    except (TypeError, ValueError) as error:
        hint = f"; --codec error-bounded takes --{next(iter(given))}" if kind is Lossless and given else ""
        raise ValueError(f"{option} {name}: {error}{hint}") from None


def codec_class(name: str, option: str = "--codec") -> type[Codec]:
    """The codec of this name. ValueError if there is none."""
    kinds = available_codecs()
    if name not in kinds:
        raise ValueError(f"{option}: expected {', '.join(kinds)}, got {name!r}{did_you_mean(name, kinds)}")
    return kinds[name]


def completed_codecs(incomplete: str) -> list[str]:
    """Completions of the beginning of a codec's name."""
    return [name for name in available_codecs() if name.startswith(incomplete)]


def parameters(settings: Sequence[str], option: str) -> dict[str, Any]:
    """Parameters from NAME=VALUE. Values are JSON (a number, true, false) or else strings."""
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not (name and equals):
            raise ValueError(f"{option}: expected NAME=VALUE, for instance bits=4, got {setting}")
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
        raise ValueError(f"--rule: expected PATTERN=CODEC[:NAME=VALUE,...], as {example}, got {text}")
    options = parameters(settings.split(","), f"--rule {text}") if colon else {}
    return Rule(codec_named(name, options, f"--rule {text}: codec"), pattern)


def _rules_of_file(path: Path) -> list[Rule]:
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
