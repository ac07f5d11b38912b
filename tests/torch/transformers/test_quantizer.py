"""Models with compressed weights go through transformers' files, and have the outputs of the plain model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import arrcomp
from arrcomp import QSGD, ErrorBounded, Lossless, Rule

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file

from arrcomp.torch import CompressedWeight, compress_weights, weight_memory
from arrcomp.torch.transformers import ArrcompConfig

pytestmark = [
    pytest.mark.full,  # transformers is in the extra test-full
    pytest.mark.filterwarnings("ignore:.*(torch.jit|is_gradient_checkpointing):DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),
]

SMALL: dict[str, Any] = {
    "hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 256, "vocab_size": 500, "max_position_embeddings": 64,
}  # fmt: skip
IDS = torch.arange(18).reshape(2, 9) * 7 % 500


def decoder(**options: Any) -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, **options)).bfloat16()


def experts() -> Any:
    torch.manual_seed(0)
    config = transformers.MixtralConfig(**SMALL | {"intermediate_size": 128}, num_local_experts=4)
    return transformers.MixtralForCausalLM(config).bfloat16()


def encoder() -> Any:
    torch.manual_seed(0)
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
    return transformers.BertModel(transformers.BertConfig(**{name: SMALL[name] for name in names})).bfloat16()


MODELS = {
    "decoder": decoder,
    "tied decoder": lambda: decoder(tie_word_embeddings=True),
    "experts": experts,
    "encoder": encoder,
}


def load(folder: Path, **options: Any) -> Any:
    kind = (
        transformers.AutoModel if "Bert" in (folder / "config.json").read_text() else transformers.AutoModelForCausalLM
    )
    return kind.from_pretrained(folder, **options)


def outputs(model: Any) -> Any:
    with torch.no_grad():
        return model(IDS)[0]


def compressed_names(model: Any) -> set[str]:
    return {name for name, weight in model.named_parameters() if isinstance(weight, CompressedWeight)}


@pytest.fixture(params=MODELS)
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of a plain model."""
    MODELS[request.param]().save_pretrained(tmp_path / "plain")
    return tmp_path / "plain"


@pytest.fixture
def decoder_folder(tmp_path: Path) -> Path:
    decoder().save_pretrained(tmp_path / "plain")
    return tmp_path / "plain"


