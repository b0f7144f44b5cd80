// Names that one side lacks: the loaders' messages and their causes.
#include "core/explain/message_kinds.h"
#include "core/explain/support.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace shw;
using namespace shw::test;

namespace {}  // namespace

TEST_CASE("names that one side lacks are read in every loader's words") {
  check_cases({
      {"RuntimeError: Missing key in checkpoint state_dict: decoder.fc1.weight.", "missing-key",
       "renamed", "decoder.fc1.weight"},
      {"Missing key(s) in state_dict: \"a.b\", \"a.c\". ", "missing-key", "renamed", "a.b"},
      {"Unexpected key(s) in state_dict: \"a.b\".", "unexpected-key", "renamed", "a.b"},
      {"CheckpointingException: Unexpected keys (not found in the checkpoint) encountered in the "
       "provided sharded state dict. \nUnexpected keys (for this rank): {'decoder.x.weight'}. ",
       "missing-key", "renamed", "decoder.x.weight"},
      {"Some keys found in the checkpoint are missing in the provided sharded state dict. \n"
       "Missing keys (for all ranks): {'decoder.x.weight'}. ",
       "unexpected-key", "renamed", "decoder.x.weight"},
      {"Missing keys (not found in the checkpoint): {'decoder.x.weight', 'decoder.y.weight'}",
       "missing-key", "renamed", "decoder.x.weight"},
      {"Missing keys (not found in the checkpoint):\n  - decoder.x.weight\n  - decoder.y.weight",
       "missing-key", "renamed", "decoder.x.weight"},
      {"KeyError: \"decoder.x.weight from model not in state dict: ['decoder.y.weight']\"",
       "missing-key", "renamed", "decoder.x.weight"},
      {"Some weights of LlamaForCausalLM were not initialized from the model checkpoint at /m and "
       "are newly initialized: ['score.weight']",
       "missing-key", "new-head", "score.weight"},
      {"Some weights of the model checkpoint at /m were not used when initializing BertModel: "
       "['cls.predictions.bias']",
       "unexpected-key", "head-not-used", "cls.predictions.bias"},
      {"NotFoundError: Key conv1/kernel not found in checkpoint", "missing-key", "renamed",
       "conv1/kernel"},
      {"ValueError: Tried to load 'layers.3.wq.weight' but it's not in the checkpoint",
       "missing-key", "renamed", "layers.3.wq.weight"},
      {"score.weight | MISSING | ", "missing-key", "new-head", "score.weight"},
      {"cls.predictions.bias | UNEXPECTED | ", "unexpected-key", "head-not-used",
       "cls.predictions.bias"},
      {"KeyError: 'encoder.pooler.weight'", "tensor-key", "renamed", "encoder.pooler.weight"},
      {"KeyError: 'something'", "error-in-key", "name-differs", "something"},
      {"Error(s) in loading state_dict for GPTModel:", "state-dict-error", "details-missing",
       "GPTModel"},
  });
}

