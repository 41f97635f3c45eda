# SPDX-License-Identifier: LGPL-2.1-or-later
"""softnvme for the time of a run, on ports that no other run uses."""
import json
import os
import random
import subprocess
import sys

from . import HERE, RigError

HTTP_PORT = 4400        # scenario ports start above it
ENVIRONMENT = {**os.environ, "PYTHONPATH": HERE, "PYTHONDONTWRITEBYTECODE": "1"}


class Target:
    def __init__(self, scenario, directory):
        self.control = os.path.join(directory, "softnvme.sock")
        with open(scenario, encoding="utf-8") as file:
            drives = json.load(file)["subsystems"]
        for _ in range(20):
            base = random.randrange(2000, 25000)
            with open(os.path.join(directory, "softnvme.log"), "w", encoding="utf-8") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "softnvme", "serve", scenario, "--control", self.control,
                     "--http", str(base + HTTP_PORT), "--port-base", str(base)],
                    stdout=subprocess.PIPE, stderr=log, text=True, env=ENVIRONMENT)
            if "ready" in self.process.stdout.readline():
                break
            self.process.wait(timeout=5)
        else:
            raise RigError(f"softnvme did not start: {log.name}")
        self.environment = {
            "SOFTNVME_HTTP": str(base + HTTP_PORT),
            "SOFTNVME_DRIVES": " ".join(f"{d['nqn']},{d['port'] + base}" for d in drives if not d.get("late")),
            "SOFTNVME_LATE": " ".join(f"{d['nqn']},{d['port'] + base}" for d in drives if d.get("late")),
        }

    def save(self, directory):
        """state.json and log.json as they are at the end of a run."""
        for what in ("state", "log"):
            answer = subprocess.run([sys.executable, "-m", "softnvme", "ask", self.control, what], capture_output=True,
                                    text=True, timeout=20, check=False, env=ENVIRONMENT)
            with open(f"{directory}/{what}.json", "w", encoding="utf-8") as file:
                file.write(answer.stdout)

    def stop(self):
        stop(self.process)


def stop(process):
    if process and process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
