// Sentences about networks, file systems, memory and ranks that wait, as they are in public
// reports.
#include <doctest/doctest.h>

#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: sentences about downloads from the hub are known") {
  const std::string hub = "huggingface_hub";
  check_sentences({
      {"OSError: Consistency check failed: file should be of size 0 but has size 2166 (hest.py).",
       hub, "download-longer", "wrong-length-said"},
      {"OSError: Consistency check failed: file should be of size 9860464979 but has size "
       "4277965032 (pytorch_model-00006-of-00007.bin).",
       "", "download-size", "short-file"},
      {"OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't "
       "find them in the cached files.",
       hub, "hub-unreached", "not-downloaded"},
      {"LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and "
       "we cannot find the requested files in the local cache.",
       hub, "hub-unreached", "not-downloaded"},
      {"FileMetadataError: Distant resource does not seem to be on huggingface.co.", hub,
       "hub-unreached", "not-downloaded"},
      {"OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/a/b: offline mode is "
       "enabled.",
       hub, "hub-offline", "not-downloaded"},
      {"GatedRepoError: 401 Client Error.\nCannot access gated repo for url "
       "https://huggingface.co/a/b.\nAccess to model a/b is restricted.",
       hub, "hub-refused", "no-access"},
      {"RepositoryNotFoundError: 404 Client Error. Repository Not Found for url: "
       "https://huggingface.co/api/models/a/b.",
       hub, "hub-no-repository", "wrong-path"},
      {"EntryNotFoundError: 404 Client Error. Entry Not Found for url: "
       "https://huggingface.co/a/b/resolve/main/model.safetensors.",
       hub, "hub-no-file", "other-name"},
      {"HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api",
       "", "too-many-requests", "too-many-requests"},
      {"RuntimeError: An error occurred while downloading using `hf_transfer`.", hub, "hf-transfer",
       "not-downloaded"},
      {"RuntimeError: Data processing error: File reconstruction error: Internal Writer Error", hub,
       "xet-download", "short-file"},
      {"ConnectionError: HTTPSConnectionPool(host='cdn-lfs.huggingface.co', port=443): Read timed "
       "out.",
       "", "network-stopped", "not-downloaded"},
  });
}

TEST_CASE("explain: a full disk comes before the transfer that it stopped") {
  const std::string text =
      "RuntimeError: Data processing error: I/O error: No space left on device (os error 28)";
  CHECK(first(explain(text)) == "unfinished-save checkpoint");
}

TEST_CASE("explain: sentences of object storage are known") {
  check_sentences({
      {"ClientError: An error occurred (403) when calling the HeadObject operation: Forbidden", "",
       "storage-refused", "no-access"},
      {"ClientError: An error occurred (ExpiredToken) when calling the GetObject operation: The "
       "provided token has expired.",
       "", "storage-refused", "no-access"},
      {"botocore.exceptions.NoCredentialsError: Unable to locate credentials", "",
       "storage-refused", "no-access"},
      {"Forbidden: 403 GET https://storage.googleapis.com/storage/v1/b/x/o: y does not have "
       "storage.objects.list access to the Google Cloud Storage bucket.",
       "", "storage-refused", "no-access"},
      {"ClientError: An error occurred (NoSuchKey) when calling the GetObject operation: The "
       "specified key does not exist.",
       "", "storage-no-object", "missing-file"},
      {"ClientError: An error occurred (SlowDown) when calling the PutObject operation (reached "
       "max "
       "retries: 4): Please reduce your request rate.",
       "", "too-many-requests", "too-many-requests"},
  });
}

TEST_CASE("explain: sentences of the file system are known") {
  check_sentences({
      {"OSError: [Errno 116] Stale file handle: '/mnt/ckpt/model.safetensors'", "", "stale-handle",
       "file-replaced"},
      {"OSError: [Errno 5] Input/output error: '/mnt/ckpt/__12_0.distcp'", "", "read-error",
       "bad-record"},
      {"OSError: [Errno 30] Read-only file system: '/models'", "", "read-only", "cannot-write"},
      {"PermissionError: [Errno 13] Permission denied: '/root/.cache/huggingface'", "",
       "no-permission", "cannot-open"},
      {"OSError: [Errno 24] Too many open files: '/ckpt/__0_0.distcp'", "", "too-many-files",
       "open-files"},
      {"OSError: [Errno 36] File name too long: '/ckpt/a'", "", "name-too-long", "name-too-long"},
      {"FileExistsError: [Errno 17] File exists: '/ckpt/step_100'", "", "folder-exists",
       "already-there"},
      {"OSError: [Errno 39] Directory not empty: 'o/tmp-checkpoint-500' -> 'o/checkpoint-500'",
       "transformers", "rename-race", "save-race"},
      {"BlockingIOError: [Errno 11] Unable to create file (unable to lock file, errno = 11)",
       "HDF5", "file-locked", "file-locked"},
      {"RuntimeError: [enforce fail at inline_container.cc:603] . PytorchStreamWriter failed "
       "writing file data/12: file write failed",
       "torch", "write-failed", "unfinished-save"},
  });
}

TEST_CASE("explain: a full memory is named, of the GPU or of the machine") {
  check_sentences({
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "", "gpu-memory",
       "out-of-memory"},
      {"llama_model_load: error loading model: unable to allocate CUDA0 buffer", "", "gpu-memory",
       "out-of-memory"},
      {"Error: llama runner process has terminated: signal: killed", "", "host-memory",
       "out-of-memory"},
      {"RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.", "", "host-memory",
       "out-of-memory"},
      {"ValueError: At least one of the model submodule will be offloaded to disk, please pass "
       "along an `offload_folder`.",
       "accelerate", "no-offload-folder", "out-of-memory"},
  });
}

TEST_CASE("explain: ranks that wait are not called another number of ranks") {
  check_sentences({
      {"[rank1]:[E616] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2109, "
       "OpType=_ALLGATHER_BASE, NumelIn=26, NumelOut=52, Timeout(ms)=1800000) ran for 1800007 "
       "milliseconds before timing out.",
       "", "ranks-wait", "rank-missing"},
      {"[rank7]:[E1129] [PG ID 0 Rank 7] Timeout at NCCL work: 28956, last enqueued NCCL work: "
       "28956, last completed NCCL work: 28955.",
       "", "ranks-wait", "rank-missing"},
      {"RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running "
       "collective: "
       "CollectiveFingerPrint(SequenceNumber=12, OpType=BROADCAST)",
       "", "ranks-wait", "rank-missing"},
      {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED",
       "torchrun", "child-failed", "details-missing"},
      {"AssertionError: A CPU backend must be enabled for async save; try initializing process "
       "group with 'cpu:gloo,cuda:nccl'",
       "torch.distributed.checkpoint", "async-save-backend", "no-cpu-backend"},
  });
}

TEST_CASE("explain: a rank's own error comes before the ranks that waited for it") {
  const Explanation explanation = explain(
      "OSError: [Errno 28] No space left on device\n"
      "Some NCCL operations have failed or timed out.");
  REQUIRE(explanation.parsed.messages.size() == 1);
  CHECK(explanation.parsed.messages[0].kind->id == "disk-full");
}
