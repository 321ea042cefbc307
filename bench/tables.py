"""The measured numbers as Markdown."""

from collections.abc import Callable
from textwrap import fill

from bench import (
    cluster,
    cluster_soak,
    first_picture,
    own_tests,
    page_switch,
    research,
    site,
    soak,
    training,
)
from bench.cells import Measured, megabytes, ms, seconds, table, times
from bench.profiling_tables import PROFILING
from bench.titles import TITLES

GUIDE_WIDTH = 110  # characters of a line


def recording(measured: Measured) -> str:
    rows = [
        (
            f"{row['tokens']:,}",
            row["library"],
            row["way"],
            seconds(row.get("plain_seconds")),
            seconds(row.get("seconds")),
            times(row.get("time_ratio")),
            f"{row['process_mb']:,.0f} MB",
            times(row["memory_ratio"]) if row["way"] != "plain" else "",
            f"{row['above_model_mb']:,.0f} MB",
        )
        for row in measured["rows"]
    ]
    head = ("tokens", "library", "way", "plain pass", "recorded", "time", "process's peak")
    return table((*head, "memory", "above the model"), rows)


def score(measured: Measured) -> str:
    rows = ([row["cell"], ms(row["median_ms"]), ms(row["p90_ms"])] for row in measured["rows"])
    return table(("cell", "median", "p90"), rows)


def patching(measured: Measured) -> str:
    rows = [
        (
            row["library"],
            row["tokens"],
            row["passes"],
            f"{row['seconds']:.1f} s",
            f"{row['processor_s']:.1f} s",
            f"{row['shown']} times" if "shown" in row else "",
            f"{row['estimate_s']:.2f} s" if "estimate_s" in row else "",
            f"{row['load']:g}",
        )
        for row in measured["rows"]
    ]
    head = (
        "library",
        "tokens",
        "heads",
        "exact map",
        "of a processor",
        "progress shown",
        "estimate",
        "load before",
    )
    return table(head, rows)


def many(measured: Measured) -> str:
    rows = [
        (
            row["model"],
            row["prompts"],
            row["heads"],
            f"{row['seconds']:.1f} s",
            f"{row['loop_seconds']:.1f} s",
            f"{row['apart']:.0e}",
        )
        for row in measured["rows"]
    ]
    speed = table(
        ("model", "prompts", "heads", "in one table", "by a loop", "largest difference"), rows
    )
    rows = [
        (
            f"{row['prompts']:,}",
            f"{row['seconds']:.1f} s",
            f"{row['process_mb']:,.0f} MB",
            f"{row['table_mb']:.1f} MB",
        )
        for row in measured["memory"]
    ]
    memory = table(("short prompts", "in", "process's peak", "the table of it"), rows)
    return f"{speed}\n\n{memory}"


def sessions(measured: Measured) -> str:
    rows = [
        (
            row["sessions"],
            f"{row['runs_a_second']:.0f}",
            ms(row["median_ms"]),
            ms(row["p90_ms"]),
            ms(row["head_median_ms"]),
            ms(row["mask_median_ms"]),
            row["failed"],
        )
        for row in measured["rows"]
    ]
    head = ("sessions", "runs a second", "median", "p90", "head", "mask", "failed")
    memory = measured["memory"]
    first, last = memory["megabytes"][0], memory["megabytes"][-1]
    words = (
        f"One visitor reading {memory['sentences']} different sentences takes the server from "
        f"{first:,.0f} to {last:,.0f} MB ({', '.join(f'{m:,.0f}' for m in memory['megabytes'])})."
    )
    return f"{table(head, rows)}\n\n{words}"


def weight(measured: Measured) -> str:
    rows = [
        (
            f"{row['tokens']:,}",
            row["page"],
            megabytes(row["bytes"]),
            megabytes(row.get("bytes_a_layer")),
            megabytes(row.get("program_bytes")),
            "not opened" if row["nodes"] is None else f"{row['nodes']:,}",
            "" if row["seconds"] is None else f"{row['seconds']:.1f} s",
        )
        for row in measured["rows"]
    ]
    head = ("tokens", "page", "all heads", "a layer", "program, once", "DOM nodes", "opened in")
    return table(head, rows)


def clicks(measured: Measured) -> str:
    rows = [
        (
            row["tokens"],
            row["model"],
            row["drawn_by"],
            "" if row["slower"] == 1 else f"{row['slower']}× slower",
            row["switch"],
            ms(row["median_ms"]),
            ms(row["p90_ms"]),
            f"{row['bytes'] / 1000:,.1f} kB",
        )
        for row in measured["rows"]
    ]
    head = ("tokens", "model", "drawn by", "browser", "switch", "median", "p90", "on the wire")
    parts = [table(head, rows)]
    long = measured["long"]
    if long:
        first, head_switch = long["first_picture"], long["head"]
        parts.append(
            f"1,024 tokens in a random model of GPT-2's size: first picture "
            f"{first['median_ms'] / 1000:.1f} s after Enter (median of {first['times']} texts, the "
            f"slowest {first['longest_ms'] / 1000:.1f} s; "
            f"{megabytes(long['first_bytes'])} sent), head switch {ms(head_switch['median_ms'])} "
            f"(p90 {ms(head_switch['p90_ms'])})."
        )
    parts.append(
        f"Each button is held for {measured['press_ms']} ms; its release starts the watch."
    )
    if early := measured.get("early_ms"):
        parts[-1] += (
            " A mouse opens a page of the menu as it is pressed: by touch or keyboard that is "
            f"{early} ms later."
        )
    pages = [(row["page"], ms(row["median_ms"]), ms(row["p90_ms"])) for row in measured["pages"]]
    parts.append(table(("page opened from Home", "median", "p90"), pages))
    return "\n\n".join(parts)