def test_models_keep_their_outputs_through_files(plain: Path, tmp_path: Path) -> None:
    expected = outputs(load(plain))
    small = load(plain, quantization_config=ArrcompConfig())
    assert torch.equal(outputs(small), expected)
    assert weight_memory(small).nbytes < 0.75 * weight_memory(small).plain_nbytes
    small.save_pretrained(tmp_path / "small", max_shard_size="200KB")
    assert len(list((tmp_path / "small").glob("*.safetensors"))) > 1
    assert (tmp_path / "small" / "model.safetensors.index.json").exists()
    loaded = load(tmp_path / "small")
    assert compressed_names(loaded) == compressed_names(small) != set()
    assert torch.equal(outputs(loaded), expected)
    loaded.save_pretrained(tmp_path / "again")
    plain_again = load(tmp_path / "again").dequantize()
    assert compressed_names(plain_again) == set()
    assert torch.equal(outputs(plain_again), expected)
    plain_again.save_pretrained(tmp_path / "dequantized")
    before, after = (load_file(folder / "model.safetensors") for folder in (plain, tmp_path / "dequantized"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_files_are_as_small_as_the_weights_in_memory(decoder_folder: Path, tmp_path: Path) -> None:
    small = load(decoder_folder, quantization_config=ArrcompConfig())
    small.save_pretrained(tmp_path / "small")
    nbytes = (tmp_path / "small" / "model.safetensors").stat().st_size
    assert nbytes < weight_memory(small).nbytes + 10_000
    tensors = load_file(tmp_path / "small" / "model.safetensors")
    stream = tensors["model.layers.0.mlp.up_proj.weight"]
    values = load_file(decoder_folder / "model.safetensors")["model.layers.0.mlp.up_proj.weight"]
    assert torch.equal(arrcomp.decompress(arrcomp.from_bytes(stream.numpy()), like="torch"), values)


def test_tied_weights_stay_tied(tmp_path: Path) -> None:
    decoder(tie_word_embeddings=True).save_pretrained(tmp_path / "plain")
    load(tmp_path / "plain", quantization_config=ArrcompConfig()).save_pretrained(tmp_path / "small")
    assert "lm_head.weight" not in load_file(tmp_path / "small" / "model.safetensors")
    model = load(tmp_path / "small")
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert isinstance(model.lm_head.weight, CompressedWeight)


def test_the_configuration_is_that_of_the_model(decoder_folder: Path, tmp_path: Path) -> None:
    rules = [Rule(ErrorBounded(abs=1e-3), "*.mlp.*"), Rule(Lossless(speed="fast"))]
    config = ArrcompConfig(rules, skip="lm_head.*", blocks=["*.mlp", "*.self_attn"], min_size=10_000)
    model = load(decoder_folder, quantization_config=config)
    assert model.model.layers[0].mlp.up_proj.weight.codec == ErrorBounded(abs=1e-3)
    assert model.model.layers[0].self_attn.q_proj.weight.codec == Lossless(speed="fast")
    names = compressed_names(model)
    assert "lm_head.weight" not in names
    assert "model.layers.0.self_attn.k_proj.weight" not in names  # 128 * 64 values
    model.save_pretrained(tmp_path / "small")
    loaded = load(tmp_path / "small")
    assert loaded.config.quantization_config.to_dict() == config.to_dict()
    assert compressed_names(loaded) == names
    assert torch.equal(outputs(loaded), outputs(model))


def test_a_configuration_can_ask_for_plain_weights(decoder_folder: Path, tmp_path: Path) -> None:
    load(decoder_folder, quantization_config=ArrcompConfig()).save_pretrained(tmp_path / "small")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "small")
    config.quantization_config["dequantize"] = True
    model = load(tmp_path / "small", config=config)
    assert compressed_names(model) == set()
    assert torch.equal(outputs(model), outputs(load(decoder_folder)))
    assert not hasattr(model.config, "quantization_config")


def test_another_dtype_is_the_one_of_the_weights(decoder_folder: Path, tmp_path: Path) -> None:
    load(decoder_folder, quantization_config=ArrcompConfig()).save_pretrained(tmp_path / "small")
    model, expected = (load(folder, dtype=torch.float32) for folder in (tmp_path / "small", decoder_folder))
    assert model.lm_head.weight.dtype == torch.float32
    assert isinstance(model.lm_head.weight, CompressedWeight)
    assert torch.equal(outputs(model), outputs(expected))


def test_a_model_gets_more_tokens(decoder_folder: Path, tmp_path: Path) -> None:
    small, plain = load(decoder_folder, quantization_config=ArrcompConfig()), load(decoder_folder)
    for model in (small, plain):
        torch.manual_seed(0)
        model.resize_token_embeddings(520)  # assigns to the data of the embeddings
    assert small.model.embed_tokens.weight.shape == (520, 128)
    assert torch.equal(outputs(small), outputs(plain))
    small.save_pretrained(tmp_path / "small")
    assert torch.equal(outputs(load(tmp_path / "small")), outputs(plain))


def test_damaged_files_are_told(decoder_folder: Path, tmp_path: Path) -> None:
    load(decoder_folder, quantization_config=ArrcompConfig()).save_pretrained(tmp_path / "small")
    path, name = tmp_path / "small" / "model.safetensors", "model.layers.1.mlp.down_proj.weight"
    tensors = load_file(path)
    damaged, other = tensors[name].clone(), tensors["model.layers.0.self_attn.q_proj.weight"]
    damaged[len(damaged) // 2] ^= 1
    for stream, match in ((damaged, rf"^{name}: "), (other, rf"^{name}: expected a stream of an array of shape")):
        save_file(tensors | {name: stream.clone()}, path, {"format": "pt"})
        with pytest.raises(arrcomp.CorruptStreamError, match=match):
            load(tmp_path / "small")


def test_wrong_configurations_are_told(decoder_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^codec: expected a codec"):
        ArrcompConfig("lossless")  # type: ignore[arg-type]
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"dequantize": 1}, TypeError, "dequantize: expected"),
        ({"skip": 3}, TypeError, "skip: expected a string, or several, got 3"),
        ({"blocks": [None]}, TypeError, "blocks: expected a string, or several"),
        ({"min_size": "few"}, TypeError, "min_size: expected an integer"),
        ({"codec": QSGD(rounding="stochastic")}, ValueError, "codec: expected a codec that needs no seed"),
    ]
    for arguments, error, text in wrong:
        with pytest.raises(error, match=f"^{text}"):
            ArrcompConfig(**arguments)
    with pytest.raises(ValueError, match=r"^blocks: expected patterns that match"):
        load(decoder_folder, quantization_config=ArrcompConfig(blocks="transformer.h.*"))
    for places in ({"model": "disk", "lm_head": "cpu"}, {"model": 0, "lm_head": "cpu"}):
        with pytest.raises(ValueError, match=r"^device_map: expected no offloaded weights"):
            load(decoder_folder, quantization_config=ArrcompConfig(), device_map=places)
    load(decoder_folder, quantization_config=ArrcompConfig()).save_pretrained(tmp_path / "small")
    path = tmp_path / "small" / "config.json"
    config = json.loads(path.read_text())
    config["quantization_config"]["rules"] = [{"names": "*", "codec": "from-the-future"}]
    path.write_text(json.dumps(config))
    with pytest.raises(arrcomp.UnknownCodecError, match="from-the-future"):
        load(tmp_path / "small")


@pytest.mark.parametrize("options", [{"num_beams": 1}, {"num_beams": 3}, {"do_sample": True, "top_k": 20}], ids=str)
def test_generated_tokens_are_those_of_the_plain_model(options: dict[str, Any]) -> None:
    texts = []
    models: list[Any] = [decoder(), compress_weights(decoder())]
    for model in models:
        torch.manual_seed(1)
        texts.append(model.eval().generate(IDS, max_new_tokens=10, pad_token_id=0, **options))
    assert torch.equal(*texts)


def test_adapters_are_trained_on_compressed_weights(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    results = []
    for model in (decoder(), compress_weights(decoder())):
        torch.manual_seed(1)
        config = peft.LoraConfig(r=4, target_modules=["q_proj", "up_proj"], task_type="CAUSAL_LM")
        adapted = peft.get_peft_model(model, config)
        optimizer = torch.optim.SGD([weight for weight in adapted.parameters() if weight.requires_grad], lr=0.1)
        for _ in range(3):
            loss = adapted(input_ids=IDS, labels=IDS).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        trained = outputs(adapted.eval())
        merged = adapted.merge_and_unload()
        results.append((loss.detach(), trained, outputs(merged)))
    assert compressed_names(merged) != set()
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
