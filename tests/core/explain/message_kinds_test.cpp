// Every known message as its loader prints it: how it is parsed, and the most likely cause.
#include "core/explain/message_kinds.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/explain/support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

double total(const Explanation& explanation) {
  double sum = explanation.none_of_these;
  for (const Hypothesis& one : explanation.hypotheses) sum += one.confidence;
  return sum;
}

}  // namespace

TEST_CASE("messages of files that are not there are known") {
  check_cases({
      {"FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/step_9/.metadata'",
       "no-metadata", "unfinished-save", "/ckpt/step_9/.metadata"},
      {"FileNotFoundError: s3://bucket/step_9/.metadata", "no-metadata", "unfinished-save",
       "s3://bucket/step_9/.metadata"},
      {"No such file or directory: '/ckpt/step_9/__3.metadata'", "no-metadata", "unfinished-save",
       "/ckpt/step_9/__3.metadata"},
      {"FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/step_9/__3_0.distcp'",
       "missing-file", "missing-file", "/ckpt/step_9/__3_0.distcp"},
      {"No such file or directory: \"/m/model-00003-of-00007.safetensors\"", "missing-file",
       "missing-file", "/m/model-00003-of-00007.safetensors"},
      {"No such file or directory: '/m/my model/mp_rank_00_model_states.pt'", "missing-file",
       "missing-file", "/m/my model/mp_rank_00_model_states.pt"},
      {"No such file or directory: '/m/model.safetensors.index.json'", "no-index",
       "unfinished-save", "/m/model.safetensors.index.json"},
      {"ValueError: Unable to find 'latest' file at /ckpt/latest", "no-index", "unfinished-save",
       "/ckpt/latest"},
      {"Unable to find latest file at /ckpt/latest, if trying to load latest checkpoint please "
       "ensure this file exists",
       "no-index", "unfinished-save", "/ckpt/latest"},
      {"WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt",
       "no-index", "unfinished-save", "/ckpt/latest_checkpointed_iteration.txt"},
      {"CheckpointingException: Common file /ckpt/iter_1/common.pt does not exist", "no-index",
       "unfinished-save", "/ckpt/iter_1/common.pt"},
      {"megatron.core.dist_checkpointing.core.CheckpointingException: /ckpt/iter_0000100 is not a "
       "distributed checkpoint",
       "no-checkpoint-here", "wrong-path", "/ckpt/iter_0000100"},
      {"CheckpointingException: Checkpoint directory /ckpt/iter_1 does not exist",
       "no-checkpoint-here", "wrong-path", "/ckpt/iter_1"},
      {"FileNotFoundError: Directory '/ckpt/global_step7' doesn't exist", "no-checkpoint-here",
       "wrong-path", "/ckpt/global_step7"},
      {"OSError: Error no file named model.safetensors, or pytorch_model.bin, found in directory "
       "/out/checkpoint-500.",
       "no-weights-file", "other-format", "model.safetensors"},
      {"OSError: Unable to load weights from pytorch checkpoint file for '/m/a.bin' at '/m/a.bin'. "
       "If you tried to load a PyTorch model from a TF 2.0 checkpoint, please set from_tf=True.",
       "weights-file-unreadable", "short-file", "/m/a.bin"},
      {"ValueError: Expected 8 of '*_optim_states.pt' under '/ckpt/global_step7' but found 7 "
       "files. Possibly due to an overwrite of an old checkpoint, or a checkpoint didn't get saved "
       "by one or more processes.",
       "rank-files-missing",
       "missing-file",
       "*_optim_states.pt",
       {{"expected_files", 8}, {"found_files", 7}}},
      {"FileNotFoundError: can't find model states file at '/ckpt/mp_rank_00_model_states.pt'",
       "rank-files-missing", "missing-file", "/ckpt/mp_rank_00_model_states.pt"},
      {"can't find *_optim_states.pt files in directory '/ckpt'", "rank-files-missing",
       "missing-file", "*_optim_states.pt"},
      {"CheckpointingException: Object shard /ckpt/model_weights/model.decoder.layers."
       "self_attention.core_attention._extra_state/shard_0_80.pt not found",
       "missing-file", "extra-state-missing",
       "/ckpt/model_weights/model.decoder.layers.self_attention.core_attention._extra_state/"
       "shard_0_80.pt"},
      {"OSError: [Errno 28] No space left on device", "disk-full", "unfinished-save"},
      {"RuntimeError: Checkpoint already exists and self.overwrite=False.", "already-there",
       "already-there"},
      {"CheckpointingException: Checkpoint integrity verification failed for 2 file(s) in /ckpt:",
       "integrity-manifest",
       "bad-record",
       "",
       {{"files", 2}}},
  });
}

