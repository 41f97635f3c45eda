# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every command and option of --help is in the completions of each shell; and what bash offers."""
import os
import re
import shutil
import subprocess
import unittest

from bus import CTL, SOURCE

COMPLETIONS = SOURCE / "cli/completions"


def help_of(*words):
    return subprocess.run([CTL, *words, "--help"], check=True, capture_output=True, text=True).stdout


def commands_of(text):
    part = text.partition("Subcommands:\n")[2]
    return re.findall(r"^  ([a-z]+) ", part, re.M)


def everything():
    """(commands, options) of the whole program."""
    commands, options = set(), set()

    def collect(words):
        text = help_of(*words)
        options.update(re.findall(r"^  .*?--([a-z-]+)", text, re.M))
        for command in commands_of(text):
            commands.add(command)
            collect([*words, command])
    collect([])
    return commands, options


class EachShell(unittest.TestCase):
    def test_knows_every_command_and_option(self):
        commands, options = everything()
        self.assertGreater(len(commands), 15)
        self.assertIn("max-latency", options)
        for name in ("nvmepolicyctl.bash", "_nvmepolicyctl", "nvmepolicyctl.fish"):
            text = (COMPLETIONS / name).read_text()
            option = r"-l {}(?![\w-])" if name.endswith("fish") else r"--{}(?![\w-])"
            missing = [c for c in commands if not re.search(rf"(?<![\w-]){c}(?![\w-])", text)]
            missing += [o for o in options if not re.search(option.format(o), text)]
            self.assertEqual(missing, [], name)

    def test_can_be_read(self):
        for shell, name in (("bash", "nvmepolicyctl.bash"), ("zsh", "_nvmepolicyctl"), ("fish", "nvmepolicyctl.fish")):
            if shutil.which(shell):
                subprocess.run([shell, "-n", str(COMPLETIONS / name)], check=True)


class Bash(unittest.TestCase):
    def offered(self, *words):
        line = " ".join(f"'{w}'" for w in ("nvmepolicyctl", *words))
        script = f"""source '{COMPLETIONS}/nvmepolicyctl.bash'; nvmepolicyctl() {{ '{CTL}' "$@"; }}
            COMP_WORDS=({line}); COMP_CWORD={len(words)}; _nvmepolicyctl 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}" """
        environment = dict(os.environ, DBUS_SYSTEM_BUS_ADDRESS="unix:path=/no/such/socket")
        return subprocess.run(["bash", "-c", script], env=environment, check=True, capture_output=True, text=True).stdout.split()

    def test_offers_what_is_possible_there(self):
        self.assertEqual(self.offered("ho"), ["hold", "holds"])
        self.assertEqual(sorted(self.offered("profile", "")), ["--help", "get", "list", "set"])
        self.assertEqual(self.offered("profile", "set", "p"), ["performance", "power-saver"])
        self.assertEqual(self.offered("run", "--profile", "b"), ["balanced"])
        self.assertEqual(self.offered("hold", "--max"), ["--max-latency"])
        self.assertEqual(self.offered("config", "show", "--c"), ["--config"])

    def test_leaves_the_command_of_run_alone(self):
        self.assertNotIn("--max-latency", self.offered("run", "--max-latency", "5ms", "--", "ls", "--m"))


if __name__ == "__main__":
    unittest.main()
