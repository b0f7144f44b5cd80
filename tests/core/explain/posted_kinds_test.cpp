// Kinds of messages that were learned from public threads, each with a message that its row was not
// written from, and with messages that look alike and mean something else.
#include <doctest/doctest.h>

#include "core/explain/error_text.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: first bytes in a message tell which of two forms of llama.cpp a file has") {
  check_sentences({
      {"error loading model: unknown (magic, version) combination: 46554747, 00000001", "llama.cpp",
       "gguf-read-by-old", "older-program"},
      {"unknown (magic, version) combination: 67676d66, 00000001", "llama.cpp", "ggml-read-by-new",
       "other-format"},
      {"unknown (magic, version) combination: 04034b50, 00000014", "llama.cpp", "gguf-magic",
       "other-format"},
      {"ValueError: Failed to load model from file: /m/vicuna.ggmlv3.q5_1.bin", "llama.cpp",
       "llama-python-failed", "other-format"},
  });
}

TEST_CASE("explain: KeyError in a line of code is not a message") {
  const std::string place =
      "File \"/x/transformers/models/auto/configuration_auto.py\", line 7, in __getitem__\n"
      "  raise KeyError(key)\n";
  CHECK(form_of(place + "KeyError: 'newllm'") == "raised-in-auto-class");
  CHECK(form_of("12   except KeyError:\n 13     pass\nKeyError: 'exp_avg'") == "adam-state");
  CHECK(form_of("raise KeyError('exp_avg')") == "adam-state");
}

TEST_CASE("explain: a name says which part of a model code asked for in vain") {
  check_sentences({
      {"KeyError: 'language_model.lm_head.weight'", "", "tied-key", "tied"},
      {"KeyError: 'lm_head.weight'", "", "tied-key", "tied"},
      {"KeyError: 'gpt_neox.embed_in.weight'", "", "embedding-key", "renamed"},
      {"KeyError: 'rope.freqs'", "", "meta-form-key", "other-format"},
      {"KeyError: 'model.layers.3.mlp.up_proj.qweight'", "", "quantisation-key", "quantised"},
      {"ModuleNotFoundError: No module named 'networks.unet'", "", "pickled-class",
       "module-not-here"},
      {"ModuleNotFoundError: No module named 'einops'", "", "module-not-here", "module-not-here"},
      {"RuntimeError: Missing key in checkpoint state_dict: optimizer.state.0.exp_avg.", "",
       "missing-key", "optimizer-form"},
  });
}

TEST_CASE("explain: the place of an error without words of its own tells the part of the load") {
  check_sentences({
      {"File \"/x/comfy/model_detection.py\", line 9, in detect_unet_config\n  a = sd[k]\n"
       "KeyError: 'x_in'",
       "", "raised-in-detection", "other-format"},
      {"File \"/x/planner_helpers.py\", line 9, in f\n  a = b\nKeyError: 'table'",
       "torch.distributed.checkpoint", "raised-in-planner", "renamed"},
      {"File \"/x/check.py\", line 9, in f\n  torch.testing.assert_close(a, b)\n"
       "AssertionError: -1.0 vs 2.0",
       "", "raised-in-comparison", "converted-wrongly"},
      {"File \"/x/modeling_utils.py\", line 9, in f\n  if resolved_archive_file.startswith(a):\n"
       "AttributeError: 'NoneType' object has no attribute 'startswith'",
       "", "raised-without-file", "wrong-path"},
  });
}

TEST_CASE("explain: a folder or an option that a library does not take is told") {
  check_sentences({
      {"OSError: Model name 'runs/a' was not found in model name list (bert-base). We assumed "
       "'runs/a' was a path to a configuration file named config.json",
       "transformers", "assumed-a-path", "wrong-path"},
      {"FileNotFoundError: File not found: /c/params/w/.zarray", "Orbax", "zarray-missing",
       "missing-part"},
      {"TypeError: Dtype not understood: F4", "", "unknown-dtype", "older-program"},
      {"TypeError: TrainingArguments.__init__() got an unexpected keyword argument "
       "'evaluation_strategy'",
       "", "unknown-option", "older-program"},
  });
  CHECK(form_of("Skipping layer 3: already quantized") != "quantised-already");
  CHECK(form_of("NotImplementedError: unsupported class Foo") != "unsafe-global");
}

TEST_CASE("explain: two grids of places in a tensor are of pictures of two sizes") {
  const Explanation filter = explain(sentence({14, 8, 4, 2}, {24, 13, 4, 2}, "block.filter"));
  CHECK(first(filter) == "H-P either");
  const Explanation table = explain(sentence({1, 64, 64, 768}, {1, 32, 32, 768}, "table"));
  CHECK(first(table) == "H-P either");
  // The window of a convolution, and sizes that are no grid.
  CHECK(first(explain(sentence({64, 3, 3, 3}, {64, 3, 7, 7}, "conv.weight"))) != "H-P either");
  CHECK(first(explain(sentence({14, 30, 4}, {24, 50, 4}, "block.filter"))) != "H-P either");
}

