"""Lines between heads: the widest is above the others and has its name."""

from viz.figures.head_tiles import Link, composition_graph

LINKS = [
    Link((0, 2), (1, 3), "K", 0.9, "long", "L1H3 reads L0H2 by K"),
    Link((0, 1), (1, 3), "V", 0.4, "long", "L1H3 reads L0H1 by V"),
    Link((0, 2), (1, 3), "Q", 0.5, "long", "L1H3 reads L0H2 by Q"),
]


def test_the_widest_line_is_drawn_last_and_named() -> None:
    figure = composition_graph(["L0", "L1"], 4, LINKS, chosen=(1, 3))
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert lines[-1].name == "read by K"
    assert lines[-1].line.width == max(one.line.width for one in lines)
    assert lines[-1].opacity > max(one.opacity for one in lines[:-1])
    assert len({one.x[-1] for one in lines}) == 3  # each side by side where the head reads
    (ring,) = (trace for trace in figure.data if trace.name == "widest")
    (named,) = figure.layout.annotations
    assert list(zip(ring.x, ring.y, strict=True)) == [(2, 0), (3, 1)]
    assert (named.x, named.y) == (2, 0)
    assert "L1H3 reads L0H2 by K" in named.text


def test_where_rows_are_many_no_name_lies_on_another_row() -> None:
    figure = composition_graph([f"L{layer}" for layer in range(30)], 4, LINKS, chosen=(1, 3))
    assert not figure.layout.annotations
    assert any(trace.name == "widest" for trace in figure.data)


def test_without_lines_nothing_is_named() -> None:
    assert not composition_graph(["L0"], 2, [], chosen=(0, 0)).layout.annotations
