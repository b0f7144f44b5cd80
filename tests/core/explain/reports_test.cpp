// Sentences of public reports of 2025 and 2026.
#include <doctest/doctest.h>

#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: sentences of reports about exports and merges are known") {
  check_sentences({
      {"AttributeError: Layer language_model.model.layers.23.mlp.experts has no parameter "
       "'w2_weight_weight_scale_2' for checkpoint weight "
       "model.language_model.layers.23.mlp.experts.down_proj_weight_scale_2",
       "vLLM", "no-place-in-layer", "quantised"},
      {"This checkpoint seem corrupted. The tied weights mapping for this model specifies to tie "
       "model.embed_tokens.weight to lm_head.weight, but both are absent from the checkpoint, and "
       "we could not find another related tied weight for those keys",
       "transformers", "tied-both-absent", "renamed"},
      {"Unsloth: MoE LoRA merge fell back to the base weight on 57 per-expert tensor(s) (of 60 "
       "attempted, 3 applied).",
       "unsloth", "merge-left-out", "merge-incomplete"},
      {"StrictDataclassClassValidationError: Class validation error for validator "
       "'validate_layer_type': ValueError: `num_hidden_layers` (2) must be equal to the number of "
       "`layer_types` (3)",
       "transformers", "config-lists", "config-refused"},
      {"No sentence-transformers model found with name /data/out/checkpoint-500. Creating a new "
       "one with mean pooling.",
       "sentence-transformers", "pooling-made-up", "modules-missing"},
      {"ValueError: While loading /adapters/sql, expected target modules in ['down_proj', "
       "'gate_up_proj'] but received ['lm_head']. Please verify that the loaded LoRA module is "
       "correct",
       "vLLM", "adapter-on-server", "adapter"},
  });
}

TEST_CASE("explain: sentences of reports about packed files are known") {
  check_sentences({
      {"'TinyGemmWeightQBitsTensor' object has no attribute '_scale'", "",
       "quantised-state-missing", "quantised"},
      {"RuntimeError: dimensions of scale and zero-point are not consistent with input tensor",
       "torch", "scale-shapes", "quantised"},
      {"OC is not multiple of cta_N = 64", "an inference server", "kernel-sizes", "kernel-sizes"},
      {"whisper_model_load: ERROR not all tensors loaded from model file - expected 245, got 3",
       "whisper.cpp", "ggml-not-all-loaded", "short-file"},
      {"gguf_init_from_file_impl: tensor 'blk.12.attn_k.weight' has offset 734003200, expected "
       "734003232",
       "llama.cpp", "gguf-offsets", "bad-record"},
      {"RuntimeError: weight_scale of model.layers.3.mlp.down_proj was not fully loaded", "vLLM",
       "scale-not-loaded", "quantised"},
  });
}

TEST_CASE("explain: FSDP's flat parameters among unused keys are one rank's part") {
  const Explanation explanation = explain(
      "WARNING fvcore.common.checkpoint checkpoint.py:352] The checkpoint state_dict contains keys "
      "that are not used by the model: student.backbone._fsdp_wrapped_module._flat_param");
  REQUIRE(explanation.parsed.messages.size() == 1);
  CHECK(explanation.parsed.messages[0].name == "student.backbone._fsdp_wrapped_module._flat_param");
  REQUIRE_FALSE(explanation.hypotheses.empty());
  CHECK(explanation.hypotheses[0].id == "flat-shard");
}

TEST_CASE("explain: a view of query heads on a tensor of key heads names both") {
  const Explanation explanation =
      explain("RuntimeError: shape '[32, 2, 64, 4096]' is invalid for input of size 4194304");
  CHECK(first(explanation) == "H-K request");
  CHECK(explanation.hypotheses[0].text.find("are 8 heads") != std::string::npos);
  // Halves that are not a whole number of heads.
  CHECK(first(explain("shape '[32, 2, 64, 4096]' is invalid for input of size 4194303")) !=
        "H-K request");
}

TEST_CASE("explain: sentences of loaders that no report was needed for are known") {
  check_sentences({
      {"ValueError: Missing lora_A weight for transformer.blocks.0.attn.to_q", "diffusers",
       "half-adapter", "half-pair"},
      {"NotImplementedError: Handling for key (double_blocks.0.img_attn.qkv.lokr_w1) is not "
       "implemented.",
       "diffusers", "adapter-leftovers", "adapter-names"},
      {"ImportError: The checkpoint seems to have been quantized with `gguf`. Install `gguf` to "
       "load quantized checkpoints.",
       "transformers or diffusers", "backend-missing", "library-missing"},
      {"ValueError: Target value ('optimizer', 'state') is set to <class 'dict'>, but source value "
       "is <class 'torch.Tensor'>",
       "torch", "other-structure", "structure-differs"},
      {"ValueError: Transformation key \"params/decoder\" not found in origin tree.", "Orbax",
       "key-not-in-origin", "renamed"},
      {"KeyError: \"Module doesn't contain member lora_a.\"", "MLX", "no-member", "other-model"},
      {"RuntimeError: No suitable checkpoints found in /m.", "", "no-file-of-known-name",
       "other-format"},
  });
}
