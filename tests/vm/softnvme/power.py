# SPDX-License-Identifier: LGPL-2.1-or-later
"""Power states as a drive reports them, and the walk through the APST table that a drive does on its own.

A power state is described with the keys of a drive file (tests/drives). What the drive really takes to wake may differ
from what it advertises: `real_entry_latency_us`, `real_exit_latency_us`, or a factor for all states.

The walk is computed when somebody looks, never by a timer. Admin commands do not end an idle period, as the
specification has it; the first I/O command waits for what is left of the entry and then for the exit.
"""
import collections
import struct
import time

from .protocol import IO_COMMANDS

TABLE_BYTES = 256


def power_field(watts):
    """A power in the smaller unit that holds it exactly: (value, True if the unit is 0.0001 W, False if 0.01 W)."""
    tenths_of_mw = round(watts * 10000)
    if tenths_of_mw % 100 and tenths_of_mw <= 0xffff:
        return tenths_of_mw, True
    return min(round(tenths_of_mw / 100), 0xffff), False


def scaled_power(watts):
    """The same for idle and active power, whose scale 0 says *not reported*: (value, scale)."""
    if watts is None:
        return 0, 0
    value, fine = power_field(watts)
    return value, 1 if fine else 2


class PowerState:
    def __init__(self, facts, factor):
        self.max_power_w = facts.get("max_power_w") or 0
        self.operational = facts.get("operational", True)
        self.entry_us = facts.get("entry_latency_us") or 0
        self.exit_us = facts.get("exit_latency_us") or 0
        self.idle_power_w = facts.get("idle_power_w")
        self.active_power_w = facts.get("active_power_w")
        self.real_entry_us = facts.get("real_entry_latency_us", self.entry_us * factor)
        self.real_exit_us = facts.get("real_exit_latency_us", self.exit_us * factor)

    def descriptor(self):
        """The 32 bytes of Identify Controller."""
        power, fine = power_field(self.max_power_w)
        idle, idle_scale = scaled_power(self.idle_power_w)
        active, active_scale = scaled_power(self.active_power_w)
        flags = (1 if fine else 0) | (0 if self.operational else 2)
        return struct.pack("<HBBII4xHBxHB9x", power, 0, flags, self.entry_us, self.exit_us,
                           idle, idle_scale << 6, active, active_scale << 6)


def entry_of(table, state):
    """Target state and idle time in milliseconds."""
    raw = struct.unpack_from("<Q", table, state * 8)[0]
    return (raw >> 3) & 0x1f, (raw >> 8) & 0xffffff


def entries_of(table):
    """The entries that lead somewhere, in the shape of a drive file."""
    found = []
    for state in range(TABLE_BYTES // 8):
        raw = struct.unpack_from("<Q", table, state * 8)[0]
        if raw:
            target, idle_ms = entry_of(table, state)
            found.append({"state": state, "target_state": target, "idle_ms": idle_ms, "raw": "0x%016x" % raw})
    return found


class Sleep:
    """Where in its power states one controller is."""

    def __init__(self, states, rng, idle_scale=1.0, wake_jitter=0.01, clock=time.monotonic):
        self.states, self.rng, self.idle_scale, self.wake_jitter, self.clock = states, rng, idle_scale, wake_jitter, clock
        self.residency = [0.0] * len(states)
        self.wakes = collections.Counter()
        self.wake_log = collections.deque(maxlen=1000)
        self.reset()

    def reset(self):
        """Controller reset: no table, awake."""
        self.enabled, self.table = False, bytes(TABLE_BYTES)
        self.state = self.operational_state = 0
        self.accounted = self.clock()       # residency is complete up to here
        self.since = self.accounted         # idle since, or in this state since (its entry latency included)
        self.outstanding = 0
        self.awake_at = 0.0

    def inherit_history(self, other):
        self.residency, self.wakes, self.wake_log = other.residency, other.wakes, other.wake_log
        self.residency += [0.0] * (len(self.states) - len(self.residency))     # new firmware may have more states

    def _account(self, until):
        if until > self.accounted:
            self.residency[self.state] += until - self.accounted
            self.accounted = until

    def advance(self, t):
        """Falls asleep as far as the table says for an idle period that has lasted until t."""
        while not self.outstanding and self.enabled:
            target, idle_ms = entry_of(self.table, self.state)
            if not idle_ms or target >= len(self.states):
                break
            due = self.since + idle_ms / 1000 * self.idle_scale
            if due > t:
                break
            self._account(due)
            self.state = target
            self.since = due + self.states[target].real_entry_us / 1e6
        self._account(t)

    def io_start(self, t, opcode):
        """An I/O command arrives: the moment from which it can be executed."""
        self.advance(t)
        state = self.states[self.state]
        if not state.operational:
            jitter = 1 + self.wake_jitter * (2 * self.rng.random() - 1)
            self.awake_at = max(t, self.since) + state.real_exit_us * jitter / 1e6
            self.wakes[self.state] += 1
            self.wake_log.append({"t": round(t, 6), "state": self.state, "us": int((self.awake_at - t) * 1e6),
                                  "op": IO_COMMANDS.get(opcode, opcode)})
            self.state = self.operational_state
            self.since = self.awake_at
        self.outstanding += 1
        return max(t, self.awake_at)

    def io_end(self, t):
        self._account(t)
        self.outstanding -= 1
        if not self.outstanding:
            self.since = max(t, self.awake_at)

    def program(self, enabled, table):
        """Set Features 0Ch."""
        self.advance(self.clock())
        self.enabled, self.table = enabled, table.ljust(TABLE_BYTES, b"\0")[:TABLE_BYTES]

    def select(self, state):
        """Set Features 02h: the host chooses a state."""
        t = self.clock()
        self.advance(t)
        self.state = state
        if self.states[state].operational:
            self.operational_state = state
        self.since = t + self.states[state].real_entry_us / 1e6

    def current(self):
        self.advance(self.clock())
        return self.state

    def as_json(self):
        return {"state": self.current(), "apste": int(self.enabled), "entries": entries_of(self.table),
                "residency_s": [round(x, 3) for x in self.residency], "wakes": dict(self.wakes),
                "wake_log": list(self.wake_log)}
