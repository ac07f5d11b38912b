"""Codecs and rules as the command line has them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..codecs import Codec, Lossless, available_codecs, codec_from_config
from ..codecs._rules import Rule, rule_from_config
from ..errors import UnknownCodecError
from .program import did_you_mean


def chosen_rules(rules: Sequence[str], path: Path | None, rest: Codec) -> list[Rule]:
    """The rules of --rule, then those of --rules, then the codec for what none of them is for.

    Raises:
        ValueError: a rule is wrong.
        OSError: the file of rules cannot be read.
    """
    return [*map(_rule, rules), *([] if path is None else _rules_of_file(path)), Rule(rest)]


def codec_named(name: str, options: Mapping[str, Any], option: str = "--codec") -> Codec:
    """The codec of a name and of the parameters that are not None.

    Raises:
        ValueError: there is no such codec, or it does not take a parameter.
    """
    given = {key: value for key, value in options.items() if value is not None}
    kind = codec_class(name, option)
    try:
        return codec_from_config({"codec": name} | given)
    except (TypeError, ValueError) as error:
        hint = f"; --codec error-bounded takes --{next(iter(given))}" if kind is Lossless and given else ""
        raise ValueError(f"{option} {name}: {error}{hint}") from None


def codec_class(name: str, option: str = "--codec") -> type[Codec]:
    """The codec of a name.

    Raises:
        ValueError: there is none.
    """
    if name not in available_codecs():
        known = f"{', '.join(available_codecs())}{did_you_mean(name, available_codecs())}"
        raise ValueError(f"{option} {name}: codec {name!r} is unknown; this package has {known}")
    return available_codecs()[name]


def completed_codecs(incomplete: str) -> list[str]:
    """What a shell offers for the beginning of a codec's name."""
    return [name for name in available_codecs() if name.startswith(incomplete)]


def promise_of(codec: type[Codec]) -> str:
    """What a codec promises, in a sentence."""
    return (codec.__doc__ or "").partition("\n")[0]


def parameters(settings: Sequence[str], option: str) -> dict[str, Any]:
    """Parameters of NAME=VALUE; a value that is JSON (a number, true, false) is taken as such, another as text.

    Raises:
        ValueError: one is no NAME=VALUE.
    """
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not (name and equals):
            raise ValueError(f"{option} {setting}: NAME=VALUE is allowed, for instance bits=4")
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    return found


def _rule(text: str) -> Rule:
    """A rule of PATTERN=CODEC[:NAME=VALUE,...]."""
    pattern, equals, described = text.partition("=")
    name, colon, settings = described.partition(":")
    if not (pattern and equals and name):
        raise ValueError(
            f"--rule {text}: PATTERN=CODEC[:NAME=VALUE,...] is allowed, as '*.weight=error-bounded:abs=1e-4'"
        )
    options = parameters(settings.split(","), f"--rule {text}:") if colon else {}
    return Rule(codec_named(name, options, f"--rule {text}: codec"), pattern)


def _rules_of_file(path: Path) -> list[Rule]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--rules {path}: not readable as JSON: {error}") from None
    if not isinstance(found, list):
        raise ValueError(f"--rules {path}: a JSON list of rules is allowed")
    rules = []
    for number, config in enumerate(found):
        try:
            rules.append(rule_from_config(config))
        except (UnknownCodecError, TypeError, ValueError) as error:
            raise ValueError(f"--rules {path}, rule {number}: {error}") from None
    return rules
