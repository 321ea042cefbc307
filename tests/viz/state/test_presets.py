"""What each preset says, measured on the model that ships with the app; and the list of changes."""

import math
import re

import numpy as np
import pytest

from model import Intervention, Model, Trace
from model.analysis import patch_map
from model.analysis.attribution.patching import PatchedRuns, estimated_map, path_map
from model.analysis.heads.ranking import scores
from model.analysis.heads.statistics import families
from model.analysis.run_comparison import losses, row_statistics
from model.analysis.tokens.prediction import probabilities
from model.nn.patches import Patch
from tests.cases import cases
from tests.model.tiny import loaded
from viz.state.intervention_words import mask_value_name, parts
from viz.state.link import from_link, to_link
from viz.state.presets import PATCHES, PRESETS, Preset, preset_of

SATURATES, LEAKS, ORDER, COPIES, HIDDEN, EMPTY, WINDOW, SINKLESS = PRESETS


def copying_heads(trace: Trace) -> tuple[tuple[tuple[str, int], float], ...]:
    return scores(trace, families(trace)[0]).called("induction")


def runs(preset: Preset) -> tuple[Model, Trace, Trace]:
    view = preset.view
    model = loaded(view.model)
    return model, model.trace(view.text), model.trace(view.text, intervention=view.intervention)


@cases("preset", [*PRESETS, *PATCHES])
def test_a_preset_opens_on_something_that_changed_and_its_link_reopens_it(preset) -> None:
    view = preset.view
    model, before, after = runs(preset)
    assert view.place in model.attention_names
    assert view.head < after.find(view.place).heads
    assert view.query < len(after.queries_of(after.find(view.place)))
    assert view.key < len(after.keys_of(after.find(view.place)))
    assert not np.array_equal(before.residual[before.source][-1], after.residual[after.source][-1])
    reopened, problems = from_link(to_link(view))
    assert reopened == view
    assert problems == ()
    assert preset_of(reopened) is preset


def test_without_scaling_rows_saturate() -> None:
    _, before, after = runs(SATURATES)
    ours, theirs = (
        np.concatenate([row_statistics(each).entropy.ravel() for each in trace.attention])
        for trace in (before, after)
    )
    assert theirs.mean() < ours.mean() / 3
    sharp = [
        np.concatenate(
            [row_statistics(each).largest[:, 1:].ravel() > 0.9 for each in run.attention]
        )
        for run in (before, after)
    ]  # but for the first row, which has no choice
    assert sharp[0].mean() < 0.5 < 0.7 < sharp[1].mean()
    view = SATURATES.view
    moved = [np.abs(one.weights() - before.find(one.name).weights()) for one in after.attention]
    layer = max(range(len(moved)), key=lambda at: moved[at].max())
    cell = np.unravel_index(int(moved[layer].argmax()), moved[layer].shape)
    assert (after.attention[layer].name, *cell) == (view.place, view.head, *view.cell)
    rows = [run.find(view.place).weights(view.head)[12] for run in (before, after)]
    assert [int(row.argmax()) for row in rows] == [11, 6]
    assert [before.tokens[at].text for at in (11, 6)] == [" to", "."]
    assert [float(row.max()) for row in rows] == pytest.approx([0.97, 1.0], abs=0.005)


def test_without_a_mask_the_answer_leaks() -> None:
    _, before, after = runs(LEAKS)
    assert losses(before).mean() == pytest.approx(6.2, abs=0.05)
    assert losses(after).mean() == pytest.approx(0.3, abs=0.05)
    first_round = np.exp(-losses(after))[1:4]
    assert (first_round > 0.9).all()
    assert (np.exp(-losses(before))[1:4] < 0.05).all()
    assert after.find("decoder.1.self").weights(2)[1, 7] > 0.9
    assert [after.tokens[at].text for at in (1, 7)] == [" dog", " mat"]


def test_without_the_previous_token_head_nothing_is_copied() -> None:
    _, before, after = runs(COPIES)
    tokens = [token.text for token in before.tokens]
    second = {text: len(tokens) - 1 - tokens[::-1].index(text) for text in (" dog", " mat")}
    ours, theirs = (np.exp(-losses(trace)) for trace in (before, after))
    known = slice(second[" mat"] - 1, None)  # the first token is not predicted
    assert (len(ours[known]), ours[known].min() >= 0.99) == (4, True)
    assert theirs[known].mean() == pytest.approx(0.18, abs=0.01)
    assert max(found[second[" dog"] - 1] for found in (ours, theirs)) < 0.005
    assert before.tokens[0].id != before.tokens[5].id
    assert tokens[5] == " " + tokens[0]
    assert {name for (name, _), _ in copying_heads(before)} == {"decoder.1.self"}
    head = before.find("decoder.0.self").weights(1)
    assert np.diagonal(head, -1).mean() > 0.9