def real_model(measured: Measured) -> str:
    units = dict.fromkeys(("first_s", "first_drawn_s", "second_s", "second_drawn_s"), "{:.1f} s")
    units |= dict.fromkeys(("before_mb", "after_mb", "peak_mb"), "{:,.0f} MB")
    rows = ([row["model"], *(units[x].format(row[x]) for x in units)] for row in measured["rows"])
    named = "model|first picture|all drawn|another sentence|all drawn|memory before|after|peak"
    offer = measured.get("offer_s")
    said = "" if offer is None else f"\n\nBy Home's offer: {offer:.1f} s."
    return table(tuple(named.split("|")), rows) + said


def classroom(measured: Measured) -> str:
    rows = [
        (row["act"], f"{row['times']:,}", ms(row["median_ms"]), ms(row["p95_ms"]))
        for row in measured["rows"]
    ]
    least, most = measured["think"]
    warm = measured["warm_megabytes"]
    words = (
        f"{measured['pupils']} sessions for {measured['seconds'] / 60:g} minutes, each pausing {least:g} "
        f"to {most:g} s between an answer and its next act. Errors: {measured['errors']}. Answers that "
        f"were not the session's own: {measured['mixed_up']}. Memory of the server, "
        f"with traces bounded at {measured['trace_mb']} MB, after "
        f"{measured['warm_up'] / 60:g} minutes: {min(warm):,} to {max(warm):,} MB "
        f"(± {measured['swing']:.1%})."
    )
    return f"{table(('act', 'times', 'median', 'p95'), rows)}\n\n{words}"


def sizing(measured: Measured) -> str:
    """How many replicas a class needs, by what one of them was seen to serve."""
    every = next(row for row in measured["rows"] if row["act"] == "all")
    least, most = measured["think"]
    words = (
        f"Measured on {measured['machine']['cores']} cores (docs/bench, *{TITLES['classroom']}*): one "
        f"replica answered {measured['pupils']} people at once, each of whom did something every {least:g} "
        f"to {most:g} seconds, {every['times'] / measured['seconds']:.0f} acts a second together, half of "
        f"them within {ms(every['median_ms'])} and 95 of 100 within {ms(every['p95_ms'])}. It held "
        f"{max(measured['megabytes']):,} MB with {measured['trace_mb']} MB of traces "
        f"(`ATTENTION_TRACE_MB`). So count one replica with two cores for each {measured['pupils']} people, "
        f"and one more."
    )
    return fill(words, GUIDE_WIDTH)


def bounds(measured: Measured) -> str:
    rows = [
        (
            " ".join(f"`{name}={value}`" for name, value in row["bound"].items()),
            row["pages"],
            f"{row['before']:,} MB",
            f"{row['after']:,} MB",
            f"{row['peak']:,} MB",
            f"{row['reported_models']:,} MB",
            f"{row['reported_traces']:,} MB",
        )
        for row in measured["rows"]
    ]
    head = ("bound", "open pages", "before them", "with them", "peak", "models kept", "traces kept")
    return table(head, rows)


def long_texts(measured: Measured) -> str:
    rows = [
        (
            row["model"],
            f"{row['tokens']:,}",
            ms(row["first_picture_ms"]),
            ms(row["head_ms"]),
            ms(row["head_p90_ms"]),
            f"{row['before_mb']:,} MB",
            f"{row['after_mb']:,} MB",
            f"{row['peak_mb']:,} MB",
        )
        for row in measured["rows"]
    ]
    head = ("model", "tokens", "first picture", "head", "p90", "before the text", "with it", "peak")
    return table(head, rows)


def notebook(measured: Measured) -> str:
    """What the widget sends, beside BertViz' page of the same weights."""
    rows = [
        (
            row["tokens"],
            *(megabytes(row[part]) for part in ("first", "layer", "layers", "bertviz_layer")),
            megabytes(row["bertviz"]) if row["bertviz"] else "not written",
        )
        for row in measured["rows"]
    ]
    head = ("tokens", "first layer", "another layer", "all 12 layers")
    library = (
        f"The widget's own code, once a notebook: {megabytes(measured['library'])}. The wheel: "
        f"{megabytes(measured['wheel'])}."
    )
    others = ("BertViz head_view, one layer", "all 12 layers")
    return f"{table((*head, *others), rows)}\n\n{library}"


def installing(measured: Measured) -> str:
    """What pip brings without an extra, and with the app."""
    rows = [
        (
            f"`attention-lens[{row['extra']}]`" if row["extra"] else "`attention-lens`",
            row["packages"],
            f"{row['install']:.0f} s",
            megabytes(row["bytes"]),
            megabytes(row["bytes"] - row["torch"]),
            *(seconds(row[part]) for part in ("named", "import_torch", "load_model")),
        )
        for row in measured["rows"]
    ]
    head = ("", "packages", "pip", "on the disk", "without PyTorch", "`import attention_lens`")
    return table((*head, "PyTorch", "`load_model`"), rows)


TABLES: dict[str, Callable[[Measured], str]] = {
    "recording": recording,
    "cuda": recording,
    "training": training.tabled,
    "score": score,
    "patching": patching,
    "many": many,
    "research": research.tabled,
    **PROFILING,
    "sessions": sessions,
    "weight": weight,
    "notebook": notebook,
    "installing": installing,
    "clicks": clicks,
    "page_switch": page_switch.tabled,
    "first_picture": first_picture.tabled,
    "long_texts": long_texts,
    "real_model": real_model,
    "site": site.tabled,
    "classroom": classroom,
    "bounds": bounds,
    "soak": soak.tabled,
    "cluster": cluster.tabled,
    "cluster_soak": cluster_soak.tabled,
    "own_tests": own_tests.tabled,
}
