// Kinds of sentences that were learned from the sources of loaders, each with a sentence that its
// words were not written from.
#include <doctest/doctest.h>

#include "core/explain/error_text.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: the kind of two values that differ is told by what they are of") {
  check_sentences({
      {"ValueError: lookup table should be uint8 but was int32", "", "stated-dtype",
       "dtype-differs"},
      {"ValueError: hidden projection width should be 512, received 640", "", "stated-shape",
       "sizes-differ"},
      {"ValueError: draft tokens must be between 1 and 8, got 64", "", "stated-setting",
       "option-refused"},
      {"TypeError: sampler must be a callable, but received Tokenizer", "", "object-of-class",
       "call-differs"},
  });
}

TEST_CASE("explain: the condition above a bare AssertionError tells its kind") {
  const std::string end = "\nAssertionError";
  check_sentences({
      {"    assert f'{name}.bias' in loaded_params" + end, "", "assert-names", "names-differ"},
      {"    assert rows % chunk == 0, rows" + end, "", "assert-divisible", "block-size"},
      {"    assert total % ep_size == 0" + end, "", "assert-ranks", "other-world-size"},
      {"    assert buffer.dtype is torch.uint8" + end, "", "assert-dtype", "dtype-differs"},
      {"    assert index_file.exists()" + end, "", "assert-path", "wrong-path"},
      {"    assert plan.strategy == 'channel'" + end, "", "assert-quantisation", "quantised"},
      {"    assert bias.shape == (n,)" + end, "", "assert-shape", "sizes-differ"},
      {"    assert head is not None" + end, "", "assert-not-none", "part-missing"},
      {"    assert isinstance(tree, dict)" + end, "", "assert-class", "call-differs"},
      {"    assert x.is_cuda and y.is_cuda" + end, "", "assert-device", "device-unfit"},
  });
}

TEST_CASE("explain: ends of a program without a sentence of its own are known") {
  check_sentences({
      {"convert.py: error: the following arguments are required: --outfile", "", "argument-missing",
       "option-refused"},
      {"Fatal Python error: Segmentation fault", "", "crashed", "older-library"},
      {"*** Process received signal *** Signal: Bus error (7)", "", "bus-error", "short-file"},
      {"RecursionError: maximum recursion depth exceeded in comparison", "", "recursion",
       "older-library"},
      {"TypeError: stat: path should be string, bytes, os.PathLike or integer, not NoneType", "",
       "path-is-none", "missing-part"},
      {"/tmp/run.sh: line 9: 4242 Killed   python train.py", "", "killed", "memory"},
      {"llama_prepare_model_devices: no backends are loaded", "", "gguf-parts-of-build",
       "package-missing"},
      {"this binary was not compiled with HDF5", "", "built-without", "package-missing"},
  });
}

TEST_CASE("explain: what a reader says of a damaged file is known") {
  check_sentences({
      {"AssertionError: short read from part-3.bin", "", "read-ended", "short-file"},
      {"warning: the file looks corrupt, 3 of 9 blocks remain", "", "damaged-by-its-reader",
       "short-file"},
      {"write error: Quota of the project is used up", "", "write-failed", "unfinished-save"},
      {"gguf: array for key tokenizer.tokens has wrong type f32", "", "metadata-key-type",
       "older-program"},
      {"gguf: tensor name 12 is too long: 90 >= 64", "", "impossible-length", "unreadable"},
  });
}

TEST_CASE("explain: a setting, an adapter or a library that a sentence names is known") {
  check_sentences({
      {"RuntimeError: activation checkpointing needs use_reentrant=False", "",
       "activations-recomputed", "not-about-a-checkpoint"},
      {"ValueError: only one adapter can be active while weights are offloaded", "",
       "one-adapter-only", "adapter"},
      {"ValueError: this model has already been quantized with bnb", "", "quantised-already",
       "quantised"},
      {"ValueError: the weights are not quantized, nothing to unpack", "", "quantised-not-yet",
       "quantised"},
      {"scipy changed on disk; please restart your notebook", "", "restart-needed",
       "older-library"},
      {"iq1_s needs an imatrix", "", "importance-matrix", "imatrix"},
      {"ValueError: cannot partition 6 kv heads over 4 tp ranks", "", "not-cut-so",
       "other-world-size"},
      {"UnknownModelError: unrecognized LyCORIS format in style.safetensors", "", "adapter-form",
       "adapter-names"},
      {"ImportError: xformers is incompatible with this version of torch", "", "library-pair",
       "older-library"},
      {"ValueError: save_dir must not be the same as the source", "", "output-is-input",
       "option-refused"},
      {"no layer class to wrap was given, could not shard", "", "wrap-class", "option-refused"},
      {"ValueError: unhandled norm_type: deepnorm", "", "value-unexpected", "older-program"},
  });
}

TEST_CASE("explain: what files, names and settings lack is known whoever speaks") {
  check_sentences({
      {"RuntimeError: no files matching step_*.pt in the checkpoint folder", "", "no-such-files",
       "missing-part"},
      {"ValueError: more than one matching key for the tensor", "", "fits-more-than-one",
       "names-collide"},
      {"RuntimeError: codec 'zfp' has already been registered", "", "taken-already",
       "call-differs"},
      {"RuntimeError: the export section carries no rope theta", "", "declares-none",
       "part-missing"},
      {"ValueError: please specify the shape of the vocabulary", "", "setting-not-given",
       "option-refused"},
      {"settings.yaml is empty: the root level needs names", "", "not-json-object",
       "unreadable-json"},
      {"TimeoutError: waited 1800 s for peer 3", "", "waited-too-long", "rank-waits"},
      {"RuntimeError: cannot determine the checkpoint type of this folder", "",
       "form-not-recognised", "other-format"},
  });
}

