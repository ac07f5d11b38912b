"""BERT, as the transformers package has it."""

from typing import Any

import torch
from torch import Tensor, nn

from ..inputs import Tokens
from .base import MODELS, Model


class Classifier(nn.Module):
    """BERT for sequences, told which tokens count and to which of two texts they belong."""

    def __init__(self, bert: Any, inputs: Tokens) -> None:
        """`bert` is a `BertForSequenceClassification`."""
        super().__init__()
        self.bert, self.inputs = bert, inputs

    def forward(self, tokens: Tensor) -> Tensor:
        padding, separator = self.inputs.padding, self.inputs.separator
        counts = torch.ones_like(tokens) if padding is None else (tokens != padding).long()
        types = torch.zeros_like(tokens)
        if separator is not None:
            ends = (tokens == separator).long()
            types = (ends.cumsum(1) - ends).clamp(max=1) * counts
        logits: Tensor = self.bert(input_ids=tokens, attention_mask=counts, token_type_ids=types).logits
        return logits


@MODELS.add
class Bert(Model):
    """BERT base: 12 layers of width 768, with new weights."""

    name = "bert"
    kind = Tokens.kind

    @classmethod
    def build(cls, inputs: Tokens) -> nn.Module:
        """As `Model.build`.

        Raises:
            ImportError: transformers is not installed.
        """
        try:
            from transformers import BertConfig, BertForSequenceClassification  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError as missing:
            raise ImportError(f"model bert needs transformers ({missing}): pip install transformers") from None
        sizes: dict[str, Any] = {"vocab_size": inputs.vocabulary, "num_labels": inputs.outputs}
        config = BertConfig(max_position_embeddings=max(inputs.length, 512), **sizes)
        model: Any = BertForSequenceClassification(config)
        for layer in model.bert.encoder.layer:
            layer.intermediate.intermediate_act_fn = nn.GELU()  # the same function, as a class that PyTorch has
        return Classifier(model, inputs)
