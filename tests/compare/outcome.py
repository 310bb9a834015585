"""The tables and the picture, from what a run has kept."""

import dataclasses
import json
import os
import platform
import statistics
import struct

import updates
from injections import KINDS, Made


@dataclasses.dataclass
class Row:
    """The results of one kind of fault under one tool, or of all kinds."""
    made: int = 0
    overlapping: int = 0  # commands
    lost: int = 0  # updates
    nexts: list = dataclasses.field(default_factory=list)  # seconds
    ended: int = 0  # commands that ended without need
    notes: set = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Outcome:
    """The results of one tool."""
    word: str
    title: str
    has_token: bool
    notes: list
    stalls: int  # how often no further command ran after a fault, or the servers did not recover
    commands: int
    written: int
    refused: int
    lost_in_store: int
    rows: dict  # name of the fault: Row; None: before the first fault

    def total(self, of):
        return sum(of(row) for row in self.rows.values())

    def nexts(self, gentle):
        return [value for name, row in self.rows.items() if name and KINDS[name].gentle == gentle
                for value in row.nexts]


def evaluate(commands, made, final, final_in_store, **facts):
    """Returns an Outcome. `facts`: the fields that are known beforehand."""
    rows = {None: Row()}

    def row_at(moment):
        name = next((fault.name for fault in reversed(made) if fault.begin <= moment), None)
        return rows.setdefault(name, Row())

    by_number = {one.number: one for one in commands}
    for fault in made:
        row = rows.setdefault(fault.name, Row())
        row.made += 1
        if fault.note:
            row.notes.add(fault.note)
        victim = by_number[fault.victim]
        gentle = KINDS[fault.name].gentle
        # If the fault does not harm the holder, its command has to end first.
        moment = max(fault.begin, victim.last) if gentle and victim.ended else fault.begin
        following = updates.next_after(commands, moment, victim.number)
        if following is not None:
            row.nexts.append(following.begin - moment)
        row.ended += gentle and victim.ended is None
    for _, command in updates.overlaps(commands):
        row_at(command.begin).overlapping += 1
    for command in updates.lost_updates(commands, final):
        row_at(command.writing).lost += 1
    return Outcome(rows=rows, commands=len(commands),
                   written=sum(one.wrote is not None for one in commands),
                   refused=len(updates.refused(commands)),
                   lost_in_store=len(updates.lost_in_store(commands, final_in_store)), **facts)


def read(directory):
    """The Outcome of the tool that has left its records there."""
    with open(f"{directory}/faults.json") as file:
        facts = json.load(file)
    with open(f"{directory}/records", "rb") as file:
        commands = updates.parse(file.read())
    with open(f"{directory}/data", "rb") as file:
        (final,) = struct.unpack("=q", file.read())
    with open(f"{directory}/store", "rb") as file:
        _, final_in_store = struct.unpack("=2q", file.read())
    made = [Made(**fault) for fault in facts["made"]]
    return evaluate(commands, made, final, final_in_store, word=facts["tool"], title=facts["title"],
                    has_token=facts["token"], notes=facts["notes"], stalls=facts.get("stalls", 0))


def machine():
    return f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]} {platform.machine()}"


# --- tables ---------------------------------------------------------------------------------------


def _span(values):
    return f"{statistics.median(values):.2f} / {max(values):.2f} s" if values else "–"


