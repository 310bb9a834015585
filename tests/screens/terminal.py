"""A shell on its own terminal, and the content of that terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

_SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[=>]|\x1b\][^\a]*\a")
_INCOMPLETE = re.compile(r"\x1b(\[[?0-9;]*|\][^\a]*)?$")
_PATIENCE = 60  # seconds to wait for something on a screen


class Screen:
    """Interprets the escape sequences that zklock and bash write, giving cells of (character,
    rendition). An unknown sequence is an error, so that no picture is wrong."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self._other = None  # the screen under the alternate one
        self._style = ""
        self._pending = ""
        self.half_drawn = False  # within a synchronised update
        self._clear()

    def _clear(self):
        self._cells = [self._blank() for _ in range(self.rows)]
        self._row = self._column = 0

    def _blank(self):
        return [(" ", "")] * self.columns

    def feed(self, text):
        text = self._pending + text
        cut = _INCOMPLETE.search(text)
        self._pending = cut.group() if cut else ""
        text = text[:cut.start()] if cut else text
        at = 0
        while at < len(text):
            sequence = _SEQUENCE.match(text, at)
            if sequence:
                if sequence[2]:
                    self._control(sequence[1], sequence[2])
                at = sequence.end()
            else:
                self._put(text[at])
                at += 1

    def _put(self, character):
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row += 1
            if self._row == self.rows:
                self._cells = self._cells[1:] + [self._blank()]
                self._row -= 1
        elif character == "\b":
            self._column = max(0, self._column - 1)
        elif character < " ":
            if character != "\a":
                raise ValueError(f"a terminal was sent {character!r}")
        else:
            if self._column == self.columns:
                self._column = 0
                self._put("\n")
            self._cells[self._row][self._column] = (character, self._style)
            self._column += 1

    def _control(self, parameters, command):
        number = int(parameters) if parameters.isdigit() else 0
        if command == "m":
            self._style = "" if parameters in ("", "0") else parameters
        elif command == "K" and number == 0:
            self._cells[self._row][self._column:] = self._blank()[self._column:]
        elif command == "J" and number == 0:
            self._control("", "K")
            for row in range(self._row + 1, self.rows):
                self._cells[row] = self._blank()
        elif command == "H" and not parameters:
            self._row = self._column = 0
        elif command == "h" and parameters == "?1049":
            self._other = self._cells, self._row, self._column
            self._clear()
        elif command == "l" and parameters == "?1049":
            self._cells, self._row, self._column = self._other
        elif command in "hl":
            if parameters == "?2026":
                self.half_drawn = command == "h"
        else:
            raise ValueError(f"a terminal was sent ESC [ {parameters} {command}")

    def lines(self):
        """Each line as runs of one rendition, without trailing spaces: [(text, style)]."""
        return self._runs(self._cells)

    def covered(self):
        """The screen under the alternate screen, up to the cursor."""
        return self._runs(self._other[0][:self._other[1]])

    @staticmethod
    def _runs(rows):
        result = []
        for cells in rows:
            runs = []
            for character, style in cells:
                if runs and runs[-1][1] == style:
                    runs[-1] = (runs[-1][0] + character, style)
                else:
                    runs.append((character, style))
            while runs and not runs[-1][0].strip():
                runs.pop()
            if runs:
                runs[-1] = (runs[-1][0].rstrip(), runs[-1][1])
            result.append(runs)
        return result

    def text(self):
        return "\n".join("".join(cell[0] for cell in cells).rstrip() for cells in self._cells)


class Terminal:
    """A terminal and a process on it, which ends with the terminal."""

    def __init__(self, argv, rows, columns, environment, directory):
        self.screen = Screen(rows, columns)
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            try:
                # The state a login shell would have.
                signal.pthread_sigmask(signal.SIG_SETMASK, [])
                for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_DFL)
                size = struct.pack("HHHH", rows, columns, 0, 0)
                fcntl.ioctl(1, termios.TIOCSWINSZ, size)
                os.chdir(directory)
                os.execvpe(argv[0], argv, environment)
            except OSError as error:
                os.write(2, f"{argv[0]}: {error}\n".encode())
            os._exit(127)

    def type(self, text):
        os.write(self._fd, text.encode())

    def read(self):
        """Reads the available output. Returns False at the end."""
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # EIO: no process has it open
            return False
        self.screen.feed(data.decode(errors="replace"))
        return bool(data)

    def fileno(self):
        return self._fd

    def end(self):
        os.close(self._fd)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def wait_for(terminals, wanted):
    """Waits until each terminal shows its pattern in `wanted`: {terminal: pattern}."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        missing = [terminal for terminal, pattern in wanted.items()
                   if terminal.screen.half_drawn
                   or not re.search(pattern, terminal.screen.text(), re.MULTILINE)]
        if not missing:
            return
        left = deadline - time.monotonic()
        readable = select.select(terminals, [], [], max(0, left))[0]
        if not readable:
            screens = "\n---\n".join(terminal.screen.text() for terminal in missing)
            raise TimeoutError(f"not seen: {[wanted[one] for one in missing]}\n{screens}")
        for terminal in readable:
            if not terminal.read():
                raise EOFError(f"a shell ended:\n{terminal.screen.text()}")