TEST_CASE("messages of archives that cannot be read are known") {
  check_cases({
      {"RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
       "directory",
       "no-central-directory", "short-file"},
      {"RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
       "directory. This is an internal miniz error. If you are seeing this error, there is a high "
       "likelihood that your checkpoint file is corrupted.",
       "no-central-directory", "short-file"},
      {"PytorchStreamReader failed reading file .format_version: invalid header or archive is "
       "corrupted. This is an internal miniz error.",
       "bad-archive", "bad-record"},
      {"RuntimeError: PytorchStreamReader failed reading file data/12: file read failed",
       "archive-unreadable", "bad-record"},
      {"RuntimeError: PytorchStreamReader failed locating file data.pkl: file not found",
       "record-not-found", "bad-record", "data.pkl"},
      {"RuntimeError: [enforce fail at inline_container.cc:197] . file in archive is not in a "
       "subdirectory: weights.bin",
       "zip-of-another-program", "other-format"},
      {"RuntimeError: Expected hasRecord(\"version\") to be true, but got false.",
       "record-not-found", "bad-record"},
      {"zipfile.BadZipFile: File is not a zip file", "not-a-zip", "short-file"},
      {"RuntimeError: unexpected EOF, expected 4096 more bytes. The file might be corrupted.",
       "unexpected-eof",
       "short-file",
       "",
       {{"missing_bytes", 4096}}},
      {"OSError: Unable to open file (truncated file: eof = 1024, sblock->base_addr = 0, "
       "stored_eof "
       "= 2048)",
       "unexpected-eof",
       "short-file",
       "",
       {{"found_bytes", 1024}, {"expected_bytes", 2048}}},
      {"RuntimeError: storage has wrong byte size: expected 1018874368 got 0",
       "storage-size",
       "short-file",
       "",
       {{"expected_bytes", 1018874368}, {"found_bytes", 0}}},
      {"RuntimeError: storage has wrong size: expected 2930331299881099915 got 128",
       "storage-size",
       "short-file",
       "",
       {{"expected_elements", 2930331299881099915}, {"found_elements", 128}}},
  });
}

