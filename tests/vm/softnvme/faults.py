# SPDX-License-Identifier: LGPL-2.1-or-later
"""Faults: rules that make a command fail, hang or drop the connection.

    {"op": "set_features", "fid": 12, "drive": "samsung-980-pro", "skip": 1, "count": 2, "status": 16390}

matches by `op` (a name of protocol.py's tables), `fid`, `cns`, `drive`; lets `skip` commands pass, then applies to `count`
(-1: for ever). It does `"status": N` (answer that instead), `"hang_s": S` (execute and answer it S seconds late, or at
`release`), or `"drop": true`.
"""


class Faults:
    def __init__(self):
        self.rules = []

    def add(self, rule):
        rule = {"count": -1, "skip": 0, **rule, "hits": 0}
        rule.setdefault("id", f"f{len(self.rules) + 1}")
        self.rules.append(rule)
        return rule["id"]

    def clear(self):
        self.rules.clear()

    def take(self, drive, op, **details):
        """The rule that applies to this command, or None; counts it."""
        for rule in self.rules:
            if rule["count"] == 0 or rule.get("op", op) != op:
                continue
            if any(k in rule and rule[k] != v for k, v in details.items()):
                continue
            if "drive" in rule and not drive.is_called(rule["drive"]):
                continue
            if rule["skip"] > 0:
                rule["skip"] -= 1
                continue
            rule["hits"] += 1
            if rule["count"] > 0:
                rule["count"] -= 1
            return rule
        return None
