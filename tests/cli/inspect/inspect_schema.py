#!/usr/bin/python3
"""Checks the output of `zklock inspect --json` against the manual page.

    inspect_schema.py MANUAL [--lines | --history | --servers-report] < OUTPUT

Every object must have exactly the documented fields, in that order, each of its documented type and,
where the values are listed, one of them. Prints all deviations; exits with 1 if there are any.
"""

import json
import re
import sys
from datetime import datetime

FIELD = re.compile(r"^\.It Li (\w+) Pq ([\w ]+?)(?:: (.*))?$")
TYPES = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}
MOMENT = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
wrong = []


def fields_of(manual, heading):
    """Returns name, types and values of each field, in the manual's order."""
    section = manual.split(f"\n.Ss The object of a {heading}\n")[1]
    section = re.split(r"\n\.S[sh] ", section)[0]
    fields = []
    for line in section.splitlines():
        match = FIELD.match(line)
        if match:
            name, types, values = match.groups()
            fields.append((name, types.split(" or "), values.split(", ") if values else None))
    if not fields:
        sys.exit(f"the manual does not describe the object of a {heading}")
    return fields


def check_object(value, fields, where):
    if list(value) != [name for name, _, _ in fields]:
        wrong.append(f"{where} has the fields {list(value)}")
        return
    for name, types, values in fields:
        item = value[name]
        if not any(TYPES[kind](item) for kind in types):
            wrong.append(f"{where}.{name} is {item!r}, not {' or '.join(types)}")
        elif values and item is not None and item not in values:
            wrong.append(f"{where}.{name} is {item!r}, not one of {values}")
    for name in ("since", "ended", "until", "began"):
        if isinstance(value.get(name), str):
            if not MOMENT.match(value[name]):
                wrong.append(f"{where}.{name} is {value[name]!r}")
            datetime.strptime(value[name], "%Y-%m-%dT%H:%M:%S.%fZ")


def check_lock(lock, schema, where):
    check_object(lock, schema["lock"], where)
    if lock["lastRun"] is not None:
        check_object(lock["lastRun"], schema["last run"], where + ".lastRun")
    if lock["lastStart"] is not None:
        check_object(lock["lastStart"], schema["last start"], where + ".lastStart")
    names = [contender["name"] for contender in lock["contenders"]]
    for place, contender in enumerate(lock["contenders"], 1):
        at = f"{where}.contenders[{place}]"
        check_object(contender, schema["contender"], at)
        if contender["reservation"] is not None:
            check_object(contender["reservation"], schema["reservation"], at + ".reservation")
        if contender["reserve"] is not None:
            check_object(contender["reserve"], schema["wanted reservation"], at + ".reserve")
        if (contender["state"] == "reserved") != (contender["reservation"] is not None):
            wrong.append(f"{at} is {contender['state']}")
        if contender["position"] != place:
            wrong.append(f"{at}.position is {contender['position']}")
        may_be_next = lock["kind"] == "semaphore" and lock["free"] != 0
        is_next = contender["state"] == "waiting" and contender["waitsFor"] is None and may_be_next
        waits = contender["waitsFor"] in names[: place - 1] or is_next
        if (contender["state"] == "waiting") != waits:
            wrong.append(f"{at} waits for {contender['waitsFor']}")
    holders = [contender for contender in lock["contenders"] if contender["state"] != "waiting"]
    states = {contender["state"] for contender in holders}
    for state in ("held", "reserved"):
        if lock[state] != (state in states):
            wrong.append(f"{where}.{state} is {lock[state]}")
    if lock["kind"] == "semaphore":
        used = sum(holder["take"] for holder in holders)
        free = None if lock["permits"] is None else max(lock["permits"] - used, 0)
    else:
        free = used = None
        if lock["permits"] is not None or bool(holders) != bool(names):
            wrong.append(f"{where} is no semaphore but has {lock['permits']} permits")
    if (lock["used"], lock["free"]) != (used, free):
        wrong.append(f"{where} has {lock['used']} permits used and {lock['free']} free")


def check_report(report, manual):
    def check(value, heading, where):
        if value is not None:
            check_object(value, fields_of(manual, heading), where)

    check(report, "servers report", "report")
    for index, server in enumerate(report["servers"]):
        where = f"servers[{index}]"
        check(server, "server", where)
        check(server["connect"], "measured time", where + ".connect")
        check(server["commit"], "measured time", where + ".commit")
        check(server["clock"], "clock", where + ".clock")
        if server["reached"] != (server["reason"] is None):
            wrong.append(f"{where} is reached: {server['reached']}, {server['reason']}")
    addresses = [server["address"] for server in report["servers"]]
    for index, finding in enumerate(report["findings"]):
        check(finding, "finding", f"findings[{index}]")
        if not set(finding["servers"]) <= set(addresses):
            wrong.append(f"findings[{index}] is about {finding['servers']}")
    check(report["withoutServers"], "time without servers", "withoutServers")
    fixes = [finding["fix"] for finding in report["findings"]]
    if fixes != sorted(fixes, reverse=True):
        wrong.append(f"the findings are not in order: {fixes}")


def check_history(history, schema, where):
    check_object(history, schema["history"], where)
    if history["lastSuccess"] is not None:
        check_object(history["lastSuccess"], schema["last success"], where + ".lastSuccess")
    for index, run in enumerate(history["runs"]):
        check_object(run, schema["kept run"], f"{where}.runs[{index}]")


def main(arguments):
    with open(arguments[1], encoding="utf-8") as file:
        manual = file.read()
    headings = ("lock", "last run", "last start", "contender", "reservation", "wanted reservation", "history",
                "last success", "kept run")
    schema = {heading: fields_of(manual, heading) for heading in headings}
    text = sys.stdin.buffer.read().decode("ascii")
    if "--servers-report" in arguments:
        check_report(json.loads(text), manual)
        print("\n".join(wrong) if wrong else "1 report")
        return 1 if wrong else 0
    if "--lines" in arguments:
        locks = [json.loads(line) for line in text.splitlines()]
    else:
        locks = json.loads(text)
    for index, lock in enumerate(locks):
        check = check_history if "--history" in arguments else check_lock
        check(lock, schema, f"[{index}]")
    print("\n".join(wrong) if wrong else f"{len(locks)} locks")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
