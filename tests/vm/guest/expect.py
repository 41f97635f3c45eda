# SPDX-License-Identifier: LGPL-2.1-or-later
"""expect.py EXPRESSION…: succeeds if every Python expression is true; says what it found otherwise.

The expressions see:
    table(SLUG)           (APSTE, entries) as the drive holds them
    predicted(SLUG, T)    the same as the drive file expects it for a tolerance of T: 0, 5000, 25000, 100000 or "any"
    expected(SLUG, T)     that part of the drive file, with "deepest_state"
    programmed(SLUG)      every Set Features 0Ch that the drive has got, in order: {"apste", "entries", "status", …}
    count(SLUG, NAME)     how often a command came, e.g. "get_features_0ch"
    hot_plug(SLUG)        [(ms, command)]: the commands of a look and a write since its I/O queue was connected, the last
                          thing before `connected`
    wakes(SLUG)           every wake: {"state", "us", …}
    status()              /tmp/status.json; controller(SLUG), apst(SLUG), over_pcie(): parts of it
    text(FILE)            the content of a file
"""
import ast
import json
import os
import socket
import sys

NQN = "nqn.2026-11.org.nvmepolicyd.test:"


def ask(what):
    with socket.create_connection(("10.0.2.2", int(os.environ["SOFTNVME_HTTP"]))) as sock:
        sock.sendall(b"GET /%s HTTP/1.0\r\n\r\n" % what.encode())
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def drive(slug):
    return ask("state")["drives"][slug]["controller"]


def normal(apste, entries):
    """Entries that lead nowhere say nothing, and so does APSTE of a drive that got no command."""
    return int(apste), [(e["state"], int(str(e["raw"]), 0)) for e in entries if int(str(e["raw"]), 0)]


def table(slug):
    power = drive(slug)["power"]
    return normal(power["apste"], power["entries"])


def expected(slug, tolerance):
    """Quirks that hang on the PCI id do not apply to a drive that is reached over TCP."""
    facts = json.loads(text(f"/rig/drives/{slug}.json"))["expected"]
    return facts.get("tables_ignoring_quirks", facts["tables"])[str(tolerance)]


def predicted(slug, tolerance):
    found = expected(slug, tolerance)
    return normal(found["apste"], found["entries"])


def programmed(slug):
    return [e for e in ask("log") if e.get("op") == "set_features" and e.get("fid") == 0x0c and e["drive"] == slug]


def count(slug, name):
    return drive(slug)["counts"].get(name, 0)


def hot_plug(slug):
    """The driver's own commands are other ones, or came before."""
    names = {("identify", 1): "Identify Controller", ("get_features", 0x0c): "Get Features 0Ch",
             ("set_features", 0x0c): "Set Features 0Ch"}
    log = [e for e in ask("log") if e.get("drive") == slug]
    began = max(i for i, e in enumerate(log) if e.get("op") == "connect" and e["qid"] > 0)
    steps = [(e["t"], names.get((e.get("op"), e.get("cns", e.get("fid"))))) for e in log[began:]]
    return [((t - steps[0][0]) * 1000, command) for t, command in steps if command]


def wakes(slug):
    return drive(slug)["power"]["wake_log"]


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def status():
    return json.loads(text("/tmp/status.json"))


def controller(slug):
    return next(c for c in status()["controllers"] if c["subsystem_nqn"] == NQN + slug)


def over_pcie():
    return [c for c in status()["controllers"] if c["transport"] == "pcie"]


def apst(slug):
    return controller(slug)["apst"]


def explain(node):
    """Which part of an expression is false, and what its sides are."""
    source = ast.unparse(node)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return next(explain(part) for part in node.values if not value(part))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return f"{source}\n  left:  {value(node.left)!r}\n  right: {value(node.comparators[0])!r}"
    return source


def value(node):
    return eval(compile(ast.Expression(node), "expression", "eval"), globals())      # pylint: disable=eval-used


for expression in sys.argv[1:]:
    tree = ast.parse(expression.strip(), mode="eval").body
    if not value(tree):
        sys.exit("false: " + explain(tree))
