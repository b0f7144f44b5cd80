// Errors whose own words say little: what the traceback, the assertion and the log's form add.
#include <doctest/doctest.h>

#include "core/explain/general_kinds.h"
#include "core/explain/pasted_text.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: the innermost known place of a traceback tells what the code did") {
  const std::string saving = "File \"t/trainer.py\", line 9, in _save_checkpoint\n  self.write()\n";
  const std::string reading = "File \"torch/serialization.py\", line 2, in _load\n  x = f()\n";
  const std::string unknown = "File \"/x/foo.py\", line 2, in bar\n  y = g()\n";
  CHECK(form_of(saving + reading + unknown + "IndexError: tuple") == "raised-while-reading");
  CHECK(form_of(reading + saving + unknown + "IndexError: tuple") == "raised-while-saving");
  CHECK(form_of(unknown + "IndexError: tuple") == "");
  CHECK(form_of("IndexError: tuple") == "");
}

TEST_CASE("explain: a key alone is explained by the place that asked for it") {
  const std::string place =
      "File \"/x/llama.py\", line 9, in load_weights\n  param = params_dict[name]\n";
  CHECK(form_of(place + "KeyError: 'wv_b'") == "raised-while-filling");
  CHECK(form_of("KeyError: 'wv_b'") == "error-in-key");
}

TEST_CASE("explain: the line above a bare AssertionError is the sentence") {
  const std::string before(700, 'x');
  CHECK(form_of(before + "\n  assert self.in_features % self.group_size == 0\n  ^^^^\n"
                         "AssertionError") == "block-size");
  CHECK(form_of(before + "\n  assert torch.isnan(w).sum() == 0\nAssertionError\n") ==
        "values-not-finite");
  // An assertion with words of its own is read by these.
  CHECK(form_of("  assert torch.isnan(w).sum() == 0\nAssertionError: no model here") == "");
}

TEST_CASE("explain: prefixes of servers, containers and workers are taken off") {
  const std::string sentence = "ValueError: two words";
  for (const std::string prefix :
       {"[2026-02-14 07:48:15 TP6] ", "(WorkerDict pid=17, ip=10.1.2.3) ", "trainer-04-1  | ",
        "(EngineCore_0 pid=33) ERROR 08-22 10:01:44 [core.py:700] ", "[02/14/2026-07:48:15] "}) {
    CAPTURE(prefix);
    CHECK(pasted_text("a\n" + prefix + sentence).text == "a\n" + sentence);
  }
  for (const std::string kept : {"(4096, 4096) is a shape", "[64, 2] is one too",
                                 "llama-2 is | a name", "model.layers.0.mlp-1 | mismatch |"}) {
    CAPTURE(kept);
    CHECK(pasted_text("a\n" + kept).text == "a\n" + kept);
  }
}

TEST_CASE("explain: sizes that no part explains are of another model, and say their config key") {
  const Explanation vocabulary = explain(
      "size mismatch for model.embed_tokens.weight: copying a param with shape torch.Size([64000, "
      "5120]) from checkpoint, the shape in current model is torch.Size([125696, 5120])");
  CHECK(first(vocabulary) == "H-M either");
  CHECK(vocabulary.hypotheses[0].text.find("dim 0 is vocab_size: 64000 in the file, 125696") !=
        std::string::npos);
  const Explanation width = explain(
      "size mismatch for model.layers.0.mlp.down_proj.weight: copying a param with shape "
      "torch.Size([4096, 14336]) from checkpoint, the shape in current model is torch.Size([4096, "
      "11008])");
  CHECK(first(width) == "H-M either");
  CHECK(width.hypotheses[0].text.find("intermediate_size: 14336 in the file") != std::string::npos);
  // A state's sizes may be an uneven part.
  CHECK(first(explain(sentence({88}, {86}, "optimizer.state.0.exp_avg"))) != "H-M either");
}

TEST_CASE("explain: a buffer of another length is not a lost part") {
  CHECK(first(explain("Buffer shape mismatch for model.rotary_emb.inv_freq: expected (64,), got "
                      "(32,)")) == "H-B request");
}

TEST_CASE("explain: sentences are recognised by one thing that they name") {
  check_sentences({
      {"AssertionError: KV cache scales map for TP rank 1 is malformed. Expected 32 layers, got "
       "28.",
       "", "kv-scales", "quantised"},
      {"ValueError: FP8 row-wise scale must have shape (out_features,), got weight=(4096, 4096) "
       "scale=(1,)",
       "", "scale-shape", "quantised"},
      {"ValueError: NPU arch35 MXFP8 linear requires K to be divisible by 64, got 7200.", "",
       "sizes-not-divisible", "block-size"},
      {"Attempted to read a PyTorch file with version 10, but the maximum supported version for "
       "reading is 6.",
       "", "older-pickle-reader", "older-program"},
      {"RuntimeError: CUDA error: invalid device ordinal", "torch", "device-number",
       "map-location"},
      {"KeyError: 'lm_head.weight'", "", "tied-key", "tied"},
      {"KeyError: 'num_key_value_heads'", "", "config-key", "config-disagrees"},
      {"error loading model hyperparameters: invalid n_rot: 160, expected 128", "llama.cpp",
       "gguf-hyperparameters", "config-disagrees"},
      {"KeyError: \"There is no item named 'archive/data.pkl' in the archive\"", "",
       "archive-part-missing", "other-form"},
      {"AssertionError: the model format should be in ['llama', 'hf', 'awq', None]", "",
       "value-not-allowed", "option-refused"},
  });
}

