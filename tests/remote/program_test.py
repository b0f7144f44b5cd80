"""The program on checkpoints of other machines: web_double.py as a web server and as a hub, and
sshd where it is installed. Standard library alone.

    python3 program_test.py SHARDWRIGHT DATA [SHARDWRIGHT-GUI]
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request

PROGRAM, DATA = sys.argv[1], sys.argv[2]
DESKTOP = sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] else None
HERE = os.path.dirname(os.path.abspath(__file__))
FSDP = os.path.join(DATA, "torch-2.6", "healthy_fsdp", "ckpt")


def write_shards(folder, shards=5, elements=40_000):
    """A sharded safetensors checkpoint as transformers writes it, of float32."""
    os.makedirs(folder)
    weight_map, total = {}, 0
    for i in range(shards):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        data = struct.pack(f"<{elements}f", *(i + j / elements for j in range(elements)))
        header = json.dumps({"__metadata__": {"format": "pt"},
                             f"layers.{i}.weight": {"dtype": "F32", "shape": [elements // 100, 100],
                                                    "data_offsets": [0, len(data)]}}).encode()
        header += b" " * (-len(header) % 8)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + data)
        weight_map[f"layers.{i}.weight"] = name
        total += len(data)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, file)


class Web:
    """web_double.py as long as the block runs."""

    def __init__(self, folder, *faults):
        self.words = [sys.executable, os.path.join(HERE, "web_double.py"), folder, *faults]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        return f"http://127.0.0.1:{self.port}"

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def run(*words, env=None, code=None):
    home = {"HOME": tempfile.gettempdir(), "SHARDWRIGHT_REMOTE_TIMEOUT": "2"}
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **home, **(env or {})})
    if code is not None:
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def answer(*words, env=None, code=None):
    return json.loads(run(*words, "--json", env=env, code=code).stdout)


class Remote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp()
        cls.model = os.path.join(cls.top, "model")
        write_shards(cls.model)
        shutil.copytree(FSDP, os.path.join(cls.top, "fsdp"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top)

    def same_as_local(self, remote, local, env=None, more=()):
        for verb in (["info"], ["check"], ["check", "--data"], ["hash"], ["stats"], ["ls"]):
            asks = more if verb[-1] in ("--data", "hash", "stats") else ()
            there = answer(verb[0], remote, *verb[1:], *asks, env=env)
            here = answer(verb[0], local, *verb[1:])
            self.assertGreater(there.pop("remote")["requests"], 0, verb)
            for key in ("path", "tool", "seconds", "device"):
                there.pop(key, None)
                here.pop(key, None)
            if verb == ["check"]:
                for key in ("depth", "deeper", "unjudged"):
                    there.pop(key, None)
                    here.pop(key, None)
            self.assertEqual(there, here, verb)

    def test_https_folder_with_an_index(self):
        with Web(self.top) as url:
            self.same_as_local(url + "/model", self.model)

    def test_check_asks_for_no_more_than_info(self):
        """Scales between large weights have no header of their own."""
        folder = os.path.join(self.top, "scales")
        os.makedirs(folder, exist_ok=True)
        header, end = {}, 0
        for i in range(40):
            for name, count in ((f"layers.{i}.weight", 32_768), (f"layers.{i}.weight_scale", 1)):
                header[name] = {"dtype": "F32", "shape": [count], "data_offsets": [end, end + 4 * count]}
                end += 4 * count
        text = json.dumps(header).encode()
        with open(os.path.join(folder, "model.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + struct.pack("<f", 0.5) * (end // 4))
        with Web(self.top) as url:
            where = f"{url}/scales/model.safetensors"
            info, check = (answer(verb, where)["remote"]["requests"] for verb in ("info", "check"))
            self.assertEqual(info, check)

    def test_https_dcp(self):
        with Web(self.top) as url:
            self.same_as_local(url + "/fsdp", os.path.join(self.top, "fsdp"))

    def test_https_single_file(self):
        name = "model-00001-of-00005.safetensors"
        with Web(self.top) as url:
            self.assertEqual(answer("info", f"{url}/model/{name}", code=0)["tensors"], 1)
        with Web(self.top, "missing-is-403") as url:
            self.assertEqual(answer("info", f"{url}/model/{name}", code=0)["tensors"], 1)

    def test_faults_that_pass_are_ridden_out(self):
        for fault in ("cut=3", "busy=4", "limited", "stall=3"):
            with Web(self.top, fault) as url:
                there = answer("hash", url + "/model", code=0)
            there.pop("remote")
            here = answer("hash", self.model)
            self.assertEqual(there["tensors"], here["tensors"], fault)

    def test_faults_that_stay_are_errors(self):
        for fault, code, words in (("denied", 4, "403"), ("failing", 4, "500"),
                                   ("no-ranges", 2, "range"), ("wrong-range", 2, "range"),
                                   ("long", 2, "more"), ("changing", 2, "changed"),
                                   ("wrong-total", 2, "changed"), ("circle", 4, "")):
            with Web(self.top, fault) as url:
                done = run("hash", url + "/model")
            self.assertIn(done.returncode, (2, 4), (fault, done.stdout, done.stderr))
            self.assertIn(words, (done.stdout + done.stderr).lower(), fault)

    def test_a_missing_shard_is_a_finding_and_a_silent_server_is_not(self):
        with tempfile.TemporaryDirectory() as top:
            shutil.copytree(self.model, top + "/model")
            os.remove(top + "/model/model-00003-of-00005.safetensors")
            with Web(top) as url:
                found = answer("check", url + "/model", code=1)
            self.assertTrue(any("model-00003" in str(one["subjects"]) + one["cause"]
                                for one in found["findings"]))
        self.assertEqual(run("check", "http://127.0.0.1:9/model").returncode, 4)

    def test_hub(self):
        with Web(self.model, "hub") as url:
            env = {"HF_ENDPOINT": url}
            self.same_as_local("hf://owner/repo", self.model, env=env)
            answer("info", "hf://owner/repo@0123456789abcdef0123456789abcdef01234567", env=env, code=0)
            self.assertEqual(run("info", "hf://owner/repo@nothing", env=env).returncode, 4)
        with Web(self.model, "hub", "token=right") as url:
            self.assertEqual(run("info", "hf://o/r", env={"HF_ENDPOINT": url}).returncode, 4)
            done = run("info", "hf://o/r", env={"HF_ENDPOINT": url, "HF_TOKEN": "wrong-secret"})
            self.assertNotIn("wrong-secret", done.stdout + done.stderr)
            self.assertEqual(done.returncode, 4)

    def test_hub_file_of_any_format(self):
        with tempfile.TemporaryDirectory() as top:
            os.makedirs(top + "/sub/step.1")
            shutil.copytree(self.model, top + "/sub/step.2")
            for name in ("small", "large"):
                shutil.copy(os.path.join(DATA, "gguf", "kinds", "ckpt", "kinds.gguf"), f"{top}/sub/{name}.gguf")
            with Web(top, "hub") as url:
                env = {"HF_ENDPOINT": url}
                for path in ("hf://o/r/sub/small.gguf", "hf://o/r/sub/step.2", "hf://o/r/sub/step.2/"):
                    there = answer("info", path, env=env, code=0)
                    here = answer("info", path.replace("hf://o/r", top), code=0)
                    self.assertEqual(there["tensors"], here["tensors"], path)
                for path in ("hf://o/r/sub/other.gguf", "hf://o/r/sub/other"):
                    self.assertEqual(run("info", path, env=env).returncode, 4, path)

    def test_hub_is_asked_once_per_file(self):
        files = len(os.listdir(self.model))
        for faults, most in (([], files), (["expiring=2"], 1_000)):
            with Web(self.model, "hub", "token=right", *faults) as url:
                env = {"HF_ENDPOINT": url, "HF_TOKEN": "right"}
                there = answer("hash", "hf://owner/repo", env=env, code=0)
                self.assertEqual(there["total"], answer("hash", self.model)["total"])
                with urllib.request.urlopen(url + "/counts", timeout=10) as counted:
                    counts = json.load(counted)
                blobs = sum(counts[name] for name in counts if name.startswith("/blobs/"))
                self.assertLessEqual(counts["resolve"], most)
                self.assertGreater(blobs, counts["resolve"])

    def test_diff_and_convert_come_from_there(self):
        with Web(self.top) as url, tempfile.TemporaryDirectory() as out:
            self.assertEqual(answer("diff", url + "/model", self.model, "--data", code=0)["verdict"],
                             "same")
            run("convert", url + "/model", "--to", "dcp", "--out", out + "/dcp", "--yes", code=0)
            self.assertEqual(answer("diff", out + "/dcp", self.model, "--data", code=0)["verdict"],
                             "same")
            self.assertNotEqual(run("repair", url + "/model", "--in-place", "--yes").returncode, 2)

    def test_secrets_are_in_no_message(self):
        with Web(self.top) as url:
            signed = url.replace("http://", "http://me:hunter2@") + "/model?sig=topsecret"
            for verb in ("info", "check", "ls"):
                done = run(verb, signed)
                self.assertEqual(done.returncode, 0, done.stderr)
                for secret in ("hunter2", "topsecret"):
                    self.assertNotIn(secret, done.stdout + done.stderr)
            missing = signed.replace("/model?", "/nothing?")
            model = self.model
            for words in (["info", missing], [missing, "x"], ["--json", signed], ["info", signed, signed],
                          ["info", model, "--" + signed], ["show", model, signed], ["ls", model, signed],
                          ["stats", model, signed], ["check", model, "--baseline", missing],
                          ["check", model, "--policy", missing], ["check", model, "--spec", missing],
                          ["check", model, "--against", missing], ["plan", model, "--plan", missing],
                          ["plan", model, "--fill", "from:" + missing], ["info", signed + "/@latest"],
                          ["report", model, "--out", signed], ["report", model, "--view", missing],
                          ["upload", model, signed], ["demo", signed],
                          ["convert", model, "--to", "dcp", "--out", signed, "--yes"],
                          ["convert", model, "--to", "hf", "--config", missing, "--map", missing],
                          ["reshard", model, "--mesh", "dp=2", "--placements", missing]):
                for json_too in ([], ["--json"]):
                    done = run(*words, *json_too)
                    for secret in ("hunter2", "topsecret"):
                        self.assertNotIn(secret, done.stdout + done.stderr, words)


@unittest.skipUnless(os.path.exists("/usr/sbin/sshd"), "sshd is not installed")
class Ssh(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp()
        cls.model = os.path.join(cls.top, "model")
        write_shards(cls.model)
        os.symlink("model", os.path.join(cls.top, "link"))
        for step in ("step_1", "step_20"):
            shutil.copytree(cls.model, os.path.join(cls.top, "run", step))
        key = lambda name: os.path.join(cls.top, name)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key(name)], check=True)
        with socket.socket() as probe, socket.socket() as second:
            probe.bind(("127.0.0.1", 0))
            second.bind(("127.0.0.1", 0))
            cls.port, with_program = probe.getsockname()[1], second.getsockname()[1]
        with open(key("sshd"), "w") as file:
            file.write(f"Port {cls.port}\nPort {with_program}\nListenAddress 127.0.0.1\nHostKey {key('host')}\n"
                       f"AuthorizedKeysFile {key('user.pub')}\nStrictModes no\nUsePAM no\n"
                       f"PidFile {key('pid')}\nSubsystem sftp internal-sftp\n"
                       f"Match LocalPort {with_program}\n  SetEnv PATH={key('bin')}:/usr/bin:/bin\n")
        with open(key("host.pub")) as file:
            known = file.read()
        with open(key("known"), "w") as file:
            for port in (cls.port, with_program):
                file.write(f"[127.0.0.1]:{port} {known}")
        os.mkdir(key("bin"))
        os.symlink(os.path.abspath(PROGRAM), key("bin") + "/shardwright")
        for name, hosts, port in (("config", key("known"), cls.port),
                                  ("strangers", "/dev/null", cls.port),
                                  ("installed", key("known"), with_program)):
            with open(key(name), "w") as file:
                file.write(f"Host *\n  IdentityFile {key('user')}\n  UserKnownHostsFile {hosts}\n"
                           f"  Port {port}\n  IdentitiesOnly yes\n")
        if os.getuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        cls.sshd = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", key("sshd")],
                                    stderr=subprocess.DEVNULL)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", cls.port)) == 0:
                    break
        cls.env = {"SHARDWRIGHT_SSH": "ssh -F " + key("config")}

    @classmethod
    def tearDownClass(cls):
        cls.sshd.terminate()
        cls.sshd.wait()
        shutil.rmtree(cls.top)

    def test_answers_are_those_of_a_local_disk(self):
        Remote.same_as_local(self, f"ssh://127.0.0.1:{self.port}{self.model}", self.model, self.env,
                             more=["--yes"])

    def test_forms_of_a_path(self):
        for path in (f"127.0.0.1:{self.model}", f"ssh://127.0.0.1{self.top}/link/",
                     f"127.0.0.1:{self.model}/model-00001-of-00005.safetensors",
                     f"127.0.0.1:{self.model}/model.safetensors.index.json"):
            done = run("info", path, env=self.env)
            self.assertEqual(done.returncode, 0, (path, done.stderr))

    def test_the_newest_step_of_a_run(self):
        for word in ("@latest", "@latest-complete"):
            done = run("info", f"127.0.0.1:{self.top}/run/{word}", env=self.env, code=0)
            self.assertIn("step_20", done.stderr)

    def test_what_is_not_there(self):
        done = run("info", f"127.0.0.1:{self.top}/nothing", env=self.env)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("no such file", done.stderr)

    def test_every_byte_stays_there_without_yes(self):
        done = run("hash", f"127.0.0.1:{self.model}", env=self.env)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("801 kB would be transferred", done.stderr.replace("\n", " "))

    def test_what_is_installed_there_runs_there(self):
        env = {"SHARDWRIGHT_SSH": "ssh -F " + os.path.join(self.top, "installed")}
        done = run("hash", f"127.0.0.1:{self.model}", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, run("hash", self.model).stdout)
        self.assertNotIn("Over the network", done.stderr)
        done = run("hash", f"127.0.0.1:{self.model}", env={**env, "SHARDWRIGHT_PROGRESS": "json"})
        self.assertIn('{"progress": {', done.stderr)
        done = run("check", f"127.0.0.1:{self.top}", "--data", env=env)
        self.assertEqual(done.returncode, run("check", self.top, "--data").returncode)

    def test_what_runs_there_leaves_the_callers_stdin(self):
        env = {**os.environ, "SHARDWRIGHT_SSH": "ssh -F " + os.path.join(self.top, "installed")}
        listed = os.path.join(self.top, "list")
        with open(listed, "w") as file:
            file.write("the next line\n")
        with open(listed) as stdin:
            done = subprocess.run([PROGRAM, "hash", f"127.0.0.1:{self.model}"], stdin=stdin, timeout=120,
                                  capture_output=True, env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.lseek(stdin.fileno(), 0, os.SEEK_CUR), 0)

    def test_why_bytes_would_travel(self):
        mine = os.path.join(self.top, "spec.json")
        with open(mine, "w") as file:
            file.write("{}")
        done = run("hash", f"127.0.0.1:{self.model}", env=self.env)
        self.assertIn("is not installed on that machine", " ".join(done.stderr.split()))
        done = run("check", f"127.0.0.1:{self.model}", "--data", "--baseline", mine, env=self.env)
        self.assertIn("--baseline is not a file on that machine", " ".join(done.stderr.split()))

    def ssh_commands(self, config, *words):
        """What the program calls ssh with, one line per call."""
        calls = os.path.join(self.top, "calls")
        ssh = os.path.join(self.top, "recording-ssh")
        with open(ssh, "w") as file:
            file.write(f'#!/bin/sh\necho "$*" >> {calls}\nexec ssh "$@"\n')
        os.chmod(ssh, 0o755)
        done = run(*words, env={"SHARDWRIGHT_SSH": f"{ssh} -F {os.path.join(self.top, config)}"})
        with open(calls) as file:
            lines = file.read().splitlines()
        os.remove(calls)
        return done, lines

    def test_metadata_is_compressed_and_elements_are_not(self):
        where = f"127.0.0.1:{self.model}"
        for words in (["info", where], ["check", where]):
            _, calls = self.ssh_commands("config", *words)
            self.assertEqual(["-C" in call.split() for call in calls], [True], words)
        _, calls = self.ssh_commands("config", "stats", where, "--yes")
        self.assertFalse(any("-C" in call.split() for call in calls), calls)

    def test_large_metadata_are_read_over_there(self):
        for mebibytes, is_there in ((99, False), (101, True)):
            folder = os.path.join(self.top, f"metadata-{mebibytes}")
            shutil.copytree(FSDP, folder)
            os.truncate(folder + "/.metadata", mebibytes << 20)
            done, calls = self.ssh_commands("installed", "info", f"127.0.0.1:{folder}")
            self.assertEqual(any("job=" in call for call in calls), is_there, calls)
            self.assertEqual("Over the network" in done.stderr, not is_there)
            self.assertEqual(done.returncode, run("info", folder).returncode)
        done, _ = self.ssh_commands("config", "info", f"127.0.0.1:{folder}")
        self.assertNotEqual(done.returncode, 127)
        self.assertEqual(done.stdout, run("info", f"127.0.0.1:{folder}", env=self.env).stdout)

    def test_files_of_this_machine_keep_the_verb_here(self):
        mine = os.path.join(self.top, "map.json")
        with open(mine, "w") as file:
            file.write("{}")
        where = f"127.0.0.1:{self.model}"
        for words in (["hash", where, "--as", "hf", "--config", self.model],
                      ["check", where, "--data", "--map", mine],
                      ["check", where, "--data", "--spec", mine]):
            _, calls = self.ssh_commands("installed", *words)
            self.assertFalse(any("job=" in call for call in calls), (words, calls))
        env = {"SHARDWRIGHT_SSH": "ssh -F " + os.path.join(self.top, "installed")}
        done = run("repair", where, "--fill", "from:" + self.model, env=env)
        self.assertIn("is changed on its own machine", " ".join(done.stderr.split()))

    def test_the_checkpoint_of_fill_is_a_path_over_there(self):
        fill = f"from:127.0.0.1:{self.model}"
        _, calls = self.ssh_commands("installed", "repair", f"127.0.0.1:{self.model}", "--fill", fill)
        self.assertTrue(any(f"'--fill' 'from:{self.model}'" in call.replace("'\\''", "'") for call in calls), calls)

    def replay(self, config, checkpoint, *lines):
        """Runs the desktop without a display; returns what it calls ssh with."""
        calls = os.path.join(self.top, "desktop-calls")
        ssh = os.path.join(self.top, "desktop-ssh")
        with open(ssh, "w") as file:
            file.write(f'#!/bin/sh\necho "$*" >> {calls}\nexec ssh "$@"\n')
        os.chmod(ssh, 0o755)
        script = os.path.join(self.top, "script")
        with open(script, "w") as file:
            file.write("\n".join(["wait", *lines, ""]))
        home = {key: os.path.join(self.top, "home") for key in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        env = {**os.environ, **home, "ASAN_OPTIONS": "detect_leaks=0",
               "SHARDWRIGHT_SSH": f"{ssh} -F {os.path.join(self.top, config)}"}
        env.pop("DISPLAY", None)
        open(calls, "w").close()
        done = subprocess.run([DESKTOP, checkpoint, "--replay", script], capture_output=True, text=True,
                              timeout=300, env=env)
        if "EGL" in done.stderr:
            self.skipTest("no EGL")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(calls) as file:
            return file.read()

    def test_the_desktop_reads_every_byte_over_there(self):
        if DESKTOP is None:
            self.skipTest("there is no desktop")
        damaged = os.path.join(self.top, "damaged")
        shutil.copytree(FSDP, damaged)
        with open(damaged + "/__1_0.distcp", "r+b") as file:
            file.seek(os.path.getsize(damaged + "/__1_0.distcp") // 2)
            file.write(b"\xff" * 64)
        texts = {}
        for name, path in (("here", damaged), ("there", f"127.0.0.1:{damaged}")):
            out = os.path.join(self.top, name)
            os.mkdir(out)
            calls = self.replay("installed", path, "check data", "hash " + out + "/hashes.txt",
                                "report " + out + "/report.html", "tensor-numbers", "key Ctrl+Home",
                                f"screenshot {out}/screen.png")
            files = {}
            for file in ("hashes.txt", "report.html"):
                with open(os.path.join(out, file)) as text:
                    files[file] = text.read().replace("ssh://127.0.0.1", "").replace("127.0.0.1:", "")
            texts[name] = files
        self.assertIn("bad-record", texts["here"]["report.html"])
        self.assertEqual(texts["here"]["hashes.txt"], run("hash", damaged).stdout)
        self.assertEqual(texts["here"], texts["there"])
        for verb in ("check", "hash", "stats"):
            self.assertIn(f"shardwright '\\''{verb}'\\''", calls)
        # SFTP reads what opening needs, and nothing after it.
        self.assertLess(calls.rindex(" sftp"), calls.index("shardwright --version"), calls)

    def test_the_desktop_asks_before_bytes_travel(self):
        if DESKTOP is None:
            self.skipTest("there is no desktop")
        out = os.path.join(self.top, "asked")
        os.mkdir(out)
        asked, answered = out + "/asked.html", out + "/answered.html"
        self.replay("config", f"127.0.0.1:{self.model}", "key Shift+F6", "report " + asked,
                    "click question/yes", "report " + answered)
        for report, is_read in ((asked, False), (answered, True)):
            with open(report) as file:
                self.assertEqual(f"{self.model} --data" in file.read(), is_read, report)

    def test_an_unknown_host_key_is_refused(self):
        env = {"SHARDWRIGHT_SSH": "ssh -F " + os.path.join(self.top, "strangers")}
        done = run("info", f"127.0.0.1:{self.model}", env=env)
        self.assertEqual(done.returncode, 4, done.stderr)

    def test_a_file_that_changes_is_an_error(self):
        with tempfile.TemporaryDirectory() as top:
            shutil.copytree(self.model, top + "/model")
            name = top + "/model/model-00002-of-00005.safetensors"
            with open(name, "ab") as file:
                file.write(b"more")
            done = run("check", f"127.0.0.1:{top}/model", "--data", "--yes", env=self.env)
            self.assertIn(done.returncode, (1, 2), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
