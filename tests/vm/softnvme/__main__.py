# SPDX-License-Identifier: LGPL-2.1-or-later
"""Serves a scenario, or talks to a softnvme that does.

    python3 -m softnvme serve SCENARIO.json [--control PATH] [--http PORT] [--port-base N]
    python3 -m softnvme ask PATH|PORT [state | log | log?n=20 | JSON command]
"""
import argparse
import json
import signal
import sys

from .control import request
from .server import Server


def main():
    parser = argparse.ArgumentParser(prog="softnvme", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    serve = modes.add_parser("serve")
    serve.add_argument("scenario")
    serve.add_argument("--control", help="UNIX socket of the control channel")
    serve.add_argument("--http", type=int, default=0, help="loopback port of the control channel")
    serve.add_argument("--port-base", type=int, default=0, help="added to every port of the scenario")
    ask = modes.add_parser("ask")
    ask.add_argument("where")
    ask.add_argument("what", nargs="?", default="state")
    arguments = parser.parse_args()

    if arguments.mode == "ask":
        json.dump(request(arguments.where, arguments.what), sys.stdout, indent=1)
        print()
        return
    with open(arguments.scenario, encoding="utf-8") as file:
        server = Server(json.load(file), port_base=arguments.port_base)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(server, "stop", True))
    server.run(arguments.control, arguments.http)


if __name__ == "__main__":
    main()
