"""One head: its map on the sentence, its job with the evidence, and what it does over a corpus."""

from dataclasses import replace
from functools import partial

from model.analysis.heads.ranking import STATISTICS, Scores
from model.analysis.heads.statistics import family_of
from model.nn.places import Head
from model.profile.battery import KINDS
from model.profile.shipped import profile_of
from viz.figures.heatmap import headed, weights_of_head
from viz.notation.head_labels import labels_in_words
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import leaders
from viz.notation.words import sentences_of
from viz.shell.panel import Panel, Part, Table
from viz.shell.pictures import TABLED, of_all_pairs, readout_of
from viz.state.look import Look
from viz.state.navigation import HOME, page_link, view_link
from viz.state.session import current, write_link
from viz.views.all_heads.choice import name_of
from viz.views.all_heads.compare import others
from viz.views.all_heads.patterns import scores_of
from viz.views.corpus.choice import OWN
from viz.views.corpus.views import examples_of, strongest

say = sentences_of("all_heads.one_head")


@of_all_pairs
def one_head(look: Look) -> Panel:
    """The map, the job and its evidence; below, the head over a corpus."""
    attention, head = look.attention, look.head
    queries, keys = look.labels
    name, weights = name_of(look, (look.place, head)), attention.weights(head)
    query, key = strongest(weights, attention)
    known = scores_of(look.request, family_of(look.trace, attention))
    columns = dict(zip(numbered_labels(keys), weights.T, strict=True))
    one, other = bold_token(queries[query], query), bold_token(keys[key], key)
    among = others((attention, (query, key)))
    return Panel(
        "head-map",
        look_for=say(
            "strongest_weight", among=among, weights=weights[query, key], one=one, other=other
        )
        + _ranked(look, known, (look.place, head)),
        picture=headed(
            weights_of_head(attention, head, queries=queries, keys=keys, cell=(query, key)),
            f"What {name} attends to",
        ),
        chosen=f"{look.place}-{head}",
        beside=[
            *_job(look, (look.place, head)),
            *_scored(known, (look.place, head)),
            partial(readout_of, attention, head, queries, keys, query=query, key=key),
            partial(
                view_link,
                HOME,
                say("explore_step_step", name=name),
                replace(current(), show="", stage="weights"),
            ),
        ],
        below=[*examples_of(look), write_link],
        table=Table({"query": numbered_labels(queries), **columns})
        if max(weights.shape) <= TABLED
        else None,
    )


def _job(look: Look, head: Head) -> list[Part]:
    """What the head may be called, with both verdicts; or why nothing is known."""
    profile = profile_of(look.model)
    if profile is None:
        words = say("profile_ships_jobs", look=look.title)
        link = partial(page_link, "pages/all_heads.py", say("profile_text_yours"), show=OWN)
        return [words, *([link] if look.model.runs else [])]
    said = labels_in_words(profile).get(head)
    if said is None:
        return [say("job_known_heads", kinds=len(KINDS))]
    job, _, evidence = said.partition(". ")
    return [f"**{plain(job[:1].upper() + job[1:])} head.** {plain(evidence)}"]


def _ranked(look: Look, known: Scores, head: Head) -> str:
    """In which score it leads all others, if in any."""
    at = known.heads.index(head)
    leads = [
        one
        for one in STATISTICS
        if one.name in known.values and leaders(known.values[one.name], decimals=3) == (at,)
    ]
    if not leads:
        return ""
    titles = " and ".join(f"“{one.title}”" for one in leads[:2])
    return say("heads_highest_score", heads=len(known.heads), titles=titles)


def _scored(known: Scores, head: Head) -> list[Part]:
    """The scores of the head on this text, as a table."""
    at = known.heads.index(head)
    rows = []
    for one in STATISTICS:
        values = known.values.get(one.name)
        if values is not None and values.max() > values.min():
            rank = 1 + int((values > values[at]).sum())
            rows.append(f"| {one.title} | {values[at]:.2f} | {rank} of {len(values)} |")
    head_row = say("sentence_score_rank")
    return ["\n".join([head_row, *rows])] if rows else []
