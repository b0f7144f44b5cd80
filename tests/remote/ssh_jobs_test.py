"""Verbs on checkpoints behind ssh: where they run, what they ask, and how they stop. A script stands in
for ssh and runs the command on this machine.

    python3 ssh_jobs_test.py SHARDWRIGHT DATA
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.argv = sys.argv[:3]
import program_test as base  # noqa: E402

SERVER = "/usr/lib/openssh/sftp-server"

# A shardwright that runs until a signal ends it, and says which.
ENDLESS = """#!/usr/bin/python3
import os, signal, sys, time
if sys.argv[1] == "--version":
    os.execv({program!r}, [{program!r}] + sys.argv[1:])
def end(number, frame):
    with open({folder!r} + "/ended", "w") as file:
        file.write(signal.Signals(number).name)
    sys.exit(130 if number == signal.SIGINT else 2)
for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(name, end)
open({folder!r} + "/began", "w").close()
time.sleep(60)
"""


def appears(path):
    for _ in range(300):
        if os.path.exists(path) and (path.endswith("began") or os.path.getsize(path)):
            return True
        time.sleep(0.1)
    return False


@unittest.skipUnless(os.path.exists(SERVER), "OpenSSH's server of SFTP is not installed")
class Jobs(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        self.model = os.path.join(self.top, "it's a model!")
        base.write_shards(self.model)
        os.mkdir(self.top + "/bin")
        self.host("sh")

    def script(self, name, text):
        with open(os.path.join(self.top, name), "w") as file:
            file.write(text)
        os.chmod(os.path.join(self.top, name), 0o755)

    def host(self, shell):
        """The other machine, with that login shell."""
        self.script("ssh", f"#!/bin/sh\nfor last; do :; done\ncase $last in sftp) exec {SERVER};; esac\n"
                           f'echo "$last" >> "{self.top}/calls"\n'
                           f'PATH="{self.top}/bin:/usr/bin:/bin" exec {shell} -c "$last"\n')
        self.env = {"SHARDWRIGHT_SSH": self.top + "/ssh"}

    def install(self):
        os.symlink(os.path.abspath(base.PROGRAM), self.top + "/bin/shardwright")

    def there(self, path):
        return "host:" + path

    def test_every_login_shell_runs_it(self):
        self.install()
        here = base.run("hash", self.model, code=0).stdout
        for shell in ("sh", "bash", "csh", "fish", "zsh"):
            if shutil.which(shell) is None:
                continue
            self.host(shell)
            done = base.run("hash", self.there(self.model), env=self.env)
            self.assertEqual((done.stdout, done.returncode), (here, 0), (shell, done.stderr))

    def test_what_travels_is_asked(self):
        model, far = self.model, self.there(self.model)
        for words in (["report", far, "--data"], ["plan", far, "--data"], ["diff", far, model, "--data"],
                      ["diff", model, far, "--data"], ["check", model, "--data", "--against", far],
                      ["check", model, far, "--data"], ["learn", model, far], ["hash", far]):
            done = base.run(*words, env=self.env)
            self.assertEqual(done.returncode, 3, (words, done.stderr))
            self.assertIn("801 kB would be transferred here", " ".join(done.stderr.split()), words)
            answered = base.run(*words, "--yes", env=self.env)
            self.assertIn(answered.returncode, (0, 1, 2), (words, answered.stderr))
            self.assertIn("Over the network", answered.stderr, words)
        both = base.run("diff", far, far, "--data", env=self.env, code=3)
        self.assertIn("1.60 MB would be transferred", " ".join(both.stderr.split()))
        for words in (["diff", model, far], ["check", model, "--against", far], ["report", far]):
            done = base.run(*words, env=self.env)
            self.assertNotIn("would be transferred", done.stderr, words)

    def test_what_is_written_here_says_what_travels(self):
        far = self.there(self.model)
        done = base.run("convert", far, "--to", "dcp", "--out", self.top + "/dcp", "--yes", env=self.env,
                        code=0)
        self.assertIn("801 kB are transferred here", " ".join(done.stderr.split()))

    def test_the_newest_step_is_found_before_bytes_are_counted(self):
        shutil.move(self.model, self.top + "/run/step_3")
        done = base.run("hash", self.there(self.top + "/run/@latest"), env=self.env, code=3)
        self.assertIn("801 kB would be transferred", " ".join(done.stderr.split()))

    def test_a_plan_of_every_byte_is_made_there(self):
        self.install()
        done = base.run("plan", self.there(self.model), "--data", env=self.env)
        self.assertEqual(done.returncode, base.run("plan", self.model, "--data").returncode)
        self.assertNotIn("Over the network", done.stderr)

    def test_an_answer_from_there_names_the_path_from_here(self):
        self.install()
        far = "ssh://me@host:2222" + self.model
        self.assertEqual(base.answer("hash", far, env=self.env, code=0)["path"], far)

    def begin(self, *words):
        """The program with a job over there that never ends; in a process group of its own."""
        self.script("bin/shardwright", ENDLESS.format(program=os.path.abspath(base.PROGRAM), folder=self.top))
        process = subprocess.Popen([base.PROGRAM, *words, self.there(self.model)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, env={**os.environ, **self.env})
        self.assertTrue(appears(self.top + "/began"))
        return process

    def test_a_signal_ends_the_job_over_there(self):
        for number, to_group, name, code in ((signal.SIGINT, False, "SIGINT", 130),
                                             (signal.SIGINT, True, "SIGINT", 130),
                                             (signal.SIGTERM, False, "SIGTERM", 2)):
            process = self.begin("hash")
            (os.killpg if to_group else os.kill)(process.pid, number)
            self.assertTrue(appears(self.top + "/ended"))
            with open(self.top + "/ended") as file:
                self.assertEqual(file.read(), name)
            _, errors = process.communicate(timeout=30)
            self.assertEqual(process.returncode, code, errors)
            for file in ("began", "ended"):
                os.remove(f"{self.top}/{file}")

    def test_a_killed_program_ends_the_job_over_there(self):
        process = self.begin("hash")
        process.kill()
        self.assertTrue(appears(self.top + "/ended"))
        process.communicate(timeout=30)

    def test_a_signal_ends_the_wait_for_a_silent_host(self):
        self.script("ssh", "#!/bin/sh\ntouch " + self.top + "/began\nexec sleep 60\n")
        process = subprocess.Popen([base.PROGRAM, "hash", self.there(self.model)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **self.env})
        self.assertTrue(appears(self.top + "/began"))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
