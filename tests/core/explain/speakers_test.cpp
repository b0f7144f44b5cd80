// Messages of servers, converters, diffusion programs and training frameworks: whose names and
// shapes they print, and the conclusions.
#include <doctest/doctest.h>

#include <string>

#include "core/explain/general_kinds.h"
#include "core/explain/pasted_text.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: names that a server did not fill are the server's own") {
  const std::string vllm = "ValueError: Following weights were not initialized from checkpoint: ";
  check_sentences({
      {vllm + "{'model.layers.5.mtp_block.mlp.gate.weight', 'model.layers.5.eh_proj.weight'}",
       "vLLM or SGLang", "missing-key", "mtp-lost"},
      {vllm + "{'visual.blocks.2.norm1.bias', 'visual.merger.mlp.0.weight'}", "vLLM or SGLang",
       "missing-key", "part-missing"},
      {vllm + "{'model.layers.30.mlp.gate_up_proj.weight', 'model.layers.31.norm.weight', "
              "'model.layers.31.self_attn.qkv_proj.weight'}",
       "vLLM or SGLang", "missing-key", "layers-missing"},
      {vllm + "{'model.layers.7.mlp.shared_experts.gate_up_proj.weight'}", "vLLM or SGLang",
       "missing-key", "config-disagrees"},
      {"RuntimeError: weight model.norm.weight does not exist", "an inference server",
       "missing-key", "config-disagrees"},
      {"RuntimeError: Required but not provided tensors:{'transformer.layers.3.attention.qkv."
       "per_channel_scale'}",
       "an inference server", "missing-key", "quantised"},
  });
}

TEST_CASE("explain: a prefix in one list alone is not called a renaming") {
  for (const Hypothesis& one :
       explain("Missing key(s) in state_dict: \"model.norm.weight\"").hypotheses)
    CHECK(one.title.find("\"model.\"") == std::string::npos);
  CHECK(first(explain("Missing key(s) in state_dict: \"model.norm.weight\".\n"
                      "Unexpected key(s) in state_dict: \"norm.weight\".")) == "renamed either");
}

TEST_CASE("explain: names that MLX has no place for tell their part") {
  check_sentences({
      {"ValueError: Received 1 parameters not in model: \nlm_head.weight.", "MLX", "unexpected-key",
       "tied"},
      {"ValueError: Received 2 parameters not in model: \nmodel.layers.0.q_proj.scales,\n"
       "model.layers.0.q_proj.biases.",
       "MLX", "unexpected-key", "quantised"},
      {"ValueError: Received parameters not in model: visual.blocks.3.fc1.bias "
       "visual.blocks.4.fc1.weight",
       "MLX", "unexpected-key", "part-extra"},
      {"ValueError: Received 1 parameters not in model: \nmodel.mtp.fc.weight.", "MLX",
       "unexpected-key", "mtp-extra"},
      {"ValueError: Received 1 parameters not in model: \nmodel.layers.0.q_norm.weight.", "MLX",
       "unexpected-key", "other-family"},
  });
  ErrorText spaced = parse_error_text("Received parameters not in model: a.0.weight b.1.bias");
  REQUIRE(spaced.messages.size() == 2);
  CHECK(spaced.messages[1].name == "b.1.bias");
}

TEST_CASE("explain: sentences about quantised layers are distinguished") {
  check_sentences({
      {"AttributeError: 'RowParallelLinear' object has no attribute 'weight'", "",
       "layer-without-weight", "quantised"},
      {"AttributeError: 'Linear' object has no attribute 'flux'", "", "attribute-of-class",
       "other-version"},
      {"ValueError: Detected some but not all shards of model.layers.9.qkv_proj are quantized.",
       "vLLM or SGLang", "quantised-shards-differ", "quantised"},
      {"KeyError: 'layers.3.mlp.experts.w2_bias'", "vLLM or SGLang", "server-key", "quantised"},
      {"ValueError: Failed to find a kernel that can implement the WNA16 linear layer.",
       "an inference server", "kernel-sizes", "kernel-sizes"},
      {"RuntimeError: Cannot load `awq` weight, make sure the model is already quantized", "",
       "not-quantised", "quantised"},
      {"missing fp8 scale companion for tensor \"model.layers.0.mlp.up_proj.weight\"", "",
       "quantised-state-missing", "quantised"},
      {"NotImplementedError: Quant method is not yet supported: 'hqq'", "",
       "quantisation-unsupported", "quantised"},
  });
}