def _lines(rows, text):
    """A Markdown table or, with `text`, columns aligned for a terminal. The first row is the
    heading."""
    if not text:
        head, *rest = ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([head, "| --- |" + " ---: |" * (len(rows[0]) - 1), *rest])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join([row[0].ljust(widths[0]),
                                *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows)


def totals(outcomes, text=False):
    rows = [["", *(_heading(one) if text else one.title for one in outcomes)]]

    def add(title, cell):
        rows.append([title, *map(cell, outcomes)])
    add("faults made", lambda one: str(one.total(lambda row: row.made)))
    add("commands", lambda one: str(one.commands))
    add("updates written to the file", lambda one: str(one.written))
    add("**overlapping commands**".strip("*" if text else ""),
        lambda one: str(one.total(lambda row: row.overlapping)))
    add("**lost updates**".strip("*" if text else ""), lambda one: str(one.total(lambda row: row.lost)))
    add("refused by the fenced store", lambda one: str(one.refused) if one.has_token else "no token")
    add("lost in the fenced store", lambda one: str(one.lost_in_store) if one.has_token else "no token")
    add("next command after the holder was struck, median / longest", lambda one: _span(one.nexts(False)))
    add("next command while a server was struck, median / longest", lambda one: _span(one.nexts(True)))
    add("commands ended although a majority served",
        lambda one: f"{one.total(lambda row: row.ended)} of "
                    f"{sum(row.made for name, row in one.rows.items() if name and KINDS[name].gentle)}")
    return _lines(rows, text)


def by_fault(outcomes, text=False):
    """Overlapping commands, lost updates, and seconds until the next command ran."""
    rows = [["", *(_heading(one) if text else one.title for one in outcomes)]]
    for name, kind in KINDS.items():
        if not any(name in one.rows for one in outcomes):
            continue
        rows.append([kind.title, *(_cell(one, name) for one in outcomes)])
    if any(one.rows[None].overlapping or one.rows[None].lost for one in outcomes):
        rows.append(["no fault yet", *(f"{one.rows[None].overlapping}, {one.rows[None].lost}"
                                       for one in outcomes)])
    return _lines(rows, text)


def _cell(one, name):
    row = one.rows.get(name)
    if row is None or not row.made:
        return "–"
    longest = f"{max(row.nexts):.1f} s" if row.nexts else "none"
    return f"{row.overlapping}, {row.lost}, {longest}"


# --- the picture ----------------------------------------------------------------------------------

_SAFE, BROKEN, _NONE = "#d5ecdf", "#f4c7c3", "#f0f0f0"
_LEFT, _COLUMN, _LINE, _TOP = 264, 92, 24, 92


def picture(outcomes, seed):
    """A column for each tool, a line for each fault: how many commands overlapped, and how many
    updates were lost."""
    names = [name for name in KINDS if any(name in one.rows for one in outcomes)]
    width = _LEFT + _COLUMN * len(outcomes) + 12
    height = _TOP + _LINE * (len(names) + 1) + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
           ' font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           '<text x="12" y="22" font-size="15">Commands that overlapped under one lock / updates that were'
           ' lost</text>',
           '<text x="12" y="40" fill="#555555">Eight jobs read a file, change it and write it back, while'
           f' things fail. Seed {seed}.</text>']
    for column, one in enumerate(outcomes):
        x = _LEFT + _COLUMN * (column + 0.5)
        for line, words in enumerate(_HEADS.get(one.word, [one.word])):
            weight = ' font-weight="bold"' if one.word == "zklock" else ""
            out.append(f'<text x="{x:.0f}" y="{64 + 13 * line}" text-anchor="middle"{weight}>'
                       f'{words}</text>')
    for line, name in enumerate([*names, None]):
        y = _TOP + _LINE * line + (8 if name is None else 0)
        title = KINDS[name].title if name else "all"
        weight = "" if name else ' font-weight="bold"'
        out.append(f'<text x="{_LEFT - 10}" y="{y + 16}" text-anchor="end"{weight}>{title}</text>')
        for column, one in enumerate(outcomes):
            rows = ([one.rows[name]] if name in one.rows else []) if name else list(one.rows.values())
            made = sum(row.made for row in rows)
            overlapping, lost = sum(row.overlapping for row in rows), sum(row.lost for row in rows)
            colour = _NONE if not made else BROKEN if overlapping or lost else _SAFE
            x = _LEFT + _COLUMN * column
            out.append(f'<rect x="{x + 1}" y="{y + 1}" width="{_COLUMN - 2}" height="{_LINE - 2}" rx="3"'
                       f' fill="{colour}"/><text x="{x + _COLUMN // 2}" y="{y + 16}"'
                       f' text-anchor="middle"{weight}>'
                       f'{f"{overlapping} / {lost}" if made else "–"}</text>')
    watchdog = " sanlock requires its watchdog." if any(one.word == "sanlock" for one in outcomes) else ""
    out.append(f'<text x="12" y="{height - 12}" fill="#555555">–: the fault does not exist for the tool,'
               f' or cannot be made.{watchdog}</text>')
    return "\n".join([*out, "</svg>\n"])


_HEADS = {"etcdctl": ["etcdctl lock"], "curator": ["Curator"],
          "sanlock": ["sanlock, no", "watchdog"], "flock": ["flock(1),", "local file"]}


def _heading(one):
    return " ".join(_HEADS.get(one.word, [one.word]))


def _put_into_page(text, svg):
    """Writes the text into README.md in this file's directory, and the picture next to it."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(f"{here}/README.md") as file:
        before, rest = file.read().split("<!-- run: begin -->\n")
    with open(f"{here}/README.md", "w") as file:
        file.write(f"{before}<!-- run: begin -->\n{text}<!-- run: end -->"
                   f"{rest.split('<!-- run: end -->')[1]}")
    with open(f"{here}/lost-updates.svg", "w") as file:
        file.write(svg)


def write(directory, out, into_page=False):
    """Prints the tables of the run kept in `directory`, and writes compare.md and compare.svg. Returns the
    exit status: 1 if zklock broke a promise."""
    with open(f"{directory}/run.json") as file:
        run = json.load(file)
    outcomes = [read(f"{directory}/{word}") for word in run["tools"]]
    notes = [f"{_heading(one)}: {note}" for one in outcomes for note in one.notes]
    notes += [f"{_heading(one)}: {KINDS[name].title}: {note}" for one in outcomes
              for name, row in one.rows.items() for note in sorted(row.notes)]
    head = (f"{run['machine']}, all servers on it; session timeouts of {run['timeout']} s;"
            f" seed {run['seed']}")
    print(f"\n{head}\n\n{totals(outcomes, text=True)}\n\n"
          f"overlapping commands, lost updates, longest time until the next command ran\n\n"
          f"{by_fault(outcomes, text=True)}\n\n" + "\n".join(f"note: {note}" for note in notes))
    text = (f"`{run['command']}`: {head}.\n\n{totals(outcomes)}\n\n"
            "By fault: overlapping commands, lost updates, longest time until the next command ran.\n\n"
            f"{by_fault(outcomes)}\n" + "".join(f"\n- {note}" for note in notes) + "\n" * bool(notes))
    svg = picture(outcomes, run["seed"])
    os.makedirs(out, exist_ok=True)
    for name, content in (("compare.md", text), ("compare.svg", svg)):
        with open(f"{out}/{name}", "w") as file:
            file.write(content)
    if into_page:
        _put_into_page(text, svg)
    print(f"compare: wrote {out}/compare.md and {out}/compare.svg")
    broken = [one for one in outcomes if one.word == "zklock" and (one.stalls or any(
        row.overlapping or row.lost for name, row in one.rows.items() if name != "freeze_host"))]
    if broken:
        print("compare: zklock broke its promise")
    return 1 if broken else 0