TEST_CASE("explain: the last error that is of a kind tells, not one without words of its own") {
  CHECK(form_of("RuntimeError: GGUF conversion was killed by the operating system (SIGKILL)\n"
                "Traceback\nRuntimeError: foo") == "memory-killed");
  CHECK(form_of("ValueError: weight has some elements = infinity\nRuntimeError: the manifest lacks "
                "shard 3") == "index-disagrees");
}

TEST_CASE("explain: a part of a flat parameter that was rounded up is one rank's") {
  const std::string text = "The size of tensor a (56124554) must match the size of tensor b ";
  CHECK(first(explain(text + "(14031139) at non-singleton dimension 0")) ==
        "one-ranks-part checkpoint");
  CHECK(first(explain(text + "(14031200) at non-singleton dimension 0")) == "other-model either");
}

TEST_CASE("explain: the head of a detector or of a new task is told by its name") {
  const std::string shapes =
      ": copying a param with shape torch.Size([80, 128, 1, 1]) from checkpoint, the shape in "
      "current model is torch.Size([2, 128, 1, 1]).";
  CHECK(first(explain("size mismatch for bbox_head.multi_level_conv_cls.0.weight" + shapes)) ==
        "H-C request");
  // No run has 40 tensor-parallel ranks.
  CHECK(first(explain("size mismatch for neck.reduce.0.weight" + shapes)) == "H-M either");
  CHECK(first(explain("Some weights of BertForSequenceClassification were not initialized from the "
                      "model checkpoint at x and are newly initialized: ['classifier.bias', "
                      "'classifier.weight']")) == "new-head request");
}

TEST_CASE("explain: settings of dtypes, stages and adapters are known whoever speaks") {
  check_sentences({
      {"Torch.bfloat16 is not supported for quantization method awq. Supported dtypes: "
       "[torch.float16]",
       "", "dtype-of-kernel", "dtype-differs"},
      {"AssertionError: zero stage mismatch: The checkpoint was saved with stage 2 but the run "
       "uses "
       "stage 3",
       "", "zero-stage", "other-zero-stage"},
      {"ValueError: Adapter with name default already exists. Please use a different name.", "",
       "adapter-name-taken", "adapter-name"},
      {"error loading model: tokenizer model 'gpt4o' unknown", "llama.cpp", "gguf-tokenizer",
       "tokenizer"},
  });
  CHECK(form_of("Assertion `srcIndex < srcSelectDimSize` failed.") == "index-outside");
}

TEST_CASE("explain: a layer that no rank cuts is of another model even at twice the rows") {
  const std::string shapes =
      ": copying a param with shape torch.Size([256, 256]) from checkpoint, the shape in current "
      "model is torch.Size([512, 256]).";
  CHECK(first(explain("size mismatch for _trajectory_head.anchor_scorer.3.weight" + shapes)) ==
        "H-M either");
  CHECK(first(explain("size mismatch for model.layers.0.self_attn.q_proj.weight" + shapes)) ==
        "H-TP checkpoint");
}

TEST_CASE("explain: sentences about the run around a checkpoint are told apart") {
  check_sentences({
      {"RuntimeError: Input type (float) and bias type (c10::Half) should be the same", "",
       "dtypes-meet", "dtype-differs"},
      {"404 Client Error: Not Found for url: https://huggingface.co/x/y/resolve/main/config.json",
       "", "hub-has-none", "not-downloaded"},
      {"ERROR: Could not consume arg: --quantization_bits", "", "argument-unknown",
       "option-refused"},
      {"The server socket has failed to bind to [::]:29500", "", "port-taken",
       "not-about-a-checkpoint"},
      {"AttributeError: 'str' object has no attribute 'decode'", "Keras", "keras-decode",
       "older-library"},
      {"KeyError: (0, 0)", "", "rank-pair-key", "rank-files-missing"},
  });
}

TEST_CASE("what a program warned of before its traceback is no cause") {
  const std::string warned =
      "FutureWarning: You are using `torch.load` with `weights_only=False`\n"
      "There were missing keys in the checkpoint model loaded: ['lm_head.weight'].\n";
  const std::string failed =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in load\n"
      "RuntimeError: Error(s) in loading state_dict for Net:\n"
      "\tsize mismatch for fc.weight: copying a param with shape torch.Size([8, 4]) from "
      "checkpoint, the shape in current model is torch.Size([8, 8]).\n";
  const auto read = parse_error_text(warned + failed);
  REQUIRE(read.messages.size() == 1);
  CHECK(read.messages[0].name == "fc.weight");
  CHECK_FALSE(parse_error_text(warned).messages.empty());
  const std::string vague = "Traceback (most recent call last):\nRuntimeError: it failed\n";
  CHECK(parse_error_text(warned + vague).messages == parse_error_text(warned).messages);
}
