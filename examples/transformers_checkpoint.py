"""A checkpoint of a transformers model: compressed within several bounds, and loaded into the model again.

A BERT of 7 million weights, random as nothing is downloaded: `BertModel.from_pretrained` gives a real one. The codec
applies to the large matrices; biases and layer norms are lossless (`arrcomp.model_rules`). `from_pretrained` cannot
read the files: a model is made from its configuration, and gets the weights from `load_file`.

    pip install ".[torch]" safetensors transformers
    python examples/transformers_checkpoint.py
"""

import sys
import tempfile
from pathlib import Path

try:
    import safetensors.torch
    import torch
    from torch import Tensor
    from transformers import BertConfig, BertModel
except ImportError as error:
    sys.exit(
        f"transformers_checkpoint.py needs PyTorch, safetensors and transformers ({error}): "
        'pip install ".[torch]" safetensors transformers'
    )

import arrcomp as ac

CONFIG = BertConfig(
    vocab_size=8000, hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=1024
)
CODECS = {
    "lossless": ac.Lossless(),
    "error at most 0.0001": ac.ErrorBounded(abs=1e-4),
    "error at most 0.001": ac.ErrorBounded(abs=1e-3),
    "float8 (e4m3)": ac.FloatFormat("fp8_e4m3", scaling="tensor"),
    "NF4, 4 bits": ac.Codebook.nf4(),
}


@torch.no_grad()
def embeddings(model: BertModel) -> Tensor:
    """One vector for each of 32 sentences: the mean of the last layer's outputs."""
    sentences = torch.randint(CONFIG.vocab_size, (32, 16), generator=torch.Generator().manual_seed(1))
    mean: Tensor = model.eval()(sentences).last_hidden_state.mean(1)
    return mean


def main() -> None:
    """Save, load and compare."""
    torch.manual_seed(0)
    original = BertModel(CONFIG)
    expected, state = embeddings(original), original.state_dict()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.arrcomp.safetensors")
        safetensors.torch.save_file(state, path)
        plain = path.stat().st_size
        print(f"{'safetensors':<21} {plain:11,} bytes")
        for title, codec in CODECS.items():
            ac.save_file(state, path, ac.model_rules(codec))
            model = BertModel(CONFIG)  # with other random weights
            model.load_state_dict(ac.load_file(path, like="torch"))
            nbytes, cosine = path.stat().st_size, torch.cosine_similarity(embeddings(model), expected).min()
            print(f"{title:<21} {nbytes:11,} bytes {plain / nbytes:5.2f}x, least cosine to the original {cosine:.6f}")


if __name__ == "__main__":
    main()
