// What a name, a size or a call in a message says about the part of a model that it is of.
#include <doctest/doctest.h>

#include "core/explain/error_text.h"
#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: memory, crashes and calls of another version are told") {
  check_sentences({
      {"CUDA Setup failed: cudaErrorMemoryAllocation", "", "gpu-memory-full", "memory"},
      {"Process finished with exit code -1073741819 (0xC0000005)", "", "program-crashed", "memory"},
      {"InvalidModelConfigException: Unable to determine base model for /m/clip_g.safetensors", "",
       "kind-not-determined", "other-format"},
      {"AttributeError: 'dict' object has no attribute 'endswith'", "", "dict-for-path",
       "wrong-path"},
      {"AttributeError: 'UNet2DConditionModel' object has no attribute 'enable_freeu'", "",
       "method-not-there", "older-library"},
      {"TypeError: Can't instantiate abstract class TTSModel with abstract method forward", "",
       "abstract-class", "older-library"},
      {"ValueError: Error instantiating 'models.nets.Decoder' : 'num_classes'", "",
       "config-not-built", "older-program"},
      {"FileNotFoundError: You passed a file to `checkpoint_dir=`. Use "
       "`checkpoint_path=/m/xtts.pth` instead.",
       "", "file-for-folder", "wrong-path"},
  });
  CHECK(form_of("AttributeError: 'dict' object has no attribute 'foo'") != "dict-for-path");
  CHECK(form_of("AttributeError: 'Net' object has no attribute 'weight'") != "method-not-there");
  CHECK(form_of("Loading finished. exit code 0") != "program-crashed");
}

TEST_CASE("explain: modules that are counted otherwise are found in the other list") {
  const std::string missing =
      "Missing key(s) in state_dict: \"net.3.conv1.weight\", \"net.3.conv2.weight\", "
      "\"net.5.conv1.weight\". Unexpected key(s) in state_dict: ";
  CHECK(first(explain(missing + "\"net.2.conv1.weight\", \"net.2.conv2.weight\", "
                                "\"net.4.conv1.weight\".")) == "renumbered request");
  CHECK(first(explain(missing + "\"head.norm.weight\", \"head.fc.weight\", \"tail.weight\".")) !=
        "renumbered request");
}

TEST_CASE("explain: the head of a detector is for a number of classes") {
  CHECK(first(explain(sentence({91, 256}, {4, 256}, "class_embed.5.weight"))) == "H-C request");
  CHECK(first(explain(sentence({91, 256}, {4, 256}, "input_proj.5.weight"))) != "H-C request");
}

TEST_CASE("explain: a name that a server has no place for says what it is of") {
  const std::string begin = "ValueError: There is no module or parameter named ";
  const std::string loader = "vLLM or SGLang", form = "not-in-served-model";
  check_sentences({
      {begin + "'lm_head' in Qwen2ForCausalLM", loader, form, "tied"},
      {begin + "'vision_model' in LlamaForCausalLM", loader, form, "part-extra"},
      {begin + "'language_model' in LlamaForCausalLM", loader, form, "renamed"},
  });
}

TEST_CASE("explain: the tensor that a GGUF or GGML file lacks says what the file is") {
  check_sentences({
      {"missing tensor 'token_embd.weight'", "llama.cpp", "gguf-no-tensor", "config-disagrees"},
      {"missing tensor 'output.weight'", "llama.cpp", "gguf-no-tensor", "older-program"},
      {"missing tensor 'output_norm.weight'", "llama.cpp", "gguf-no-tensor", "config-disagrees"},
      {"error loading model: tensor 'layers.31.feed_forward.w2.weight' is missing from model",
       "llama.cpp", "gguf-no-tensor", "short-file"},
  });
}

TEST_CASE("explain: target modules of peft that fit nothing") {
  const std::string end = " not found in the base model. Please check the target modules.";
  check_sentences({
      {"ValueError: Target modules ['^model.*q_proj']" + end, "peft", "adapter-targets",
       "pattern-in-list"},
      {"ValueError: Target modules set()" + end, "peft", "adapter-targets", "adapter"},
      {"ValueError: Target modules ['q_proj', 'v_proj']" + end, "peft", "adapter-targets",
       "adapter"},
  });
}

TEST_CASE("explain: sizes that are packed in blocks are told from those of another model") {
  check_sentences({
      {"ValueError: [matmul] Last dimension of first input with shape (1,32,4096) must match "
       "second to last dimension of second input with shape (512,4096).",
       "MLX", "mlx-product", "quantised"},
      {"KeyError('data_offsets')", "", "header-entry", "not-a-tensor"},
      {"ValueError: Parameter model.layers.2.mlp.gate_up_proj.q_weight has shape (512, 86), but "
       "expected (512, 88)",
       "MLC LLM", "mlc-shape", "config-disagrees"},
  });
  auto reshaped = [](const std::string& wanted, const std::string& found) {
    return first(explain("shape '" + wanted + "' is invalid for input of size " + found));
  };
  CHECK(reshaped("[12288, 2112]", "37748736") == "H-Q either");  // 22 bytes for 32 values
  CHECK(reshaped("[4096, 4352]", "16777216") == "H-Q either");   // 34 bytes for 32 values
  CHECK(reshaped("[640, 1024]", "491520") != "H-Q either");      // of another base
  const std::string adapter = "ERROR lora diffusion_model.double_blocks.3.img_mlp.0.weight shape ";
  CHECK(first(explain(adapter + "'[12288, 1728]' is invalid for input of size 37748736")) ==
        "H-Q either");
  CHECK(first(explain(adapter + "'[12288, 2048]' is invalid for input of size 37748736")) ==
        "adapter request");
}

TEST_CASE("explain: scales in a column are of the first GPTQ programs") {
  const std::string scales = "model.layers.0.mlp.up_proj.scales";
  CHECK(first(explain(sentence({11008, 1}, {1, 11008}, scales))) == "H-Q request");
  CHECK(first(explain(sentence({1, 11008}, {11008, 1}, scales))) != "H-Q request");
  CHECK(first(explain(sentence({11008, 1}, {1, 11008}, "model.layers.0.up.weight"))) !=
        "H-Q request");
}

TEST_CASE("explain: half of an axis is packed 4-bit values where it is no rank's part") {
  CHECK(first(explain(sentence({4096, 1344}, {4096, 2688},
                               "decoder.layers.0.mlp.linear_fc1.weight"))) == "H-Q either");
  // The window of a convolution.
  for (const Hypothesis& one :
       explain(sentence({64, 1, 8}, {64, 1, 16}, "net.conv.weight")).hypotheses)
    CHECK(one.id != "H-Q");
}

TEST_CASE("explain: heads that a class adds or leaves out") {
  const std::string added =
      "Some weights of RewardModel were not initialized from the model checkpoint at /m and are "
      "newly initialized: ['value_head.bias', 'value_head.weight']";
  CHECK(first(explain(added)) == "new-head request");
  const std::string unused =
      "Some weights of the model checkpoint at /m were not used when initializing RobertaModel: "
      "['lm_head.dense.weight', 'lm_head.layer_norm.bias']";
  CHECK(first(explain(unused)) == "head-not-used request");
}
