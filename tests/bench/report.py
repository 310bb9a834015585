"""The results as Markdown tables and as a plot."""

import math
import platform
import os

_COLUMNS = {"zklock": "zklock", "floor": "floor", "floor-guard": "floor with a guard",
            "flock": "flock(1)", "etcdctl": "etcdctl", "kazoo": "kazoo", "curator": "Curator",
            "herd": "herd", "true": "true"}


def text_of(value, unit):
    """Formats `value` with three significant figures."""
    if isinstance(value, str):
        return value
    if unit == "s" and value < 1:
        value, unit = value * 1000, "ms"
    if unit == "KiB" and value >= 10240:
        value, unit = value / 1024, "MiB"
    if value == 0 or value == int(value) and value < 1e6:
        figure = str(int(value))
    else:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        figure = f"{value:.{digits}f}"
    return f"{figure} {unit}".strip()


class Results:
    def __init__(self):
        self._rows = {}      # what -> (unit, {who: value})
        self._targets = []   # (what, target, value as text, met)
        self._handover = {}  # who -> {queue length: seconds}
        self._notes = []
        self._tables = {}    # part -> Markdown

    def add(self, what, who, value, unit):
        self._rows.setdefault(what, (unit, {}))[1][who] = value

    def get(self, what, who):
        return self._rows.get(what, ("", {}))[1].get(who)

    def add_handover(self, who, length, seconds):
        self._handover.setdefault(who, {})[length] = seconds

    def handover(self, who, length):
        return self._handover.get(who, {}).get(length)

    def target(self, what, value, limit, unit="", at_least=False):
        """Does nothing if `value` is None, that is, was not measured."""
        if value is None:
            return
        met = value >= limit if at_least else value <= limit
        sign = "≥" if at_least else "≤"
        self._targets.append((what, f"{sign} {text_of(limit, unit)}", text_of(value, unit), met))

    def ratio(self, what, over, under, limit, at_least=False):
        """`over` and `under` are (row, peer)."""
        a, b = self.get(*over), self.get(*under)
        if a is not None and b:
            self.target(what, a / b, limit, "×", at_least)

    def note(self, text):
        self._notes.append(text)

    def table(self, part, text):
        """Adds the table of a part that has its own."""
        self._tables[part] = text

    def markdown(self):
        parts = [f"{_machine()}{'; medians' if self._rows else ''}.\n\n"]
        who = [word for word in _COLUMNS if any(word in row for _, row in self._rows.values())]
        if self._rows:
            parts.append(f"| | {' | '.join(_COLUMNS[word] for word in who)} |\n"
                         f"|{' --- |' * (len(who) + 1)}\n")
            for what, (unit, values) in self._rows.items():
                cells = [text_of(values[word], unit) if word in values else "–" for word in who]
                parts.append(f"| {what} | {' | '.join(cells)} |\n")
        if self._targets:
            parts.append("\n| target | limit | measured | |\n| --- | --- | --- | --- |\n")
            for what, limit, value, met in self._targets:
                parts.append(f"| {what} | {limit} | {value} | {'reached' if met else '**missed**'} |\n")
        parts += [f"\n{note}\n" for note in self._notes]
        gap = "\n" if self._rows else ""
        parts += [f"{gap}{table}" for table in self._tables.values()]
        return "".join(parts)

    def plot(self):
        """Hand-over time over queue length, as SVG; empty if not measured."""
        return _plot(self._handover) if self._handover else ""


def _machine():
    return (f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}"
            f" {platform.machine()}, all servers on the same machine")


def put_into_page(path, name, text):
    """Replaces the text between the comments `name: begin` and `name: end`."""
    with open(path) as file:
        page = file.read()
    begin_mark = f"<!-- {name}: begin -->"
    begin, end = page.index(begin_mark) + len(begin_mark), page.index(f"<!-- {name}: end -->")
    with open(path, "w") as file:
        file.write(f"{page[:begin]}\n{text}{page[end:]}")


# ---- the plot ------------------------------------------------------------------------------------

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 130, 40, 50
_COLOURS = {"zklock": "#0b6e4f", "floor": "#888888", "flock": "#444444", "herd": "#c1292e",
            "kazoo": "#235789", "etcdctl": "#e08e00", "curator": "#7b4fa3"}


def _plot(series):
    lengths = sorted({length for values in series.values() for length in values})
    seconds = [value for values in series.values() for value in values.values()]
    low = 10 ** math.floor(math.log10(min(seconds) * 1000))
    high = 10 ** math.ceil(math.log10(max(seconds) * 1000))

    def x(length):
        span = math.log10(lengths[-1] / lengths[0]) or 1
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log10(length / lengths[0]) / span

    def y(milliseconds):
        share = math.log10(milliseconds / low) / (math.log10(high / low) or 1)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
           ' font-family="sans-serif" font-size="13">',
           f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
           f'<text x="{_LEFT}" y="22" font-size="15">From one holder\'s command to the next'
           " one's, by length of the queue</text>"]
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        at = y(10 ** power)
        out.append(f'<path d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}" stroke="#dddddd"/>'
                   f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">'
                   f'{10 ** power:g} ms</text>')
    for length in lengths:
        out.append(f'<path d="M{x(length):.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#dddddd"/>'
                   f'<text x="{x(length):.1f}" y="{_HEIGHT - _BOTTOM + 20}"'
                   f' text-anchor="middle">{length}</text>')
    out.append(f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 8}"'
               ' text-anchor="middle">waiters</text>')
    last_label = math.inf
    ends = sorted(series, key=lambda who: series[who][max(series[who])])
    for who in ends:
        points = sorted(series[who].items())
        line = " ".join(f"{x(length):.1f},{y(value * 1000):.1f}" for length, value in points)
        colour = _COLOURS.get(who, "#000000")
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(length):.1f}" cy="{y(value * 1000):.1f}" r="3.5"'
                f' fill="{colour}"/>' for length, value in points]
        last_label = min(y(points[-1][1] * 1000) + 4, last_label - 15)
        out.append(f'<text x="{x(points[-1][0]) + 10:.1f}" y="{last_label:.1f}"'
                   f' fill="{colour}">{_COLUMNS[who]}</text>')
    return "\n".join([*out, "</svg>\n"])
