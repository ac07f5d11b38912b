"""Models that the transformers package has, as classifiers with new weights."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from training.data import MODELS, Images, Model, Tokens

_SMALL = 64  # pictures below this size are not made smaller before the first block


def _package(model: str) -> Any:
    try:
        import transformers
    except ImportError as missing:
        raise ImportError(f"model {model} needs transformers ({missing}): pip install transformers") from None
    return transformers


class SequenceClassifier(nn.Module):
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
    """BERT base: 12 layers of width 768."""

    name = "bert"
    kind = Tokens.kind

    @classmethod
    def build(cls, inputs: Tokens) -> nn.Module:
        """As `Model.build`.

        Raises:
            ImportError: transformers is not installed.
        """
        package = _package(cls.name)
        config = package.BertConfig(
            vocab_size=inputs.vocabulary,
            num_labels=inputs.outputs,
            max_position_embeddings=max(inputs.length, 512),
        )
        model: Any = package.BertForSequenceClassification(config)
        for layer in model.bert.encoder.layer:
            layer.intermediate.intermediate_act_fn = nn.GELU()  # the same function, as a class that PyTorch has
        return SequenceClassifier(model, inputs)


class PictureClassifier(nn.Module):
    """A residual network that gives its outputs alone."""

    def __init__(self, network: Any) -> None:
        """`network` is a `ResNetForImageClassification`."""
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x).logits
        return logits


class _ResNet(Model):
    """A residual network (K. He et al., arXiv:1512.03385).

    Large pictures are made four times smaller before the first block (table 1); small ones are not (section 4.2).
    """

    kind = Images.kind
    depths: ClassVar[tuple[int, ...]]
    width: ClassVar[int] = 64
    block: ClassVar[str] = "basic"

    @classmethod
    def build(cls, inputs: Images) -> nn.Module:
        """As `Model.build`.

        Raises:
            ImportError: transformers is not installed.
        """
        package = _package(cls.name)
        expansion = 4 if cls.block == "bottleneck" else 1
        config = package.ResNetConfig(
            num_channels=inputs.channels,
            embedding_size=cls.width,
            hidden_sizes=[(cls.width << stage) * expansion for stage in range(len(cls.depths))],
            depths=list(cls.depths),
            layer_type=cls.block,
            num_labels=inputs.outputs,
        )
        network: Any = package.ResNetForImageClassification(config)
        if min(inputs.height, inputs.width) < _SMALL:
            stem = network.resnet.embedder
            stem.embedder.convolution = nn.Conv2d(inputs.channels, cls.width, 3, padding=1, bias=False)
            nn.init.kaiming_normal_(stem.embedder.convolution.weight, mode="fan_out", nonlinearity="relu")
            stem.pooler = nn.Identity()
        return PictureClassifier(network)


@MODELS.add
class ResNet8(_ResNet):
    """Three blocks, 16 to 64 channels: for small pictures, in seconds on a CPU."""

    name = "resnet8"
    depths, width = (1, 1, 1), 16


@MODELS.add
class ResNet18(_ResNet):
    """18 layers."""

    name = "resnet18"
    depths = (2, 2, 2, 2)


@MODELS.add
class ResNet34(_ResNet):
    """34 layers."""

    name = "resnet34"
    depths = (3, 4, 6, 3)


@MODELS.add
class ResNet50(_ResNet):
    """50 layers."""

    name = "resnet50"
    depths, block = (3, 4, 6, 3), "bottleneck"
