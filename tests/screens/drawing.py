"""Draws frames of terminals as one SVG. It has its own background, to be readable on light and dark
pages. It is animated if the reader's settings allow, and otherwise shows the most telling frame."""

import html
import re

_CHARACTER, _LINE, _SIZE = 8.4, 19, 14  # pixels: a character's width, a line's height, the font
_MARGIN, _TITLE = 16, 40
_STILL = 1  # the frame shown without animation
_SECONDS = 5  # per frame
_STYLES = {"": "", "1": "b", "2": "f", "31": "r", "32": "g", "33": "y"}
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" \
aria-label="{label}">
<style>
text{{font:{size}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
fill:#d1d7e0;white-space:pre}}
.t{{font:600 15px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#f0f6fc}}
.b{{font-weight:bold;fill:#f0f6fc}}.f{{fill:#8b949e}}.r{{fill:#ff7b72}}.g{{fill:#56d364}}\
.y{{fill:#e3b341}}
{motion}</style>
<rect x=".5" y=".5" width="{inner_width:g}" height="{inner_height:g}" rx="8" fill="#0d1117" \
stroke="#6e7681"/>
"""


def draw(frames, columns, about):
    """frames: (title, [lines of each terminal]); a line is a list of runs (text, style). Screen
    readers read `about` before the titles."""
    width = 2 * _MARGIN + columns * _CHARACTER
    rules, rows = [], []  # lines between terminals; (y, content of each frame)
    rows.append((26, [[_title(title, number, len(frames))]
                      for number, (title, _) in enumerate(frames)]))
    y = _TITLE
    for pane in range(len(frames[0][1])):
        rules.append(y)
        y += 6
        for line in range(max(_height(panes[pane]) for _, panes in frames)):
            y += _LINE
            rows.append((y - 5, [_words(panes[pane][line]) for _, panes in frames]))
        y += 6
    height = y + 4
    groups = {}  # (first frame, last frame): elements visible in them
    for y, seen in rows:
        first = 0
        for number in range(1, len(frames) + 1):
            if number == len(frames) or seen[number] != seen[first]:
                groups.setdefault((first, number), []).extend(
                    word.format(y=y) for word in seen[first])
                first = number
    out = [_HEAD.format(width=width, height=height, size=_SIZE, inner_width=width - 1,
                        inner_height=height - 1, motion=_motion(groups, len(frames)),
                        label=html.escape(f"{about}: " +
                                          "; ".join(title for title, _ in frames)))]
    out += [f'<path d="M1 {y}H{width - 1:g}" stroke="#30363d"/>\n' for y in rules]
    for (first, end), words in sorted(groups.items()):
        still = "" if first <= min(_STILL, len(frames) - 1) < end else ' opacity="0"'
        moves = f' class="m{first}{end}"' if (first, end) != (0, len(frames)) else ""
        out += [f"<g{moves}{still}>\n", *words, "</g>\n"]
    return "".join(out + ["</svg>\n"])


def _height(lines):
    return max((number + 1 for number, runs in enumerate(lines) if runs), default=0)


def _title(title, number, count):
    place = f"{number + 1}/{count}  " if count > 1 else ""
    text = html.escape(place + title).replace("{", "{{").replace("}", "}}")
    return f'<text class="t" x="{_MARGIN}" y="{{y}}">{text}</text>\n'


def _words(runs):
    """Text elements with the right column and width in any font. Splits runs at two spaces."""
    words, column = [], 0
    for text, style in runs:
        for match in re.finditer(r"\S+(?: \S+)*", text):
            name = _STYLES[style]
            shown = html.escape(match[0], quote=False).replace("{", "{{").replace("}", "}}")
            words.append(
                f'<text{f""" class="{name}" """.rstrip() if name else ""}'
                f' x="{_MARGIN + (column + match.start()) * _CHARACTER:.1f}" y="{{y}}"'
                f' textLength="{len(match[0]) * _CHARACTER:.1f}">{shown}</text>\n')
        column += len(text)
    return words


def _motion(groups, count):
    """Shows each group only in its frames, without fading."""
    rules = []
    for first, end in sorted(groups):
        if (first, end) == (0, count):
            continue
        steps = {0: 0, 100 * first // count: 1, 100 * end // count: 0}
        if first == 0:
            steps[0] = 1
        frames = "".join(f"{percent}%{{opacity:{seen}}}" for percent, seen in steps.items())
        rules.append(f".m{first}{end}{{animation:m{first}{end} {count * _SECONDS}s step-end"
                     f" infinite}}@keyframes m{first}{end}{{{frames}}}\n")
    return f"@media (prefers-reduced-motion:no-preference){{\n{''.join(rules)}}}\n"