TEST_CASE("explain: ONNX, Rust and other programs are known by their own words") {
  check_sentences({
      {"Fail: Load model from m.onnx failed: This is an invalid model. Error: Duplicate name",
       "ONNX "
       "Runtime",
       "onnx-graph-invalid", "onnx-graph"},
      {"Error: missing field `rope_theta` at line 1 column 400", "", "rust-json-field",
       "config-disagrees"},
      {"ModuleNotFoundError: No module named 'transformers_modules.Phi-3'", "transformers",
       "remote-code-folder", "folder-name"},
      {"KeyError: 'slow_buffer'", "", "optimizer-buffer-key", "other-optimizer"},
      {"KeyError: 'mid_block.to_v_lora.up.weight'", "", "adapter-key", "adapter-names"},
      {"AttributeError: 'Namespace' object has no attribute 'moe_router_bias'", "",
       "arguments-object", "other-version"},
      {"UnboundLocalError: cannot access local variable 'proj' where it is not associated with a "
       "value",
       "", "unbound-local", "program-defect"},
      {"OpError: run/model.ckpt-9.index; No such file or directory", "TensorFlow",
       "file-not-there-of-list", "missing-file"},
      {"tensor 'decoder.ln.bias' has wrong size in model file",
       "whisper.cpp or "
       "stable-diffusion.cpp",
       "ggml-unknown-tensor", "short-file"},
      {"ValueError: buffer is smaller than requested size", "", "buffer-too-small", "short-file"},
  });
}

TEST_CASE("explain: keys that show which program asked are known") {
  check_sentences({
      {"KeyError: 'MASTER_PORT'", "", "environment-key", "launcher"},
      {"KeyError: 'blk.3.ffn_gate_exps.weight'", "", "gguf-name-key", "gguf-keys"},
      {"KeyError: 'best_metric'", "", "checkpoint-part", "other-format"},
      {"KeyError: 'NODE_RANK'", "", "environment-key", "launcher"},
      {"KeyError: 'anything_v5.ckpt'", "", "file-key", "wrong-path"},
      {"KeyError: 'head.bias'", "", "weight-key", "missing-key"},
      {"ValueError: need at least one array to concatenate", "", "nothing-to-join", "missing-part"},
      {"convert.sh: line 7: --outtype: command not found", "", "shell-line", "option-refused"},
  });
  ErrorText parsed = parse_error_text("!!! Exception during processing !!! 'a.0.to_q.weight'");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].name == "a.0.to_q.weight");
}

TEST_CASE("explain: a key that is a sentence is read as one") {
  ErrorText parsed = parse_error_text(
      "raise KeyError(f\"Key {key} not found\")\nKeyError: 'Key a.norm.weight not found here'");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].name == "a.norm.weight");
}

TEST_CASE("explain: torch's older words of two shapes have their sides") {
  ErrorText parsed = parse_error_text(
      "size mismatch for e.weight: copying a param of torch.Size([150, 8]) from checkpoint, where "
      "the shape is torch.Size([149, 8]) in current model.");
  REQUIRE(parsed.messages.size() == 1);
  CHECK(parsed.messages[0].saved == Extents{150, 8});
  CHECK(parsed.messages[0].current == Extents{149, 8});
}

TEST_CASE("explain: a traceback without its file lines is told by the code above the error") {
  check_sentences({
      {"    rank = lora_state[key].shape[0]\nIndexError: list index out of range", "",
       "raised-in-adapter", "adapter"},
  });
}

TEST_CASE("explain: a model that was built with nothing along an axis is not a rank's part") {
  CHECK(first(explain(sentence({500, 32}, {0, 32}, "field.images.weight"))) ==
        "empty-side request");
  CHECK(first(explain(sentence({0, 32}, {500, 32}, "field.images.weight"))) ==
        "empty-side checkpoint");
}

TEST_CASE("explain: ends of other programs and libraries that do not fit are told") {
  check_sentences({
      {"OSError: work_dirs/epoch_3.pth is not a checkpoint file", "mmengine",
       "not-a-checkpoint-file", "wrong-path"},
      {"msgpack.exceptions.ExtraData: unpack(b) received extra data.", "Flax", "not-this-msgpack",
       "other-format"},
      {"Assertion failed: mpiSize == tp * pp", "TensorRT-LLM", "ranks-of-engine",
       "other-world-size"},
      {"ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory", "",
       "binary-of-another-library", "not-about-a-checkpoint"},
      {"RuntimeError: Number of requested LoRAs (9) is greater than the number of GPU LoRA slots "
       "(2).",
       "vLLM or SGLang", "lora-slots", "not-about-a-checkpoint"},
      {"TypeError: cannot unpack non-iterable Settings object", "", "nothing-where-something",
       "other-format"},
      {"ValueError: unknown zero stage 3", "DeepSpeed", "zero-stage-unknown", "older-program"},
      {"RuntimeError: /c/lang/HL.pt does not exist. Make sure that it was compiled", "",
       "file-does-not-exist", "missing-part"},
      {"ERROR: Cannot find the metadata config file: /c/m.json. See https://docs.some.site.io/x",
       "", "metadata-differs", "metadata-differs"},
      {"ValueError: unknown zero stage 7", "", "not-zero-file", "other-format"},
      {"Exception: Layer shape (64, 3) not compatible with weight shape (64, 7).", "Keras",
       "shapes", "H-C"},
      {"Downcasting not allowed: target.dtype=torch.float8_e4m3fn, loaded_weight.dtype="
       "torch.bfloat16",
       "", "dtype-differs", "dtype-differs"},
      {"RuntimeError: Missing key(s) in state_dict: \"h.0.attn.g_idx\", \"h.1.attn.g_idx\".", "",
       "missing-key", "older-format"},
  });
}
