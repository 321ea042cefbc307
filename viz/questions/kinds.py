"""Which questions a page asks, in turn. Pure."""

from viz.questions.interventions import (
    first_row_unmasked,
    leaking_mask,
    lifted_mask,
    without_head,
    without_positions,
    without_scaling,
)
from viz.questions.next_tokens import next_token, settled_state, warmed
from viz.questions.question import QuestionMaker
from viz.questions.rows import allowed_keys, copying_head, largest_weight, previous_head

MAKERS: dict[str, tuple[QuestionMaker, ...]] = {
    "attention": (
        largest_weight,
        without_scaling,
        lifted_mask,
        allowed_keys,
        first_row_unmasked,
        leaking_mask,
    ),
    "laboratory": (without_positions, without_head, without_scaling, first_row_unmasked),
    "prediction": (next_token, warmed, settled_state),
    "all-heads": (copying_head, previous_head),
}
