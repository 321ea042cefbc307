"""A recurrent network in the place of a decoder's blocks: one step after the other, and no attention."""

from torch import Tensor, nn

from model.nn.config import TransformerConfig
from model.nn.recorder import current
from model.nn.transformer import Layers, Transformer


class RecurrentLayers(Layers):
    """A GRU (Cho et al. 2014) of the model's width instead of blocks, with the same call.

    Its state after token t is computed from its state after token t − 1 and the vector of token t. So it
    needs no positions and no mask.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config, "decoder", 0)
        self.final_norm = None
        self.recurrent = nn.GRU(config.d_model, config.d_model, batch_first=True)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        **masks_and_angles: Tensor | None,
    ) -> Tensor:
        """The states after the last layer, (B, T, C). Only a decoder that reads no source is built so.

        Args:
            x: (B, T, C).
            memory, masks_and_angles: are not read; they are there for the same call as `Layers`.
        """
        current().stream(self.stack, x)
        states: Tensor = self.recurrent(x)[0]
        return current().stream(self.stack, states)


def recurrent(config: TransformerConfig) -> Transformer:
    """A decoder's embedding and output matrix around a GRU.

    Raises ValueError for a config that is not a decoder of one layer without positions.
    """
    if (config.shape, config.decoder_layers, config.positions) != ("decoder", 1, "none"):
        raise ValueError("A recurrent network is a decoder of one layer without positions.")
    module = Transformer(config)
    module.decoder = RecurrentLayers(config)
    return module