TEST_CASE("messages of pickles that cannot be read are known") {
  check_cases({
      {"_pickle.UnpicklingError: invalid load key, 'v'.", "git-lfs-pointer", "git-lfs-pointer",
       "v"},
      {"OSError: You seem to have cloned a repository without having git-lfs installed. Please "
       "install git-lfs",
       "git-lfs-pointer", "git-lfs-pointer"},
      {"_pickle.UnpicklingError: invalid load key, '<'.", "web-page", "web-page", "<"},
      {"_pickle.UnpicklingError: invalid load key, '\\x00'.", "zeroed-file", "bad-record", "\\x00"},
      {"pickle.UnpicklingError: invalid load key, 'E'.", "invalid-load-key", "other-format", "E"},
      {"RuntimeError: Invalid magic number; corrupt file?", "invalid-load-key", "other-format"},
      {"_pickle.UnpicklingError: pickle data was truncated", "pickle-cut", "short-file"},
      {"EOFError: Ran out of input", "pickle-cut", "short-file"},
      {"Weights only load failed. Unsupported global: GLOBAL os.system was not an allowed global",
       "unsafe-global", "unsafe-pickle", "os.system"},
      {"WeightsUnpickler error: Unsupported class numpy.core.multiarray._reconstruct",
       "unsafe-global", "unsafe-pickle", "numpy.core.multiarray._reconstruct"},
      {"_pickle.UnpicklingError: Weights only load failed. Re-running `torch.load` with "
       "`weights_only` set to `False` will likely succeed",
       "weights-only", "unsafe-pickle"},
      {"ValueError: Due to a serious vulnerability issue in `torch.load`, even with "
       "`weights_only=True`, we now require users to upgrade torch to at least v2.6. See "
       "CVE-2025-32434",
       "torch-load-refused", "older-torch"},
      {"ModuleNotFoundError: No module named 'pathlib._local'; 'pathlib' is not a package",
       "pickled-by-python-3.13", "portability"},
      {"Unsupported global: GLOBAL pathlib._local.PosixPath was not an allowed global by default.",
       "pickled-by-python-3.13", "portability"},
      {"ModuleNotFoundError: No module named 'megatron'", "module-not-here", "module-not-here",
       "megatron"},
      {"AttributeError: Can't get attribute 'ModelArgs' on <module '__main__'>", "class-not-here",
       "portability", "ModelArgs"},
      {"AttributeError: 'UntypedStorage' object has no attribute 'dtype'", "older-float8",
       "older-float8"},
      {"RuntimeError: Attempting to deserialize object on a CUDA device but "
       "torch.cuda.is_available() is False.",
       "no-cuda-here", "device-not-here"},
  });
}