TEST_CASE("what names say about themselves is the likeliest reading") {
  check_cases({
      {"Missing key(s) in state_dict: \"module.a.weight\", \"module.b.weight\".", "missing-key",
       "renamed", "module.a.weight"},
      {"Unexpected key(s) in state_dict: \"_orig_mod.a.weight\"", "unexpected-key", "renamed",
       "_orig_mod.a.weight"},
      {"Unexpected key(s) in state_dict: \"_fsdp_wrapped_module.a.weight\"", "unexpected-key",
       "renamed", "_fsdp_wrapped_module.a.weight"},
      {"Unexpected key(s) in state_dict: \"base_model.model.model.a.weight\"", "unexpected-key",
       "renamed", "base_model.model.model.a.weight"},
      {"Missing key(s) in state_dict: \"l.0._checkpoint_wrapped_module.a.weight\"", "missing-key",
       "renamed", "l.0._checkpoint_wrapped_module.a.weight"},
      {"Unexpected key(s) in state_dict: \"l.0.q.lora_A.weight\", \"l.0.q.lora_B.weight\"",
       "unexpected-key", "adapter", "l.0.q.lora_A.weight"},
      {"Missing key(s) in state_dict: \"decoder.l.0._extra_state\"", "missing-key",
       "extra-state-missing", "decoder.l.0._extra_state"},
      {"Missing key(s) in state_dict: \"lm_head.weight\"", "missing-key", "tied", "lm_head.weight"},
      {"Unexpected key(s) in state_dict: \"l.0.q.weight.absmax\", \"l.0.q.weight.quant_map\"",
       "unexpected-key", "quantised", "l.0.q.weight.absmax"},
      {"Missing key in checkpoint state_dict: optim.param_groups.a.decoupled_weight_decay.",
       "missing-key", "older-optimizer", "optim.param_groups.a.decoupled_weight_decay"},
      {"Missing key in checkpoint state_dict: dataloader.dp_rank_15.", "missing-key",
       "per-rank-object", "dataloader.dp_rank_15"},
      {"Missing key in checkpoint state_dict: rerun_state_machine_state/shard_3_8.", "missing-key",
       "per-rank-object", "rerun_state_machine_state/shard_3_8"},
      {"Missing key in checkpoint state_dict: optimizer.state.0.step.", "missing-key",
       "optimizer-form", "optimizer.state.0.step"},
      {"Unexpected key(s) in state_dict: \"l.0.rotary_emb.inv_freq\"", "unexpected-key", "buffer",
       "l.0.rotary_emb.inv_freq"},
  });
}

TEST_CASE("missing and unexpected names that differ by their beginning are paired") {
  struct Pair {
    std::string saved, asked;
  };
  for (const Pair& pair : std::vector<Pair>{{"a.b.weight", "module.a.b.weight"},
                                            {"_orig_mod.a.b.weight", "a.b.weight"},
                                            {"module._orig_mod.a.weight", "a.weight"},
                                            {"a._fsdp_wrapped_module.b.weight", "a.b.weight"},
                                            {"base_model.model.a.weight", "a.weight"},
                                            {"a.q.base_layer.weight", "a.q.weight"},
                                            {"a._checkpoint_wrapped_module.weight", "a.weight"},
                                            {"student.a.weight", "a.weight"}}) {
    CAPTURE(pair.saved);
    Explanation explanation =
        explain("Missing key(s) in state_dict: \"" + pair.asked +
                "\", \"z.other\". \n\tUnexpected key(s) in state_dict: \"" + pair.saved + "\". ");
    REQUIRE_FALSE(explanation.hypotheses.empty());
    const Hypothesis& first = explanation.hypotheses[0];
    CHECK(first.id == "renamed");
    CHECK(first.confidence > 0.9);
    CHECK(first.text.find("\"" + pair.saved + "\"") != std::string::npos);
    CHECK(first.text.find("\"" + pair.asked + "\"") != std::string::npos);
  }
  Explanation strangers = explain(
      "Missing key(s) in state_dict: \"a.weight\". Unexpected key(s) in state_dict: \"b.bias\"");
  for (const Hypothesis& one : strangers.hypotheses)
    CHECK(one.text.find("a.weight") == one.text.npos);
}

TEST_CASE("explain: names that differ in one part are one renamed module") {
  const Explanation renamed = explain(
      "Missing key(s) in state_dict: \"mid.attn.to_q.weight\", \"mid.attn.to_k.weight\". "
      "Unexpected key(s) in state_dict: \"mid.attn.query.weight\", \"mid.attn.key.weight\".");
  CHECK(first(renamed) == "renamed either");
  CHECK(renamed.hypotheses[0].text.find("query for to_q") != std::string::npos);
  // Layers with other numbers are other layers.
  CHECK(explain("Missing key(s) in state_dict: \"h.1.attn.weight\". Unexpected key(s) in "
                "state_dict: \"h.2.attn.weight\".")
            .hypotheses[0]
            .title.find("module has different names") == std::string::npos);
}

TEST_CASE("explain: norms of queries and biases of attention tell the family") {
  CHECK(first(explain("Unexpected key(s) in state_dict: \"layers.0.attn.q_norm.weight\", "
                      "\"layers.0.attn.k_norm.weight\".")) == "other-family request");
  CHECK(first(explain("Missing key(s) in state_dict: \"layers.0.attn.q_proj.bias\", "
                      "\"layers.0.attn.v_proj.bias\".")) == "attention-bias request");
}