def test_the_previous_token_head_matters_on_other_lists_too() -> None:
    model = loaded("stories")
    words = ["cat", "dog", "mat", "hat", "cup", "ball", "house", "river", "man"]
    kept, lost = [], []
    for seed in range(6):
        drawn = [str(word) for word in np.random.default_rng(seed).permutation(words)[:6]]
        text = " ".join(drawn * 2)
        for found, intervention in ((kept, Intervention()), (lost, COPIES.view.intervention)):
            found.append(np.exp(-losses(model.trace(text, intervention=intervention)))[-5:].mean())
    assert np.mean(lost) < 0.2 < 0.8 < np.mean(kept)


@cases("width, copies", [(3, False), (4, False), (5, True), (6, True)])
def test_a_window_that_ends_before_the_word_to_copy_lets_nothing_be_copied(width, copies) -> None:
    model, before, after = runs(WINDOW)
    assert after.attention[1].mask.sum(-1).max() == WINDOW.view.intervention.window == 4
    assert np.exp(-losses(before))[-4:].min() >= 0.99
    found = model.trace(WINDOW.view.text, intervention=Intervention(window=width))
    shares = np.exp(-losses(found))[-4:]
    assert shares.min() >= 0.99 if copies else shares.max() < 0.06
    assert np.exp(-losses(after))[-4:].max() < 0.005
    texts = [token.text for token in before.tokens]
    assert all(texts[query - 4] == texts[query + 1] for query in range(6, 10))


def test_without_sinks_the_rows_of_the_first_layer_grow_by_one_factor() -> None:
    _, before, after = runs(SINKLESS)
    ours, theirs = (run.find("decoder.0.self") for run in (before, after))
    assert ours.sink_weights(1)[0] == pytest.approx(0.87, abs=0.005)
    assert ours.weights(1)[0, 0] == pytest.approx(0.13, abs=0.005)
    assert theirs.weights(1)[0, 0] == 1
    for one in after.attention:
        for head in range(one.heads):
            np.testing.assert_allclose(one.weights(head).sum(-1), 1, rtol=1e-5)
    for head in range(ours.heads):
        grown = ours.weights(head) / (1 - ours.sink_weights(head))[:, None]
        np.testing.assert_allclose(theirs.weights(head), grown, atol=1e-6)
    later = before.find("decoder.1.self"), after.find("decoder.1.self")
    assert not np.allclose(later[0].query, later[1].query, atol=1e-3)


def test_without_positions_both_articles_are_one_and_the_animals_are_mixed_up() -> None:
    model, before, after = runs(ORDER)
    texts = [token.text for token in after.tokens]
    first, second = (place for place, text in enumerate(texts) if text == "the")
    states = after.residual["encoder"][-1]
    np.testing.assert_allclose(states[first], states[second], atol=1e-5)
    assert np.abs(np.diff(before.residual["encoder"][-1][[first, second]], axis=0)).max() > 1
    written, said = (
        [token.text for token in model.generate(ORDER.view.text, intervention=intervention)]
        for intervention in (Intervention(), ORDER.view.intervention)
    )
    assert " ".join(written[:-1]) == "le chat noir voit le chien blanc"
    assert said != written
    assert said.count("noir") == 2


def test_a_row_with_every_key_masked_reads_nothing_and_a_finite_mask_value_makes_it_uniform() -> (
    None
):
    model, _, after = runs(EMPTY)
    for attention in after.attention:
        for head in range(attention.heads):
            assert (attention.weights(head)[0] == 0).all()
            assert (attention.output[head, 0] == 0).all()
    assert np.isfinite(after.logits).all()
    filled = model.trace(EMPTY.view.text, intervention=Intervention(blocked={(0, 0)}, fill=-1e9))
    np.testing.assert_allclose(
        filled.find("decoder.0.self").weights(1)[0], 1 / len(filled.tokens), rtol=1e-5
    )


def test_with_the_surname_hidden_the_model_does_not_know_it() -> None:
    _, before, after = runs(HIDDEN)
    (hill,) = (token.id for token in before.tokens if token.text == " Hill")
    assert probabilities(before.logits[-1])[hill] > 0.95
    assert probabilities(after.logits[-1])[hill] < 0.2


def test_every_part_of_an_intervention_is_listed_and_can_be_taken_back_by_itself() -> None:
    intervention = Intervention(
        scale=0.5,
        mask="causal",
        hidden=frozenset({1}),
        blocked=frozenset({(2, 0)}),
        fill=-1e9,
        positions=False,
        ablated=frozenset({("decoder.0.self", 1), ("decoder.1.cross", 0)}),
        dropout=0.1,
        seed=4,
        only=frozenset({"decoder.0.self"}),
        window=1,
        cap=False,
        bias=False,
        sinks=False,
    )
    listed = parts(intervention, ("a", "b"))
    assert [part.words for part in listed] == [
        "scores × 0.5",
        "no cap",
        "no bias",
        "no sinks",
        "causal mask",
        "window of 1 key",
        "1 b hidden",
        "2 cannot see 0",
        "masked = −1e9",
        "positions off",
        "L0H1 off",
        "cross L1H0 off",
        "dropout 0.1, seed 4",
        "only in L0",
    ]
    while listed:
        assert len(parts(listed[0].without)) < len(listed)
        intervention = listed[0].without
        listed = parts(intervention)
    assert intervention == Intervention()