TEST_CASE("messages of safetensors and of DCP's metadata are known") {
  check_cases({
      {"safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
       "safetensors-header-length", "not-safetensors"},
      {"SafetensorError: Error while deserializing header: header too large",
       "safetensors-header-length", "not-safetensors"},
      {"SafetensorError: Error while deserializing header: HeaderTooSmall",
       "safetensors-header-length", "not-safetensors"},
      {"SafetensorError: Error while deserializing header: InvalidHeaderLength",
       "safetensors-short-header", "short-file"},
      {"SafetensorError: Error while deserializing header: invalid header length",
       "safetensors-short-header", "short-file"},
      {"SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
       "safetensors-incomplete", "short-file"},
      {"SafetensorError: Error while deserializing header: incomplete metadata, file not fully "
       "covered",
       "safetensors-incomplete", "short-file"},
      {"SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
       "safetensors-header-json", "bad-record"},
      {"SafetensorError: Error while deserializing header: invalid JSON in header: expected value "
       "at line 1 column 1",
       "safetensors-header-json", "bad-record"},
      {"SafetensorError: Error while deserializing header: invalid UTF-8 in header: x",
       "safetensors-header-json", "bad-record"},
      {"SafetensorError: Error while deserializing header: InvalidHeader",
       "safetensors-header-json", "bad-record", "InvalidHeader"},
      {"Error while deserializing header: InvalidOffset(\"a.b.weight\")", "safetensors-offsets",
       "bad-record", "a.b.weight"},
      {"Error while deserializing header: invalid offset for tensor `a.b.weight`",
       "safetensors-offsets", "bad-record", "a.b.weight"},
      {"Error while deserializing header: TensorInvalidInfo", "safetensors-offsets", "bad-record"},
      {"Error while deserializing header: ValidationOverflow", "safetensors-offsets", "bad-record"},
      {"SafetensorError: File does not contain tensor model.norm.weight", "safetensors-no-tensor",
       "index-disagrees", "model.norm.weight"},
      {"OSError: The safetensors archive passed at model.safetensors does not contain the valid "
       "metadata. Make sure you save your model with the `save_pretrained` method.",
       "safetensors-no-format", "portability", "model.safetensors"},
      {"KeyError: MetadataIndex(fqn='a.b', offset=torch.Size([0, 4]), index=1)",
       "no-storage-record", "storage-dangling", "a.b"},
      {"AssertionError: req MetadataIndex(fqn='a.b', offset=torch.Size([0]), index=0) mismatch "
       "sizes torch.Size([12]) vs torch.Size([8])",
       "payload-mismatch", "payload-shape", "a.b"},
      {"ValueError: too many values to unpack (expected 5)", "six-properties", "portability"},
      {"ValueError: too many values to unpack (expected 5, got 6)", "six-properties",
       "portability"},
      {"ValueError: Invalid checkpoint metadata for opt.step, expected BytesStorageMetadata but "
       "found <class 'torch.distributed.checkpoint.metadata.TensorStorageMetadata'>",
       "metadata-kind", "object-for-tensor", "opt.step"},
      {"ValueError: Failed to validate global plan", "plan-refused", "chunk-overlap"},
      {"ValueError: Failed to validate global plan: key:a.b has overlapping chunks: X Y",
       "plan-overlap", "chunk-overlap", "a.b"},
      {"key:a.b invalid fill tensor-volume: 65536 chunks-volume: 32768",
       "plan-fill",
       "coverage-gap",
       "a.b",
       {{"tensor_elements", 65536}, {"tile_elements", 32768}}},
      {"key:a.b has out of bounds chunk: tensor-size:torch.Size([4]) chunk: C", "plan-bounds",
       "chunk-out-of-bounds", "a.b"},
      {"ValueError: duplicated flatten key a.b", "duplicate-key", "duplicate-key", "a.b"},
      {"ValueError: Any checkpointing related operations are not supported for DTensor with "
       "partial placements!",
       "partial-placement", "partial-placement"},
      {"io.UnsupportedOperation: fileno", "no-fsync", "no-fsync"},
      {"    if k in metadata.planner_data:\nTypeError: argument of type 'NoneType' is not iterable",
       "no-planner-data", "portability"},
      {"ValueError: Unknown extension name='zstd'", "unknown-extension", "portability", "zstd"},
      {"ValueError: Unknown extension version='2'", "unknown-extension", "portability", "2"},
      {"torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
       "ranks:dict_keys([0, 1])",
       "checkpoint-exception", "details-missing"},
  });
}

TEST_CASE("messages of worlds and sizes that do not fit are known") {
  check_cases({
      {"ZeRORuntimeException: The checkpoint being loaded used a DP world size of 4 but the "
       "current "
       "world size is 8. Automatic adjustment of ZeRO's optimizer state partitioning with a new "
       "world size is not currently supported.",
       "zero-world-size",
       "other-world-size",
       "",
       {{"saved_world", 4}, {"current_world", 8}}},
      {"ValueError: consumed 255381772 numels out of 255381776 - something is wrong",
       "zero-numels",
       "zero-numels",
       "",
       {{"consumed", 255381772}, {"available", 255381776}}},
      {"ValueError: /ckpt/a_optim_states.pt is not a zero checkpoint", "not-zero-file",
       "other-format", "/ckpt/a_optim_states.pt"},
      {"AssertionError: Required universal_checkpoint_info state is missing in checkpoint. Verify "
       "that client creates this state.",
       "universal-info", "universal-info"},
      {"AssertionError: Loading x/fp32.pt full param numel 64 != tensor slice numel 16 * "
       "tp_world_size 2",
       "universal-size",
       "universal-size",
       "",
       {{"full_elements", 64}, {"slice_elements", 16}, {"tp", 2}}},
      {"RuntimeError: start (1010384896) + length (512) exceeds dimension size (1010384896).",
       "narrow-outside",
       "narrow-outside",
       "",
       {{"start", 1010384896}, {"length", 512}, {"dimension", 1010384896}}},
      {"ValueError: loaded state dict contains a parameter group that doesn't match the size of "
       "optimizer's group",
       "optimizer-groups", "optimizer-groups"},
      {"RuntimeError: World size at save time was 8, but at load time was 4",
       "sharded-tensor-world",
       "other-world-size",
       "",
       {{"saved_world", 8}, {"current_world", 4}}},
  });
}

