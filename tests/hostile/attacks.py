"""Words that try to be more than words, one of each kind that a page must show as mere text."""

import re

MARK = "hx"  # stands in most of them, so that a test can tell what a page made of it
FLAG = "window.hx=1"  # what a script would do if it ran

MARKUP = (
    f"<b>{MARK}</b>",
    f"<img src=x onerror={FLAG}>",
    f"</script><script>{FLAG}</script>",
    f'<a href="javascript:{FLAG}">{MARK}</a>',
    f"<extra>{MARK}</extra>",
    f"<br>{MARK}",
    f"<svg onload={FLAG}>",
    f'" onmouseover="{FLAG}" x="',
    f"' onmouseover='{FLAG}' x='",
    "&lt;u&gt;",
    "-->",
)
MARKDOWN = (
    f"**{MARK}**",
    f"_{MARK}_",
    f"[{MARK}](http://evil.test)",
    f"![{MARK}](http://evil.test/x.png)",
    f":red[{MARK}]",
    f":blue-badge[{MARK}]",
    ":material/home:",
    ":streamlit:",
    ":smile:",
    f"$\\frac{{{MARK}}}{{2}}$",
    f"$${MARK}$$",
    f"`{MARK}`",
    f"http://evil.test/{MARK}",
    "www.evil.test",
    f"{MARK}@evil.test",
    "->",
    "<->",
    f"# {MARK}",
    f"> {MARK}",
    f"- {MARK}",
    f"|{MARK}|",
    f"~~{MARK}~~",
    f"```mermaid\n{MARK}\n```",
    f"[^1]: {MARK}",
)
TEMPLATES = (f"%{{x}}{MARK}", f"{{{MARK}}}", "%{z}", "{head}", "#000001", "%s%n", "${7*7}")
LATEX = (
    f"\\href{{javascript:{FLAG}}}{{{MARK}}}",
    "\\input{/etc/passwd}",
    "}{}{",
    "\\def\\a{\\a}\\a",
)
FORMULAS = (f"=cmd|' /C calc'!{MARK}", f"=1+1+{MARK}", f"+{MARK}", f"-{MARK}", f"@SUM({MARK})")
HIDDEN = (
    f"\u202e{MARK}\u202c",
    f"\u2066{MARK}\u2069",
    "h\u200bx",
    "h\u200dx",
    "\ufeffhx",
    "h\u00adx",
    f"\x00{MARK}",
    f"\x1b[31m{MARK}",
    "\u3164",
    "\u2028",
    "\U000e0041",
)
LARGE = ("a" + "\u0301" * 300, "W" * 10_000)
SHORT = (*MARKUP, *MARKDOWN, *TEMPLATES, *LATEX, *FORMULAS, *HIDDEN)
ATTACKS = (*SHORT, *LARGE)
INVISIBLE = "".join(
    sorted({letter for word in HIDDEN for letter in word if not letter.isprintable()})
)


def hidden_in(text: str) -> set[str]:
    """Invisible characters of a text, but for whole pairs that isolate letters written from the right."""
    bare = re.sub("\u2068([^\u2068\u2069]+)\u2069", r"\1", text)
    return {letter for letter in INVISIBLE if letter in bare}
