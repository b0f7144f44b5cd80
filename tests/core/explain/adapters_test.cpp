// Sentences that loaders print about adapters and grown vocabularies, as they are in public
// reports.
#include <doctest/doctest.h>

#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: sentences about adapters that stayed on their model are known") {
  check_sentences({
      {"KeyError: 'layers.0.self_attn.qkv_proj.base_layer.weight'", "", "unmerged-key",
       "unmerged-adapter"},
      {"Unexpected key(s) in state_dict: \"model.layers.0.self_attn.q_proj.base_layer.weight\", "
       "\"model.layers.1.self_attn.q_proj.base_layer.weight\".",
       "", "unexpected-key", "unmerged-adapter"},
      {"Incompatible keys detected: \nlora_transformer_single_transformer_blocks_0_attn_to_k.alpha",
       "diffusers", "adapter-leftovers", "adapter-names"},
      {"Failed to match keys when loading Lora a.safetensors: ['lora_unet_down_blocks_0.alpha']",
       "diffusers", "adapter-leftovers", "adapter-names"},
      {"ERROR:lora-to-gguf:Unexpected name 'base_model.model.lm_head.weight': Not a lora_A or "
       "lora_B tensor",
       "llama.cpp", "gguf-lora-weight", "whole-weights"},
      {"OSError: ./adapter does not appear to have a file named config.json.", "",
       "no-weights-file", "adapter"},
      {"RuntimeError: The size of tensor a (0) must match the size of tensor b (4096) at "
       "non-singleton dimension 1",
       "torch", "size-of-tensors", "zero-placeholder"},
      {"AssertionError: self.org_vocab_size=128256 self.use_presharded_weights=False "
       "loaded_weight.shape[output_dim]=128264",
       "vLLM or SGLang", "vocabulary-assert", "vocabulary"},
  });
}

TEST_CASE("explain: a wrapped module's names are not answered with a rename") {
  const Explanation explanation = explain(
      "Missing key(s) in state_dict: \"layers.0.q_proj.weight\". Unexpected key(s) in "
      "state_dict: \"layers.0.q_proj.base_layer.weight\", "
      "\"layers.0.q_proj.lora_A.default.weight\", "
      "\"layers.0.q_proj.lora_B.default.weight\".");
  REQUIRE_FALSE(explanation.hypotheses.empty());
  CHECK(explanation.hypotheses[0].id != "renamed");
}

TEST_CASE("explain: an unnamed matrix that lacks a few of many rows is a vocabulary's") {
  const Explanation explanation = explain(
      "ValueError: Trying to set a tensor of shape torch.Size([32002, 4096]) in \"weight\" (which "
      "has shape torch.Size([32000, 4096])), this looks incorrect.");
  REQUIRE_FALSE(explanation.hypotheses.empty());
  CHECK(explanation.hypotheses[0].id == "H-V");
}