TEST_CASE("messages of Megatron's own checkpoints and of state dicts are known") {
  check_cases({
      {"CheckpointingException: Invalid access pattern: 36 ShardedObject are missing.",
       "missing-objects",
       "extra-state-missing",
       "",
       {{"objects", 36}}},
      {"CheckpointingException: Invalid access pattern for ShardedTensor(key='decoder.w', "
       "dtype=torch.bfloat16): tensor([0, 2])",
       "access-pattern", "access-pattern", "decoder.w"},
      {"CheckpointingException: Cannot find global shape metadata for N-D flattened tensor "
       "ShardedTensor(key='module.embedding.word_embeddings.weight', dtype=torch.bfloat16)",
       "nd-flattened", "flattened-optimizer", "module.embedding.word_embeddings.weight"},
      {"KeyError: 'nd_reformulated_orig_global_shape'", "nd-flattened", "flattened-optimizer"},
      {"CheckpointingException: ShardedTensor.flattened_range is not supported.", "nd-flattened",
       "flattened-optimizer"},
      {"RuntimeError: (TP, PP) mismatch after resume ((4, 1) vs (2, 1) from checkpoint): not "
       "supported for DistributedOptimizer with sharding type fully_sharded_model_space.",
       "optimizer-sharding", "optimizer-sharding"},
      {"RuntimeError: Detected load from a distributed checkpoint, but neither --use-dist-ckpt nor "
       "--auto-detect-ckpt-format is set.",
       "dist-ckpt-flag", "dist-ckpt-flag"},
      {"AssertionError: num_layers value from checkpoint (32) is not equal to the input argument "
       "value (40).",
       "checkpoint-args",
       "other-model",
       "num_layers",
       {{"saved", 32}, {"current", 40}}},
      {"AssertionError: SWiGLU weights must have an even size along the shard axis 0, got 13307",
       "glu-odd-rows",
       "glu-odd-rows",
       "",
       {{"axis", 0}, {"rows", 13307}}},
      {"AssertionError: Fused parameter is 64 wide along dim 0, but the requested sections sum to "
       "128",
       "fused-sections",
       "fused-sections",
       "",
       {{"rows", 64}, {"dim", 0}, {"sections", 128}}},
      {"CheckpointingException: Data shape should match `local_shape` attribute for "
       "ShardedTensor(key='a.b', dtype=x)",
       "local-shape", "local-shape", "a.b"},
      {"RuntimeError: model._flat_param contains _flat_param. This can happen if the model is not "
       "the root module.",
       "flat-param-key", "flat-param-key", "model._flat_param"},
      {"RuntimeError: aten.copy_.default: got mixed torch.Tensor and DTensor, need to convert all "
       "torch.Tensor to DTensor before calling distributed operators!",
       "sharded-state-dict", "sharded-state-dict"},
      {"RuntimeError: Tried to load a sharded state dict into an unsharded module",
       "sharded-state-dict", "sharded-state-dict"},
      {"AttributeError: 'Tensor' object has no attribute 'to_local'", "state-is-no-dtensor",
       "local-saved-as-global"},
      {"RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk and "
       "potential differences when loading them again",
       "shared-memory", "shared-memory"},
  });
}

TEST_CASE("the shares of all readings and of none of them make a whole") {
  std::vector<std::string> texts;
  for (const MessageKind* kind : message_kinds()) texts.emplace_back(kind->example);
  texts.emplace_back("saved [64] current [128] for optimizer.state.0.exp_avg");
  texts.emplace_back(
      "saved [288, 4096, 1280] current [288, 8192, 640] for l.3.moe.down_proj.weight");
  texts.emplace_back(
      "Missing key(s) in state_dict: \"a.b\". Ran out of input. saved [2] current [4]");
  for (const std::string& text : texts) {
    CAPTURE(text);
    Explanation explanation = explain(text);
    if (explanation.hypotheses.empty()) continue;
    CHECK(total(explanation) == doctest::Approx(1));
    CHECK(explanation.none_of_these > 0);
  }
}

