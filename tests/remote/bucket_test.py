"""The program on buckets, with moto as S3: python3 bucket_test.py SHARDWRIGHT

Needs a Python with `moto[server]` and boto3; without them it says so and ends well. moto knows the
signature's form and not whether it is right: signature_v4_test.cpp holds that against AWS' examples.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
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


class Buckets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.folder.name + "/model"
        base.write_shards(cls.model, shards=4)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
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
            self.assertIn("holds objects already", again.stderr)
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

    def test_gs_speaks_the_same(self):
        env = {"STORAGE_EMULATOR_HOST": self.env["AWS_ENDPOINT_URL"], "GS_ACCESS_KEY_ID": "AKIAEXAMPLE",
               "GS_SECRET_ACCESS_KEY": "s"}
        base.run("info", "gs://models/run 1/step+9", env=env, code=0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
