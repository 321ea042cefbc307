"""The recurrent network: its steps are those of the formulas, and the gradient is the slope it should be."""

import pytest
import torch

from model.analysis.stream.recurrence import gradient_by_token, states_by_formula
from model.loading.shipped import ASSETS, load_asset
from model.nn.recurrent import RecurrentLayers, recurrent
from model.nn.transformer import Transformer
from tests.cases import cases

NAMES = {"induction": Transformer, "recurrent": recurrent}
IDS = torch.tensor([[3, 9, 20, 3, 9]])


def shipped(name: str) -> Transformer:
    module, _, _ = load_asset(ASSETS / name, build=NAMES[name])
    return module


def test_the_two_networks_have_nearly_the_same_number_of_parameters() -> None:
    counts = [sum(each.numel() for each in shipped(name).parameters()) for name in NAMES]
    assert counts[1] == pytest.approx(counts[0], rel=0.01)


def test_the_states_are_those_of_the_formulas_one_step_after_the_other() -> None:
    module = shipped("recurrent")
    assert isinstance(module.decoder, RecurrentLayers)
    vectors = module.embedding(IDS, "decoder")
    by_formula = states_by_formula(module.decoder, vectors[0])
    torch.testing.assert_close(by_formula, module.decoder(vectors)[0], atol=1e-5, rtol=0)


@cases("name", NAMES)
def test_the_gradient_by_token_is_the_slope_between_two_runs(name) -> None:
    module = shipped(name).double()
    lengths = gradient_by_token(module, IDS)
    vectors = module.embedding(IDS, "decoder")
    assert module.decoder is not None
    for token in (0, 2, 4):
        slopes = []
        for part in torch.eye(module.config.d_model, dtype=torch.float64) * 1e-5:
            moved = [vectors.clone() for _ in range(2)]
            moved[0][0, token] += part
            moved[1][0, token] -= part
            ends = [module.logits(module.decoder(each))[0, -1] for each in moved]
            slopes.append((ends[0] - ends[1]) / 2e-5)
        assert lengths[token] == pytest.approx(torch.stack(slopes).norm().item(), rel=1e-4)


def test_only_a_plain_decoder_becomes_recurrent() -> None:
    with pytest.raises(ValueError, match="one layer without positions"):
        recurrent(shipped("induction").config)