TEST_CASE("explain: sentences of llama.cpp's converter and of Ollama are known") {
  check_sentences({
      {"NotImplementedError: BPE pre-tokenizer was not recognized - update get_vocab_base_pre()",
       "llama.cpp", "gguf-tokenizer", "tokenizer"},
      {"ValueError: Duplicated tensor name 'output.weight'", "", "tensor-twice", "two-copies"},
      {"gguf_init_from_file: failed to open GGUF file '/m/x.gguf'", "llama.cpp", "gguf-cannot-open",
       "wrong-path"},
      {"Error: invalid file magic", "llama.cpp", "gguf-magic", "other-format"},
      {"Error: unsupported architecture \"FooForCausalLM\"", "", "unknown-architecture",
       "older-program"},
      {"Error: invalid character 'N' looking for beginning of value", "", "not-json",
       "unreadable-json"},
      {"Error: digest mismatch, file must be downloaded again: want sha256:1a got sha256:2b", "",
       "download-checksum", "bad-record"},
  });
}

TEST_CASE("explain: the version that CTranslate2 reads is the first bytes of the file") {
  const std::string text = "but the model has binary version v";
  CHECK(first(explain(text + "1936876918.")) == "git-lfs-pointer checkpoint");
  CHECK(first(explain(text + "67324752.")) == "other-format checkpoint");
  CHECK(first(explain(text + "8.")) == "older-program request");
}

TEST_CASE("explain: sentences of diffusion programs are known") {
  check_sentences({
      {"ValueError: The following keys have not been correctly renamed: \n\n "
       "lora_unet_conv_in.lora_mid.weight, lora_unet_conv_out.lora_mid.weight",
       "diffusers", "adapter-leftovers", "adapter-names"},
      {"KeyError: 'blocks.7.ffn.2.lora_down.weight'", "", "adapter-leftovers", "adapter-names"},
      {"ERROR: VAE is invalid: None", "", "component-missing", "component-missing"},
      {"clip missing: ['logit_scale']", "ComfyUI", "missing-key", "other-variant"},
  });
}

TEST_CASE("explain: in sentences of diffusion programs and frameworks each shape has its side") {
  const std::vector<TwoShapes> sentences = {
      {"WARNING SHAPE MISMATCH a.b.weight WEIGHT NOT MERGED torch.Size([30, 6]) != "
       "torch.Size([30, 36])",
       "ComfyUI",
       {30, 6},
       {30, 36}},
      {"Cannot load because a.b.weight expected shape tensor(..., device='meta', size=(32, 3)), "
       "but got torch.Size([64, 3]).",
       "diffusers",
       {64, 3},
       {32, 3}},
      {"a.b.weight has an expected shape of: torch.Size([32, 64]), but the loaded GGUF weight "
       "decodes to shape: torch.Size([32, 36])",
       "diffusers",
       {32, 36},
       {32, 64}},
      {"Shape mismatch for key 'a.b': original torch.Size([4]) vs collected torch.Size([8])",
       "verl",
       {8},
       {4}},
      {"Bad in-place call: input tensor size [8, 1] and output tensor size [4, 4] should match",
       "torch",
       {8, 1},
       {4, 4}},
  };
  check_two_shapes(sentences);
}

TEST_CASE("explain: sentences of training frameworks are known") {
  check_sentences({
      {"    assert isinstance(weight, torch.distributed._tensor.DTensor)\nAssertionError", "",
       "merge-plain-tensors", "plain-tensors"},
      {"AttributeError: 'Tensor' object has no attribute '_local_tensor'", "",
       "merge-plain-tensors", "plain-tensors"},
      {"FileNotFoundError: Config file not found: /c/actor/fsdp_config.json", "verl",
       "no-fsdp-config", "wrong-path"},
      {"RuntimeError: Unsloth: Saving LoRA finetune failed since # of LoRAs = 8 does not match # "
       "of saved modules = 4.",
       "unsloth", "merge-counts", "adapter-names"},
      {"FileNotFoundError: --checkpoint.load_step=70 not found at out/step-70", "",
       "no-checkpoint-here", "wrong-path"},
      {"RuntimeError: Expert checkpoint file is corrupt: key 'a.b.3.w1' not found in /c/x.pt",
       "DeepSpeed", "expert-file-broken", "expert-layout"},
      {"ValueError: Invalid for universal checkpoint: /c/latest_universal does not exist",
       "DeepSpeed", "universal-not-made", "not-converted"},
      {"Unable to load optimizer from checkpoint /c/iter_7. Specify --no-load-optim", "Megatron",
       "no-optimizer-in-file", "no-optimizer-state"},
      {"Object shard /c/iter_1/rng_state/shard_0_8.pt not found", "", "per-rank-object",
       "per-rank-object"},
      {"Item \"params\" was not found in the checkpoint. Available items: ['default']", "Orbax",
       "orbax-item", "wrong-item"},
  });
}