def test_long_lists_are_counted_and_taken_back_at_once() -> None:
    heads = frozenset(("encoder.2.self", head) for head in range(12))
    intervention = Intervention(
        hidden=range(9), blocked={(0, key) for key in range(7)}, ablated=heads
    )
    said = [re.findall(r"\d+", part.words) for part in parts(intervention)]
    assert said == [["9"], ["7"], ["12", "2"]]
    assert parts(intervention)[2].without.ablated == frozenset()


def test_mask_values_have_short_names() -> None:
    mask_values = (-math.inf, -1e9, -1e20, 0.0, 2.5, -7.0, -1e-9)
    assert [mask_value_name(mask_value) for mask_value in mask_values] == [
        "−∞", "−1e9", "−1e20", "0", "2.5", "−7", "−1e−9",
    ]  # fmt: skip


def pair(preset: Preset) -> tuple[Model, tuple[Trace, Trace], tuple[int, int], Trace]:
    """Of an example of patches: both runs, the likeliest token of each, and the run with the part in it."""
    model, a, changed = runs(preset)
    assert preset.view.second_text == preset.view.intervention.patch.text
    b = model.trace(preset.view.second_text)
    first, second = (int(trace.prediction.after(-1).argmax()) for trace in (a, b))
    return model, (a, b), (first, second), changed


def text_of(model: Model, id_: int) -> str:
    return model.tokenizer.named([id_])[0].text


def test_one_earlier_head_tells_the_first_names_apart_and_its_keys_are_read() -> None:
    model, (a, b), answer, changed = pair(PATCHES[0])
    assert [text_of(model, one) for one in answer] == [" Hill", " King"]
    assert int(changed.prediction.after(-1).argmax()) == answer[1]
    shares = patch_map(model, a, b, "head", answer=answer)
    assert shares[0, 1] == pytest.approx(1.0, abs=0.005)
    assert np.abs(np.delete(shares[0], 1)).max() < 0.03
    assert shares[1, 1:].min() == pytest.approx(0.25, abs=0.005)
    assert shares[1, 1:].max() == pytest.approx(0.42, abs=0.005)
    assert abs(shares[1, 0]) < 0.005
    before = a.find("decoder.0.self").weights(1)
    assert int((before.argmax(-1)[1:] == np.arange(len(before))[:-1]).sum()) == len(before) - 2 == 8
    path = path_map(model, a, b, ("decoder.1.self", 2), ("key",), answer=answer)
    assert path[0, 1] == pytest.approx(0.39, abs=0.005)
    assert np.abs(np.delete(path[0], 1)).max() < 0.02
    estimate = estimated_map(PatchedRuns(model, a, b, "head"), answer)
    assert estimate[0, 1] == pytest.approx(-0.01, abs=0.005)


def test_layer_1_carries_the_surname_to_the_last_token_and_its_heads_share_the_work() -> None:
    model, (a, b), answer, changed = pair(PATCHES[1])
    assert [text_of(model, one) for one in answer] == [" Hill", " Reed"]
    assert int(changed.prediction.after(-1).argmax()) == answer[1]
    stream = patch_map(model, a, b, "stream", answer=answer)
    assert stream[1, 1] == pytest.approx(1.0, abs=0.005)
    assert stream[2, 12] == pytest.approx(1.01, abs=0.005)
    assert np.abs(np.delete(stream[1], 1)).max() < 0.02
    assert np.abs(np.delete(stream[2], 12)).max() < 0.02
    heads = patch_map(model, a, b, "head", answer=answer)
    assert heads[1].max() == pytest.approx(0.16, abs=0.01)
    assert np.abs(heads[2:]).max() < 0.03


def test_two_places_share_what_is_copied() -> None:
    model, (a, b), answer, _ = pair(PATCHES[2])
    assert [text_of(model, one) for one in answer] == ["m", "h"]
    stream = patch_map(model, a, b, "stream", answer=answer)
    for layer in (0, 1):
        assert stream[layer, [2, 9]] == pytest.approx([0.41, 0.595], abs=0.01)
        assert np.abs(np.delete(stream[layer], [2, 9])).max() < 0.01
    both = frozenset({("stream", "decoder.1.self", 2), ("stream", "decoder.1.self", 9)})
    patch = Patch("induction", PATCHES[2].view.second_text, both)
    together = model.trace(a.text, intervention=Intervention(patch=patch))
    np.testing.assert_allclose(together.prediction.after(-1), b.prediction.after(-1), atol=0.05)
