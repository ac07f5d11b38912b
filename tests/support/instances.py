"""Instances of all codecs, for tests that go through a list of them."""

from __future__ import annotations

from collections.abc import Iterable

from arrcomp import Codec, available_codecs


def and_unlisted(listed: Iterable[Codec]) -> list[Codec]:
    """These instances, then the examples of the codecs that have none among them: a new codec needs no line there."""
    found = list(listed)
    kinds = {type(codec) for codec in found}
    return found + [codec for kind in available_codecs().values() if kind not in kinds for codec in kind.examples()]
