"""The program on buckets, with moto as S3: python3 bucket_test.py SHARDWRIGHT

Needs a Python with `moto[server]` and boto3; without them it says so and ends well. moto knows the
signature's form and not whether it is right: signature_v4_test.cpp holds that against AWS' examples.
"""

import http.client
import http.server
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = sys.argv[1]
try:
    import boto3
    import moto  # noqa: F401
except ImportError:
    print("skipped: moto and boto3 are not installed")
    sys.exit(0)

sys.argv = [sys.argv[0], PROGRAM, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")]
import program_test as base  # noqa: E402


class Refusing(http.server.ThreadingHTTPServer):
    """S3 that takes `left` more PUTs and answers 403 to those after them. Does what is in `lost`, pairs of
    a command and a part of its path, once each without an answer. Cuts `cuts` PUTs on a connection
    that it has answered on before."""

    def __init__(self, port, left=1_000_000, lost=(), cuts=0):
        super().__init__(("127.0.0.1", 0), Passing)
        self.behind, self.left, self.puts, self.lost, self.cuts = port, left, [], list(lost), cuts
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def env(self, env):
        return {**env, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_address[1]}"}


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    answered = 0  # on this connection

    def log_message(self, *words):
        pass

    def handle_expect_100(self):
        return True

    def do_GET(self):
        if self.command == "PUT" and self.answered and self.server.cuts:
            self.server.cuts -= 1
            self.rfile.read(1)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        self.answered += 1
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        status, headers, answer = 403, [], b""
        if self.command == "PUT":
            self.server.left -= 1
            self.server.puts.append(self.path)
        if self.command != "PUT" or self.server.left >= 0:
            behind = http.client.HTTPConnection("127.0.0.1", self.server.behind)
            headers = {k: v for k, v in self.headers.items() if k.lower() != "expect"}
            behind.request(self.command, self.path, body, headers)
            got = behind.getresponse()
            status, headers, answer = got.status, got.getheaders(), got.read()
        for command, part in self.server.lost:
            if self.command == command and part in self.path:
                self.server.lost.remove((command, part))
                self.close_connection = True
                return
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_PUT = do_POST = do_DELETE = do_GET


class Buckets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.folder.name + "/model"
        base.write_shards(cls.model, shards=4)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        cls.port = port
        cls.server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        url = f"http://127.0.0.1:{port}"
        keys = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "secret-of-test"}
        for _ in range(150):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        cls.s3 = s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)
        s3.create_bucket(Bucket="models")
        for name in os.listdir(cls.model):
            s3.upload_file(f"{cls.model}/{name}", "models", f"run 1/step+9/{name}")
        for i in range(1500):
            s3.put_object(Bucket="models", Key=f"many/{i:05}", Body=b"")
        cls.env = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
                   "AWS_SECRET_ACCESS_KEY": "secret-of-test"}

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        cls.folder.cleanup()

    def test_answers_are_those_of_a_local_disk(self):
        base.Remote.same_as_local(self, "s3://models/run 1/step+9", self.model, self.env)

    def test_a_file_and_an_index(self):
        for name in ("model-00001-of-00004.safetensors", "model.safetensors.index.json"):
            base.run("info", "s3://models/run 1/step+9/" + name, env=self.env, code=0)

    def test_pages_of_a_long_listing(self):
        done = base.run("info", "s3://models/many", env=self.env)
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_what_is_not_there(self):
        for path in ("s3://models/nothing", "s3://no-such-bucket/x"):
            done = base.run("info", path, env=self.env)
            self.assertEqual(done.returncode, 4, (path, done.stderr))
            self.assertNotIn("secret-of-test", done.stdout + done.stderr)

    def test_keys_of_a_file(self):
        with tempfile.TemporaryDirectory() as home:
            os.mkdir(home + "/.aws")
            with open(home + "/.aws/credentials", "w") as file:
                file.write("[work]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = s\n")
            env = {"AWS_ENDPOINT_URL": self.env["AWS_ENDPOINT_URL"], "HOME": home, "AWS_PROFILE": "work"}
            base.run("info", "s3://models/run 1/step+9", env=env, code=0)

    def test_a_result_is_sent_and_opens_there(self):
        with tempfile.TemporaryDirectory() as folder:
            target = "s3://models/sent+a b/step 1"
            done = base.run("convert", self.model, "--to", "dcp", "--out", folder + "/out", "--yes",
                            "--upload", target, "--json", env=self.env, code=0)
            sent = json.loads(done.stdout)["uploaded"]
            self.assertEqual(sent["to"], target)
            names = [os.path.relpath(os.path.join(where, name), folder + "/out")
                     for where, _, files in os.walk(folder + "/out") for name in files]
            self.assertEqual(sent["files"], len(names))
            for name in names:
                there = self.s3.get_object(Bucket="models", Key="sent+a b/step 1/" + name)
                with open(f"{folder}/out/{name}", "rb") as file:
                    self.assertEqual(there["Body"].read(), file.read(), name)
            base.run("diff", target, folder + "/out", "--data", env=self.env, code=0)
            # Nothing is written over, and nothing is made for nothing.
            again = base.run("convert", self.model, "--to", "dcp", "--out", folder + "/again",
                             "--yes", "--upload", target, env=self.env, code=3)
            self.assertIn("already holds objects", again.stderr)
            self.assertFalse(os.path.exists(folder + "/again"))
            for wrong in ("https://example.com/x", folder, "s3:/x"):
                base.run("convert", self.model, "--to", "dcp", "--out", folder + "/again", "--yes",
                         "--upload", wrong, env=self.env, code=3)

    def test_large_files_are_sent_in_parts(self):
        with tempfile.TemporaryDirectory() as folder:
            base.write_shards(folder + "/large", shards=1, elements=10_600_000)
            done = base.run("convert", folder + "/large", "--to", "torch", "--out", folder + "/out",
                            "--yes", "--upload", "s3://models/parts", "--json", env=self.env, code=0)
            self.assertGreater(json.loads(done.stdout)["uploaded"]["bytes"], 40 << 20)
            base.run("diff", "s3://models/parts", folder + "/out", "--data", env=self.env, code=0)
            self.assertEqual(self.s3.list_multipart_uploads(Bucket="models").get("Uploads", []), [])

    def keys(self, prefix):
        return sorted(one["Key"][len(prefix):] for one in
                      self.s3.list_objects_v2(Bucket="models", Prefix=prefix).get("Contents", []))

    def test_an_upload_that_was_cut_off_is_gone_on_with(self):
        with tempfile.TemporaryDirectory() as folder:
            mine, target = folder + "/mine", "s3://models/cut"
            base.write_shards(mine, shards=6)
            base.write_shards(folder + "/large", shards=1, elements=10_600_000)
            shutil.move(f"{folder}/large/model-00001-of-00001.safetensors", mine + "/0.safetensors")
            # The note, three parts of the large file, and two shards.
            server = Refusing(self.port, 6)
            failed = base.run("upload", mine, target, env=server.env(self.env), code=4)
            self.assertIn("403", failed.stderr)
            self.assertIn(f"`shardwright upload {mine} {target}`", failed.stderr)
            self.assertEqual(len(self.keys("cut/")), 4)
            # Nobody else's folder is mixed with it.
            other = base.run("upload", self.model, target, env=self.env, code=3)
            self.assertIn("holds a part of another upload", other.stderr)

            server = Refusing(self.port, 1000)
            done = base.run("upload", mine, target, "--json", env=server.env(self.env), code=0)
            sent = json.loads(done.stdout)["uploaded"]
            self.assertEqual((sent["files"], sent["kept"]), (8, 3))
            self.assertEqual(len(server.puts), 5)
            self.assertEqual(self.keys("cut/"), sorted(os.listdir(mine)))
            for name in os.listdir(mine):
                there = self.s3.get_object(Bucket="models", Key="cut/" + name)
                with open(f"{mine}/{name}", "rb") as file:
                    self.assertEqual(there["Body"].read(), file.read(), name)
            again = base.run("upload", mine, target, env=self.env, code=3)
            self.assertIn("already holds objects", again.stderr)

    def test_answers_that_are_lost(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = scratch + "/model"
            base.write_shards(folder, shards=1, elements=10_600_000)
            for name, faults in (("complete", {"lost": [("POST", "uploadId=")]}),
                                 ("begin", {"lost": [("POST", "?uploads")]}), ("kept", {"cuts": 1})):
                server, target = Refusing(self.port, **faults), "s3://models/lost-" + name
                base.run("upload", folder, target, env=server.env(self.env), code=0)
                self.assertEqual((server.lost, server.cuts), ([], 0), name)
                base.run("diff", target, folder, "--data", env=self.env, code=0)
                self.assertEqual(self.s3.list_multipart_uploads(Bucket="models").get("Uploads", []), [])

    def test_a_file_of_any_format_and_a_folder_with_an_ending(self):
        gguf = os.path.join(base.DATA, "gguf", "kinds", "ckpt", "kinds.gguf")
        for key in ("files/small.gguf", "files/large.gguf", "files/weights"):
            self.s3.upload_file(gguf, "models", key)
        for name in os.listdir(self.model):
            self.s3.upload_file(f"{self.model}/{name}", "models", f"run/epoch=1.ckpt/{name}")
        for path, local in (("files/small.gguf", gguf), ("files/weights", gguf),
                            ("run/epoch=1.ckpt", self.model), ("run/epoch=1.ckpt/", self.model)):
            there = base.answer("info", "s3://models/" + path, env=self.env, code=0)
            self.assertEqual(there["tensors"], base.answer("info", local)["tensors"], path)
        for path in ("files/small", "files/other.gguf", "run/epoch=2.ckpt"):
            base.run("info", "s3://models/" + path, env=self.env, code=4)

    def test_a_cut_upload_of_a_changed_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = scratch + "/model"
            base.write_shards(folder, shards=6)
            server = Refusing(self.port, 3)
            base.run("upload", folder, "s3://models/changed", env=server.env(self.env), code=4)
            with open(folder + "/model-00006-of-00006.safetensors", "ab") as file:
                file.write(b"more")
            refused = base.run("upload", folder, "s3://models/changed", env=self.env, code=3)
            self.assertIn("before its folder changed", refused.stderr)

    def test_parts_that_a_killed_upload_left_are_dropped(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = scratch + "/model"
            base.write_shards(folder, shards=1, elements=10_600_000)
            name = "model-00001-of-00001.safetensors"
            server = Refusing(self.port, 1)
            base.run("upload", folder, "s3://models/killed", env=server.env(self.env), code=4)
            self.s3.create_multipart_upload(Bucket="models", Key="killed/" + name)
            self.s3.create_multipart_upload(Bucket="models", Key="killed/another")
            base.run("upload", folder, "s3://models/killed", env=self.env, code=0)
            left = self.s3.list_multipart_uploads(Bucket="models")["Uploads"]
            self.assertEqual([one["Key"] for one in left], ["killed/another"])
            self.s3.abort_multipart_upload(Bucket="models", Key="killed/another",
                                           UploadId=left[0]["UploadId"])

    def test_a_link_that_leads_nowhere_is_not_left_out(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = scratch + "/model"
            base.write_shards(folder, shards=2)
            os.symlink("../blobs/gone", folder + "/tokenizer.json")
            refused = base.run("upload", folder, "s3://models/links", env=self.env, code=2)
            self.assertIn("tokenizer.json", refused.stderr)
            self.assertEqual(self.keys("links/"), [])

    def test_gs_speaks_the_same(self):
        env = {"STORAGE_EMULATOR_HOST": self.env["AWS_ENDPOINT_URL"], "GS_ACCESS_KEY_ID": "AKIAEXAMPLE",
               "GS_SECRET_ACCESS_KEY": "s"}
        base.run("info", "gs://models/run 1/step+9", env=env, code=0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