TEST_CASE("explain: Keras's last axis is a layer's outputs") {
  const std::string begin =
      "ValueError: Shape mismatch in layer #3 (named dense)for weight "
      "dense/kernel. Weight expects shape ";
  const Explanation outputs =
      explain(begin + "(128, 7). Received saved weight with shape (128, 3)");
  CHECK(first(outputs) == "H-C request");
  const Explanation inputs = explain(begin + "(64, 7). Received saved weight with shape (128, 7)");
  CHECK(first(inputs) != "H-C request");
}

TEST_CASE("explain: lists of names tell the program, the copy and the part that they are of") {
  check_cases({
      {"Missing key(s) in state_dict: \"tok_embeddings.weight\", \"layers.0.attention.wq.weight\". "
       "Unexpected key(s) in state_dict: \"model.embed_tokens.weight\", "
       "\"model.layers.0.self_attn.q_proj.weight\".",
       "missing-key", "other-format", "tok_embeddings.weight"},
      {"unexpected key in source state_dict: ema_neck_conv_weight, ema_neck_conv_bias",
       "unexpected-key", "averaged-copy", "ema_neck_conv_weight"},
      {"unexpected key in source state_dict: backbone.stem.0.weight, backbone.stem.1.weight",
       "unexpected-key", "part-of-larger", "backbone.stem.0.weight"},
      {"Unexpected key(s) in state_dict: \"layer1.0.conv2.bias\".", "unexpected-key", "bias-extra",
       "layer1.0.conv2.bias"},
      {"weight model.layers.3.self_attn.rotary_emb.inv_freq does not exist", "missing-key",
       "buffer", "model.layers.3.self_attn.rotary_emb.inv_freq"},
  });
  // One family on both sides, and a word inside another one.
  const std::string same =
      "Missing key(s) in state_dict: \"model.layers.0.self_attn.q_proj.weight\", "
      "\"model.layers.1.self_attn.q_proj.weight\". Unexpected key(s) in state_dict: "
      "\"encoder.layers.9.self_attn.o_proj.weight\", \"encoder.layers.8.self_attn.o_proj.weight\".";
  CHECK(first(explain(same)) != "other-format request");
  CHECK(first(explain("Unexpected key(s) in state_dict: \"a.schema.weight\".")) !=
        "averaged-copy request");
}

TEST_CASE("explain: ends of an engine are told from a file that it refused") {
  check_sentences({
      {"Error loading model. (Exit code: 6). Please check settings and try loading the model "
       "again.",
       "", "engine-ended", "details-missing"},
      {"TypeError: Cannot read properties of undefined (reading 'architecture')", "",
       "program-script-failed", "program-defect"},
      {"error: ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected",
       "llama.cpp", "engine-ended", "device-unfit"},
      {"AttributeError: 'NoneType' object has no attribute 'cadam32bit_grad_fp32'", "bitsandbytes",
       "native-library-missing", "older-library"},
      {"ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'", "",
       "kernel-compile-failed", "device-unfit"},
  });
  CHECK(form_of("AttributeError: 'NoneType' object has no attribute 'shape'") !=
        "native-library-missing");
}

TEST_CASE("explain: a path or a file of another kind than the loader wants is told") {
  check_sentences({
      {"ValueError: Calling T5Tokenizer.from_pretrained() with the path to a single file or url is "
       "not supported for this tokenizer.",
       "transformers", "single-file-given", "wrong-path"},
      {"Exception: could not load model: /m/sdxl-inpaint.safetensors", "OneTrainer",
       "could-not-load-model", "other-format"},
      {"SafetensorError: File does not contain tensor emb_params", "", "tensor-of-other-kind",
       "other-format"},
      {"safetensors_rust.SafetensorError: File does not contain tensor model.norm.weight", "",
       "safetensors-no-tensor", "index-disagrees"},
      {"ValueError: Can not map tensor 'model.vision_tower.blocks.0.norm.weight'", "llama.cpp",
       "gguf-convert", "part-extra"},
      {"ValueError: Can not map tensor 'model.layers.0.extra.weight'", "llama.cpp", "gguf-convert",
       "renamed"},
  });
}

TEST_CASE("explain: one number with and without an axis is the same number") {
  CHECK(first(explain(sentence({}, {1}, "logit_scale"))) == "H-1 either");
  CHECK(first(explain(sentence({1}, {}, "logit_scale"))) == "H-1 either");
}
