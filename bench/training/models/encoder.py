"""A small encoder in BERT's layout."""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from training.data import MODELS, Model, Tokens


class Layer(nn.Module):
    """Attention and a perceptron, each with its residual sum before a norm (A. Vaswani et al., arXiv:1706.03762)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        """`width` numbers for each token, seen by `heads`."""
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.attended, self.norm1 = nn.Linear(width, width), nn.LayerNorm(width)
        self.inner, self.activation = nn.Linear(width, 4 * width), nn.GELU()
        self.outer, self.norm2 = nn.Linear(4 * width, width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        y = self.norm1(x)
        query, key, value = (self._split(part(y)) for part in (self.query, self.key, self.value))
        seen = scaled_dot_product_attention(query, key, value, mask, self.rate if self.training else 0.0)
        x = x + self.dropout(self.attended(seen.transpose(1, 2).flatten(2)))
        return torch.as_tensor(x + self.dropout(self.outer(self.activation(self.inner(self.norm2(x))))))

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


class Encoder(nn.Module):
    """Embeddings of tokens and places, layers, a pooler, a classifier (arXiv:1810.04805, section 3).

    The pooler sees the mean of all tokens, not the first one alone, which learns faster from few inputs.

    Args:
        inputs: texts.
        layers: how many.
        width: numbers for each token.
        heads: of attention, of which `width` is a multiple.
        dropout: rate.
    """

    def __init__(self, inputs: Tokens, layers: int, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.padding = inputs.padding
        self.tokens = nn.Embedding(inputs.vocabulary, width)
        self.places = nn.Parameter(torch.empty(inputs.length, width))
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(layers))
        self.pooler, self.activation = nn.Linear(width, width), nn.Tanh()
        self.classifier = nn.Linear(width, inputs.outputs)
        self._initialize(width**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = None if self.padding is None else (tokens != self.padding)[:, None, None, :]
        x = self.dropout(self.tokens(tokens) + self.places[: tokens.shape[1]])
        for layer in self.layers:
            x = layer(x, mask)
        x = self.norm(x)
        return torch.as_tensor(self.classifier(self.dropout(self.activation(self.pooler(self._mean(x, tokens))))))

    def _initialize(self, scale: float) -> None:
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=scale)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.places, std=scale)

    def _mean(self, x: Tensor, tokens: Tensor) -> Tensor:
        if self.padding is None:
            return x.mean(1)
        counts = (tokens != self.padding).to(x.dtype)[:, :, None]
        return (x * counts).sum(1) / counts.sum(1)


@MODELS.add
class BertTiny(Model):
    """Two layers of width 64: for short texts and small pictures, in seconds on a CPU."""

    name = "bert-tiny"
    kind = Tokens.kind

    @classmethod
    def build(cls, inputs: Tokens) -> nn.Module:
        return Encoder(inputs, layers=2, width=64, heads=4, dropout=0.0)
