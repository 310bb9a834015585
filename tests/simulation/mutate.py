#!/usr/bin/env python3
"""Breaks src/ on purpose, in one small way after another, and determines what finds it.

    tests/simulation/mutate.py [--build DIRECTORY] [--seconds N] [--no-units] [NAME...]
    tests/simulation/mutate.py --check      only check that each mutation can be made

Each mutation of the table `mutations` is compiled outside of the source tree, and linked in place of
the original into `simulate` and `unit_tests`, which must already be built. Prints a row for
each: the seconds of CPU time until the simulation, starting from seed 1, or the unit tests find it,
and what was broken. Nothing in the build directory changes.
"""

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The unit tests of the folders that are mutated.
UNITS = ("lock", "protocol", "zookeeper")
TIMED_OUT = -14  # returned by run(); like death by SIGALRM, which no program here receives


def read_table():
    """Yields (name, profile, [(file, sources, old, new)])."""
    for block in (ROOT / "tests/simulation/mutations").read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("##")]
        if not lines:
            continue
        name, profile = (part.strip() for part in lines[0].removeprefix("# ").split("|"))
        changes, file, sources = [], None, None
        for line in lines[1:]:
            if line[0] not in "-+":
                file, _, others = line.partition(":")
                sources = others.split() or ["src/" + file]
            elif line[0] == "-" and (not changes or changes[-1][3] or changes[-1][0] != file):
                changes.append((file, sources, [line[2:]], []))
            else:
                changes[-1][2 if line[0] == "-" else 3].append(line[2:])
        yield name, profile, [(f, s, "\n".join(old), "\n".join(new)) for f, s, old, new in changes]


def commands(build, target):
    """Returns the compiler's command for each source of a program, and the linker's."""
    text = subprocess.run(["ninja", "-C", build, "-t", "commands", target], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    compile_commands, link = {}, None
    for line in text.splitlines():
        words = shlex.split(line)
        if " -c " in line:
            compile_commands[words[words.index("-c") + 1]] = words
        elif f" -o {target} " in line:
            link = shlex.split(line.split("&&")[1])
    return compile_commands, link


def mutated_texts(name, changes):
    """Returns the mutated files of src/, by their paths. Ends the program if the table does not fit them."""
    texts = {}
    for file, _, old, new in changes:
        text = texts.get(file) or (ROOT / "src" / file).read_text()
        if text.count(old) != 1:
            sys.exit(f"mutate: {name}: {text.count(old)} times in src/{file}: {old}")
        texts[file] = text.replace(old, new)
    return texts


def mutate(name, changes, build, programs, directory):
    """Compiles the mutated sources; returns the new objects, keyed by the objects they replace."""
    texts = mutated_texts(name, changes)
    sources = {source for _, also, _, _ in changes for source in also}
    for file, text in texts.items():
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).write_text(text)
    objects = {}
    for source in sorted(sources):
        words = next((c[str(ROOT / source)] for c, _ in programs.values() if str(ROOT / source) in c),
                     None)
        if words is None:
            sys.exit(f"mutate: {build} has no command for {source}: build it without ZKLOCK_UNITY")
        changed = directory / source.removeprefix("src/")
        original = words[words.index("-o") + 1]
        objects[original] = str(directory / f"{len(objects)}.o")
        text = changed if changed.exists() else ROOT / source
        compiler = words[next(i for i, w in enumerate(words) if w[0] == "-") - 1]
        words = [compiler, "-w", "-O0", f"-I{directory}", *(w for w in words if re.match("-([DIUm]|fcf|std)", w) and "FORTIFY" not in w),
                 "-o", objects[original], "-c", str(text)]
        subprocess.run(words, cwd=build, check=True)
    return objects


def link(command, objects, program, build):
    words = [objects.get(word, word) for word in command]
    words[words.index("-o") + 1] = str(program)
    library = words.index("libzklock_core.a")
    # Before the library's own objects; the objects of another program are not used.
    words[library:library] = [new for old, new in objects.items() if "/zklock_core.dir/" in old]
    subprocess.run(words, cwd=build, check=True)


def tests_environment(build):
    """Returns the environment that CMake gives to the unit tests."""
    text = (build / "unit_properties.txt").read_text()
    found = re.search(r"ENVIRONMENT \[==\[(.*?)\]==\]", text, re.DOTALL)
    return dict(variable.split("=", maxsplit=1) for variable in found[1].split(";"))


def run(words, seconds, environment=None):
    """Runs `words`; returns the seconds of CPU time, the exit status and the output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            timeout=20 * seconds, errors="replace", env=os.environ | (environment or {}),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1)))
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        status, output = TIMED_OUT, ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, status, output


def simulate(program, profile, seconds):
    spent, status, output = run([program, "--profile", profile, "--seeds", "1000000"], seconds)
    broken = re.search(r"^seed (\d+): (?:after [\d.]+ s: )?(.*)", output, re.MULTILINE)
    if broken:
        return f"{spent:.1f} s", f"{broken[2][:100]} ({profile} {broken[1]})"
    if status == TIMED_OUT:
        return "no result", "this machine is too busy"
    if status < 0 and status not in (-24, -9):
        return f"{spent:.1f} s", f"signal {-status}"
    return "-", ""


def units(program, environment, seconds):
    files = [path.stem for one in UNITS for path in sorted((ROOT / "tests/unit" / one).rglob("*.cc"))]
    spent, status, output = run([program, "-#", "-a", ",".join(f"[#{one}]" for one in files)],
                                seconds, environment)
    if status == 0:
        return "-"
    if status in (TIMED_OUT, -24):
        return "hangs"
    case = re.search(r"^-{70,}\n(.+)\n", output, re.MULTILINE)
    return f"{spent:.1f} s" + (f", {case[1]}" if case else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build/release", type=Path)
    parser.add_argument("--seconds", default=60, type=int, help="time limit of the simulation (60)")
    parser.add_argument("--no-units", action="store_true")
    parser.add_argument("--profile", help="simulate this profile instead of the table's")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.check:
        for name, _, changes in read_table():
            mutated_texts(name, changes)
        return
    build = arguments.build.resolve()
    targets = ["simulate"] if arguments.no_units else ["simulate", "unit_tests"]
    programs = {target: commands(build, target) for target in targets}
    environment = {} if arguments.no_units else tests_environment(build)
    if not arguments.no_units and (found := units(build / "unit_tests", environment, 60)) != "-":
        sys.exit(f"mutate: the unit tests fail without a mutation, too: {found}")
    print("| mutation | simulation | unit tests | what was broken |\n| --- | --- | --- | --- |")
    for name, profile, changes in read_table():
        if arguments.names and name not in arguments.names:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            directory = Path(temporary)
            objects = mutate(name, changes, build, programs, directory)
            for target, (_, command) in programs.items():
                link(command, objects, directory / target, build)
            found, broken = simulate(directory / "simulate", arguments.profile or profile,
                                     arguments.seconds)
            by_units = "" if arguments.no_units else units(directory / "unit_tests",
                                                                 environment, 60)
        print(f"| {name} | {found} | {by_units} | {broken} |", flush=True)


if __name__ == "__main__":
    main()
