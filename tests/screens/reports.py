"""Draws two of the stored screens, the last runs of a job and the servers' report. With --check the
status is 1 if the stored drawing differs."""

import pathlib
import re
import sys

import drawing

_SCREENS = pathlib.Path(__file__).resolve().parent
_PICTURE = _SCREENS / "reports.svg"


def lines_of(name):
    """A screen of 80 columns as drawing.draw() takes it."""
    lines = []
    for line in (_SCREENS / f"{name}.80.colour.txt").read_text().splitlines():
        # Text, style, text, style, ...
        parts = ["", *re.split(r"\x1b\[([0-9;]*)m", line)]
        lines.append([(text, style.removeprefix("0"))
                      for style, text in zip(parts[::2], parts[1::2]) if text])
    return lines


def main():
    titles = "zklock inspect --history /jobs/backup, and zklock inspect --servers-report"
    svg = drawing.draw([(titles, [lines_of("history"), lines_of("servers")])], 80, "Two reports")
    if "--check" not in sys.argv:
        _PICTURE.write_text(svg)
    elif svg != _PICTURE.read_text():
        sys.exit("reports: the screens are no longer what the picture shows; draw it again with"
                 " tests/screens/reports.py")


if __name__ == "__main__":
    main()