TEST_CASE("a line that says only that it failed is silent next to one that says why") {
  Explanation explanation = explain(
      "CheckpointException ranks:dict_keys([0])\nTraceback (most recent call last): (RANK 0)\n"
      "KeyError: 'x'\nRuntimeError: Error(s) in loading state_dict for M:\n"
      "\tsize mismatch for a.b: copying a param with shape torch.Size([4, 2]) from checkpoint, the "
      "shape in current model is torch.Size([8, 2]).");
  REQUIRE(explanation.parsed.messages.size() == 1);
  CHECK(explanation.parsed.messages[0].kind->id == kShapes);
}

TEST_CASE("every row of the table can be found and leads to rules that exist") {
  std::set<std::string_view> rules;
  for (const Rule& rule : all_rules()) rules.insert(rule.id);
  for (const MessageKind* kind : message_kinds()) {
    CAPTURE(std::string(kind->id));
    CHECK(kind->patterns[0].empty() == (kind->words != nullptr));
    for (std::string_view pattern : kind->patterns) {
      std::string lower(pattern);
      std::transform(lower.begin(), lower.end(), lower.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      CHECK(lower == pattern);
    }
    bool computed =
        kind->id == kShapes || kind->id == kMissingKeyForm || kind->id == kUnexpectedKeyForm;
    // A row for one program only may add meanings that shapes and names do not explain.
    if (!computed || kind->loader.empty()) CHECK(kind->meanings[0].title.empty() == computed);
    for (const Interpretation& meaning : kind->meanings) {
      if (meaning.title.empty()) continue;
      CHECK((meaning.rule == nullptr || rules.count(meaning.rule->id) == 1));
      CHECK_FALSE((meaning.id.empty() && meaning.rule == nullptr));
      CHECK(meaning.weight > 0);
      CHECK(meaning.weight < 1);
      CHECK(meaning.text.size() > 20);
      CHECK(meaning.decide.size() > 10);
    }
  }
}

TEST_CASE("a message that is not known is told which known one is near") {
  const MessageKind* near =
      nearest_kind("the checkpoint was saved with a DP world size of 8, current is 4");
  REQUIRE(near != nullptr);
  CHECK(near->id == "zero-world-size");
  CHECK(nearest_kind("CUDA out of memory") == nullptr);
  CHECK(nearest_kind("") == nullptr);
  CHECK(explain("the checkpoint was saved by 8, current is 4").hypotheses.empty());
}

TEST_CASE("messages of files next to the weights and of lost parts are known") {
  check_cases({
      {"OSError: It looks like the config file at '/m/config.json' is not a valid JSON file.",
       "not-json", "unreadable-json", "/m/config.json"},
      {"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "not-json",
       "unreadable-json", ""},
      {"ValueError: MTP speculative decoding layer 78 weights missing from checkpoint",
       "no-mtp-weights",
       "mtp-lost",
       "",
       {{"layer", 78}}},
      {"lora key not loaded: lora_unet_double_blocks_0_img_attn_proj.alpha", "lora-not-loaded",
       "adapter-names", "lora_unet_double_blocks_0_img_attn_proj.alpha"},
      {"RuntimeError: ERROR: Could not detect model type of: /models/flux.safetensors",
       "model-not-detected", "renamed", "/models/flux.safetensors"},
      {"llama_model_load: error loading model: missing tensor 'blk.32.attn_norm.weight'",
       "gguf-no-block", "gguf-keys", "blk.32.attn_norm.weight"},
      {"RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 1856 vs 1750",
       "disk-full", "unfinished-save", ""},
  });
}
