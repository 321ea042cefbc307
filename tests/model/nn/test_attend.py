"""`attend` called directly: grouped keys, masks given by hand, rows with nothing to look at."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from model import Attention, Intervention
from model.nn.attention import attend, rotate
from model.nn.config import Projection
from model.nn.layers import rotary_angles
from model.nn.masks import causal_mask, changed_mask
from model.nn.places import Place
from model.nn.recorder import Recorder, current, recording
from model.trace.collect import attention_record
from tests.cases import cases

SELF = Place("encoder", 0, "self")
PATHS = pytest.mark.parametrize("explicit", [False, True], ids=["fused", "explicit"])


def vectors(heads: int, length: int, device: str = "cpu") -> Tensor:
    draws = torch.Generator().manual_seed(heads * 100 + length)
    return torch.randn(1, heads, length, 8, generator=draws).to(device)


def recorded(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    place: Place = SELF,
    *,
    mask: Tensor | None = None,
    explicit: bool = False,
    intervention: Intervention | None = None,
) -> tuple[Tensor, Attention]:
    """The output of `attend`, and its record."""
    recorder = Recorder(intervention or Intervention(), "attention", explicit)
    with recording(recorder):
        output = attend(query, key, value, place, mask=mask)
    return output, attention_record(recorder.attention[0], (), Projection())


def test_a_kernel_that_leaves_nan_in_an_empty_row_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyTorch promises nothing for such rows: some versions and devices gave NaN."""
    kernel = F.scaled_dot_product_attention

    def careless(
        query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor, **rest: Any
    ) -> Tensor:
        output = kernel(query, key, value, attn_mask=attn_mask, **rest)
        return output.masked_fill(~attn_mask.any(-1, keepdim=True), torch.nan)

    x = vectors(2, 4)
    mask = causal_mask(4)
    mask[1] = False
    expected, _ = recorded(x, x, x, mask=mask)
    monkeypatch.setattr(F, "scaled_dot_product_attention", careless)
    output, _ = recorded(x, x, x, mask=mask)
    torch.testing.assert_close(output, expected)
    assert (output[:, :, 1] == 0).all()


@PATHS
@cases("mask_value", [-1e9, -1e20])
def test_a_row_filled_with_a_large_number_only_is_uniform(mask_value, explicit: bool) -> None:
    x = vectors(1, 4)
    nothing = torch.zeros(4, 4, dtype=torch.bool)
    intervention = Intervention(fill=mask_value)
    output, attention = recorded(
        x, x, x, mask=nothing, explicit=explicit, intervention=intervention
    )
    np.testing.assert_allclose(attention.weights(0), 0.25)
    torch.testing.assert_close(output[0, 0, 0], x[0, 0].mean(0))


@PATHS
@cases("scale", [None, 1.0, 0.0, -0.7, 5.0])
def test_the_factor_is_the_given_one_or_one_over_the_root_of_the_width(
    scale, explicit: bool, device: str
) -> None:
    x = vectors(2, 4, device)
    intervention = Intervention(scale=scale)
    output, attention = recorded(x, x.flip(-1), x, explicit=explicit, intervention=intervention)
    factor = 1 / math.sqrt(8) if scale is None else scale
    assert attention.scale == pytest.approx(factor)
    expected = (x @ x.flip(-1).mT * factor).softmax(-1) @ x
    torch.testing.assert_close(output, expected)


def test_a_factor_of_the_callers_own_is_used_and_recorded() -> None:
    x = vectors(2, 4)
    with recording(Recorder(level="attention")) as recorder:
        output = attend(x, x, x, SELF, scale=0.25)
    torch.testing.assert_close(output, (x @ x.mT * 0.25).softmax(-1) @ x)
    assert attention_record(recorder.attention[0], (), Projection()).scale == 0.25


def test_without_a_recorder_nothing_is_kept_and_nothing_changes() -> None:
    x = vectors(2, 4)
    intervention = Intervention(scale=9.0, ablated=frozenset({("encoder.0.self", 0)}))
    changed, _ = recorded(x, x, x, intervention=intervention)
    plain, _ = recorded(x, x, x)
    assert not torch.equal(changed, plain)
    assert torch.equal(attend(x, x, x, SELF), plain)
    with recording(Recorder()) as silent:
        attend(x, x, x, SELF)
    assert not silent.attention


def test_masks_say_who_may_look() -> None:
    t, f = True, False
    assert causal_mask(3).tolist() == [[t, f, f], [t, t, f], [t, t, t]]
    assert causal_mask(2, 4).tolist() == [[t, t, t, f], [t, t, t, t]]  # two were read before


def test_an_intervention_adds_to_the_mask_or_lifts_it() -> None:
    t, f = True, False
    query, key, own = vectors(1, 2), vectors(1, 3), torch.tensor([[t, t, f], [t, t, t]])

    def changed(own: Tensor | None, **fields: Any) -> list[list[bool]] | None:
        mask = changed_mask(own, Intervention(**fields), query, key)
        return None if mask is None else mask.tolist()

    assert changed(None) is None
    assert changed(own) == own.tolist()
    assert changed(own, mask="none") is None
    assert changed(None, mask="causal") == [[t, f, f], [t, t, f]]
    assert changed(None, hidden={1, 9}) == [[t, f, t], [t, f, t]]
    assert changed(None, blocked={(0, 2), (7, 7)}) == [[t, t, f], [t, t, t]]
    assert changed(own, hidden={1}, blocked={(1, 0)}) == [[t, f, f], [f, f, t]]
    assert changed(own, mask="none", hidden={0}) == [[f, t, t], [f, t, t]]


def test_rotary_positions_turn_pairs_and_scores_see_only_the_distance() -> None:
    angles = rotary_angles(9, 8)
    x = vectors(1, 1).expand(1, 1, 9, 8)
    turned = rotate(x, angles)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(turned[..., 0, :], x[..., 0, :])
    pair = torch.complex(x[..., :4], x[..., 4:]) * torch.polar(torch.ones_like(angles), angles)
    torch.testing.assert_close(turned, torch.cat([pair.real, pair.imag], -1))
    scores = (turned @ rotate(x.flip(-1), angles).mT)[0, 0]
    for distance in range(-8, 9):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=1e-4)


def test_when_a_recording_ends_the_one_around_it_goes_on() -> None:
    outer, inner = Recorder(), Recorder()
    with recording(outer):
        with pytest.raises(KeyError), recording(inner):
            raise KeyError
        assert current() is outer
    assert current() is not outer