TEST_CASE("explain: sizes that a name decides are not read as ranks") {
  CHECK(first(explain(sentence({1000, 768}, {10, 768}, "head.weight"))) == "H-C request");
  CHECK(first(explain(sentence({1000, 768}, {10, 768}, "layers.3.fc.weight"))) != "H-C request");
  Explanation table = explain(sentence({1, 197, 768}, {1, 577, 768}, "pos_embed"));
  CHECK(first(table) == "H-P request");
  CHECK(table.hypotheses[0].text.find("1 + 14 x 14") != std::string::npos);
  CHECK(first(explain(sentence({2048}, {2048, 1}, "a.weight_scale"))) == "H-1 either");
  CHECK(first(explain(sentence({64, 36}, {64, 64}, "blk.0.attn_q.weight"))) == "H-G request");
  CHECK(first(explain(sentence({96, 3, 4, 4}, {96, 3, 8, 8}, "patch_embed.proj.weight"))) ==
        "H-CW request");
  CHECK(first(explain(sentence({3, 3, 64, 128}, {5, 5, 64, 128}, "conv.kernel"))) ==
        "H-CW request");
  const std::string flax =
      "expected to generate shape (3, 3, 64, 128) but got shape (3, 3, 64, "
      "256) instead for parameter \"kernel\"";
  for (const std::string& text :
       {flax, sentence({3, 3, 64, 128}, {3, 3, 64, 256}, "conv.kernel")}) {
    for (const Hypothesis& one : explain(text).hypotheses) CHECK(one.id != "H-CW");
  }
}

TEST_CASE("explain: a sentence of an unknown program is recognised by its words") {
  check_sentences({
      {"FileExistsError: Checkpoint directory /c/1 already holds a published checkpoint.", "",
       "already-there", "already-there"},
      {"RuntimeError: restore resolves to /c/1, which an interrupted save left incomplete: not a "
       "whole checkpoint",
       "", "unfinished", "unfinished-save"},
      {"RuntimeError: Optimizer checkpoint missing param_state for this sharding", "",
       "optimizer-differs", "optimizer-groups"},
      {"ValueError: Expected '/m/x' to contain .bin or .safetensors files", "", "no-weights",
       "other-format"},
      {"ValueError: Model is sharded, but checkpoint is not sharded.", "", "sharded-or-whole",
       "sharded-state-dict"},
      {"ValueError: Checkpoint shard must stay inside the model directory: ../x", "",
       "path-outside", "path-escape"},
      {"AssertionError: mismatch keys {'lm_head.weight'} of the state dict", "", "names-differ",
       "renamed"},
      {"RuntimeError: Checkpoint /m has 12 keys absent from the built model (['a.b.0.weight'])", "",
       "unexpected-key", "renamed"},
      {"RuntimeError: Unexpected missing keys when loading weights: ['a.b.0.weight']", "",
       "missing-key", "renamed"},
      {"TypeError: unexpected dtype torch.uint8 of the param a.b.0.weight", "", "dtype-differs",
       "dtype-differs"},
      {"ValueError: Unable to find `CheckpointArgs` registered for <a.b.c.Handler object at 0x7f>",
       "", "class-unknown", "class-unknown"},
  });
  // Lines of a log before the error, or about something else, mean nothing.
  CHECK(parse_error_text("optimizer missing, checkpoint not found in cache\n" +
                         std::string(700, 'x') + "\nValueError: batch must divide by 3")
            .messages.empty());
  for (const char* text :
       {"ValueError: the recipe is missing an ingredient",
        "ValueError: weight_decay must be positive", "ValueError: optimizer must be adamw or sgd",
        "TypeError: 'key' is not present in the batch",
        "ValueError: The tokenizer does not support this",
        "RuntimeError: size of the input must not be empty for this tensor",
        "INFO checkpoint loaded. no optimizer warmup", "ConnectionError: cannot reach the server",
        "AssertionError: learning rate must be > 0", "TypeError: expected str, got NoneType"}) {
    CAPTURE(text);
    CHECK(parse_error_text(text).messages.empty());
  }
  CHECK(parse_error_text("ValueError: parts of the checkpoint [0, 1] are expected to be [0]")
            .messages.empty());
}

TEST_CASE("explain: a failed save is not called an optimizer or a quantisation that differs") {
  check_sentences({
      {"RuntimeError: saving a checkpoint of the optimizer failed in the hook", "", "save-refused",
       "save-refused"},
      {"OSError: could not write quantized weights of the checkpoint: failed", "", "save-refused",
       "save-refused"},
      {"ValueError: optimizer must be AdamW. See the checkpoint docs", "", "call-differs",
       "call-differs"},
  });
}

TEST_CASE("explain: each row of words is the first that its own example fits") {
  std::size_t rows = 0;
  for (const MessageKind* kind : message_kinds()) {
    if (kind->words == nullptr) continue;
    ++rows;
    CAPTURE(std::string(kind->example));
    const std::string lower = pasted_text(kind->example).lower;
    const MessageKind* found =
        kind->words->matches_in_traceback ? traceback_kind(lower) : match_general_kind(lower);
    REQUIRE(found != nullptr);
    CHECK(std::string(found->id) == kind->id);
  }
  CHECK(rows > 30);
}
