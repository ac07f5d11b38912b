"""Rules: the first that fits an array and takes its dtype picks the codec, and they travel as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks
from arrcomp import ErrorBounded, Lossless, Rule, model_rules, rule_from_config
from arrcomp._dtypes import by_name
from arrcomp.codecs._rules import checked_rules, codec_for

FLOAT32 = by_name("float32")
BOUNDED = ErrorBounded(abs=1e-4)
CODECS = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]
TEXTS = st.one_of(st.text(), st.lists(st.text(), min_size=1).map(tuple))


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    sizes, dimensions = (sorted(draw(st.tuples(*[st.integers(0, most)] * 2))) for most in (1 << 40, 64))
    return Rule(
        codec=draw(st.sampled_from(CODECS)),
        names=draw(TEXTS),
        dtypes=draw(st.none() | st.lists(st.sampled_from(checks.DTYPES), min_size=1).map(tuple)),
        min_size=sizes[0],
        max_size=draw(st.none() | st.just(sizes[1])),
        min_ndim=dimensions[0],
        max_ndim=draw(st.none() | st.just(dimensions[1])),
    )


@given(rules())
def test_a_rule_comes_back_from_json(rule: Rule) -> None:
    assert rule_from_config(json.loads(json.dumps(rule.config()))) == rule


@given(st.lists(rules(), max_size=4), st.sampled_from(checks.DTYPES), st.text(), st.lists(st.integers(0, 9)).map(tuple))
def test_every_array_gets_a_codec_that_takes_it(
    chosen: list[Rule], dtype: str, name: str, shape: tuple[int, ...]
) -> None:
    assert codec_for(chosen, name, by_name(dtype), shape).takes(by_name(dtype))


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (Rule(BOUNDED), True),
        (Rule(BOUNDED, "layer.*"), True),
        (Rule(BOUNDED, "LAYER.*"), False),
        (Rule(BOUNDED, "weight"), False),
        (Rule(BOUNDED, ("*.bias", "*.weight")), True),
        (Rule(BOUNDED, ("*.bias", "*.scale")), False),
        (Rule(BOUNDED, dtypes="float32"), True),
        (Rule(BOUNDED, dtypes=("float16", "bfloat16")), False),
        (Rule(BOUNDED, min_size=12), True),
        (Rule(BOUNDED, min_size=13), False),
        (Rule(BOUNDED, max_size=12), True),
        (Rule(BOUNDED, max_size=11), False),
        (Rule(BOUNDED, min_ndim=2, max_ndim=2), True),
        (Rule(BOUNDED, min_ndim=3), False),
        (Rule(BOUNDED, max_ndim=1), False),
    ],
    ids=str,
)
def test_all_that_a_rule_says_must_hold(rule: Rule, fits: bool) -> None:
    assert rule.fits("layer.weight", FLOAT32, (3, 4)) is fits


def test_the_first_rule_wins() -> None:
    chosen = [Rule(ErrorBounded(abs=1), "a*"), Rule(ErrorBounded(abs=2), "*b"), Rule(ErrorBounded(abs=3))]
    found = [codec_for(chosen, name, FLOAT32, (1,)) for name in ("ab", "b", "c")]
    assert found == [ErrorBounded(abs=1), ErrorBounded(abs=2), ErrorBounded(abs=3)]
    assert codec_for(chosen[:2], "c", FLOAT32, (1,)) == Lossless()


def test_a_codec_that_does_not_take_the_dtype_leaves_the_array_to_the_next_rule() -> None:
    fast = Lossless(speed="fast")
    assert codec_for([Rule(BOUNDED), Rule(fast)], "steps", by_name("int64"), ()) == fast
    assert codec_for([Rule(BOUNDED)], "steps", by_name("int64"), ()) == Lossless()


def test_model_rules_keep_what_is_small_and_delicate() -> None:
    chosen = model_rules(BOUNDED, min_size=100)

    def codec(name: str, *shape: int) -> arrcomp.Codec:
        return codec_for(chosen, name, FLOAT32, shape)

    assert codec("encoder.layer.0.attention.query.weight", 10, 10) == BOUNDED
    assert codec("embeddings.word_embeddings.weight", 1000, 10) == BOUNDED
    assert codec("encoder.layer.0.attention.query.weight", 9, 11) == Lossless()
    assert codec("w", 10_000) == Lossless()
    for name in ("experts.bias", "input_layernorm.weight", "x.LayerNorm.w", "embeddings.position_embeddings.weight"):
        assert codec(name, 1000, 10) == Lossless()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"codec": "lossless"}, TypeError, r"^codec: expected a codec, got 'lossless' \(str\)"),
        ({"names": 3}, TypeError, r"^names: expected a string, or a tuple of strings, got 3 \(int\)"),
        ({"names": ("a", 3)}, TypeError, "^names: expected a"),
        ({"names": ()}, ValueError, "^names: expected a"),
        ({"dtypes": "float"}, TypeError, "^dtype: expected bool, int8, uint8, int16,.*got float"),
        ({"dtypes": []}, ValueError, r"^dtypes: expected at least one string, got \[\]"),
        ({"min_size": -1}, ValueError, "^min_size: expected an integer from 0 to 1152921504606846976, got -1"),
        ({"min_size": 2, "max_size": 1}, ValueError, "^max_size: expected an integer .*, got 1"),
        ({"max_size": 1.5}, TypeError, r"^max_size: expected an integer .*, got 1\.5 \(float\)"),
        ({"max_ndim": 65}, ValueError, "^max_ndim: expected an integer from 0 to 64, got 65"),
        ({"min_ndim": True}, TypeError, r"^min_ndim: expected an integer from 0 to 64, got True \(bool\)"),
    ],
)
def test_wrong_rules_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Rule(**{"codec": BOUNDED} | arguments)


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ([], TypeError, "^config: expected a mapping, got list"),
        ({}, ValueError, r"^config: expected a codec's name or configuration under 'codec', got \{\}"),
        ({"codec": "zip"}, arrcomp.UnknownCodecError, r"^config\['codec'\]: expected lossless,.*got 'zip'"),
        ({"codec": 3}, TypeError, r"^config: expected a mapping, got 3 \(int\)"),
        ({"codec": "error-bounded"}, TypeError, "exactly one of abs"),
        ({"codec": "lossless", "name": "*"}, TypeError, "^config: expected arguments of a rule.*got 'name'"),
    ],
)
def test_wrong_configurations_of_rules_are_refused(config: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rule_from_config(config)


def test_what_is_given_as_codec_becomes_rules() -> None:
    assert checked_rules(None) == checked_rules([]) == ()
    assert checked_rules(BOUNDED) == checked_rules([Rule(BOUNDED)]) == (Rule(BOUNDED),)
    for wrong in ("lossless", [BOUNDED], 3):
        with pytest.raises(TypeError, match=r"^codec: expected a codec, a list of Rule, or None, got "):
            checked_rules(wrong)
