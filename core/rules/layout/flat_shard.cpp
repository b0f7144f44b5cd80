// One rank's part of a flattened parameter, published as a model (transformers #34080). Without a
// spec only names tell that a tensor should be a matrix; with shapes, shape-mismatch reports it
// with numbers.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// In every known model the weights of these modules are matrices.
constexpr auto kMatrices = std::to_array<std::string_view>(
    {"embed_tokens",    "word_embeddings", "wte",           "lm_head",    "output_layer",
     "query_key_value", "dense_h_to_4h",   "dense_4h_to_h", "linear_qkv", "linear_fc1",
     "linear_fc2",      "q_proj",          "k_proj",        "v_proj",     "o_proj",
     "gate_proj",       "up_proj",         "down_proj",     "c_attn",     "c_fc"});

bool is_to_be_matrix(std::string_view fqn) {
  constexpr std::string_view kWeight = ".weight";
  if (!fqn.ends_with(kWeight) || fqn.starts_with("optim") || parse_state_fqn(fqn)) return false;
  fqn.remove_suffix(kWeight.size());
  const std::string_view module = fqn.substr(fqn.rfind('.') + 1);
  return std::find(kMatrices.begin(), kMatrices.end(), module) != kMatrices.end();
}

// Some quantisation schemes store packed weights flat.
bool is_unpacked_float(Dtype dtype) {
  return dtype == Dtype::kFloat64 || dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 ||
         dtype == Dtype::kBfloat16;
}

// FSDP1's name of a flattened parameter. It is always sharded: with a single rank FSDP does not
// shard and refuses such a state dict.
bool is_flat_parameter(std::string_view fqn) {
  const std::string_view last = fqn.substr(fqn.rfind('.') + 1);
  return last == "_flat_param" || last == "flat_param";
}

void find_flat_parameters(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "flat-shard", .severity = Severity::kWarning};
  std::vector<std::string> shapes;
  for (TensorId tensor : each_tensor(facts)) {
    if (c.shape(tensor).size() != 1 || !is_unpacked_float(c.dtype(tensor)) ||
        !is_flat_parameter(c.fqn(tensor)))
      continue;
    finding.subjects.emplace_back(c.fqn(tensor));
    shapes.push_back(std::string(c.fqn(tensor)) + " " + to_text(c.shape(tensor)));
  }
  if (finding.subjects.empty()) return;
  const bool is_one = finding.subjects.size() == 1;
  finding.cause = fmt::format(
      "{} {} one rank's part of an FSDP flat parameter ({}), which joins all parameters of a "
      "module. No file says which parameters it holds, and the other ranks' parts are missing.",
      plural(finding.subjects.size(), "tensor"), is_one ? "is" : "are", short_list_text(shapes));
  finding.evidence = {{"shapes", capped(shapes)}, {"count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

// Vectors shorter than in config.json: one rank's part of a norm is a vector too. If a matrix is
// flat as well, the config does belong to this model.
struct ShortVector {
  TensorId tensor{};
  std::int64_t said = 0;
};
std::vector<ShortVector> short_vectors(const Facts& facts) {
  std::vector<ShortVector> found;
  if (!facts.config_fit) return found;
  const Checkpoint& c = facts.checkpoint;
  for (const SizeContradiction& one : facts.config_fit->sizes) {
    for (const auto& [tensor, axis] : one.tensors) {
      const ExtentsView shape = c.shape(tensor);
      if (shape.size() == 1 && shape[0] < one.said && !is_to_be_matrix(c.fqn(tensor)))
        found.push_back({tensor, one.said});
    }
  }
  return found;
}

void add_short_vectors(const Facts& facts, Finding& finding) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<std::string> lines;
  for (const ShortVector& one : short_vectors(facts)) {
    finding.subjects.emplace_back(c.fqn(one.tensor));
    lines.push_back(
        fmt::format("{} {} of {}", c.fqn(one.tensor), to_text(c.shape(one.tensor)), one.said));
  }
  if (lines.empty()) return;
  // An error, because config.json and the names agree on it.
  finding.severity = Severity::kError;
  finding.cause +=
      fmt::format(" By config.json {} one rank's part of a vector too ({}).",
                  lines.size() == 1 ? "there is" : "there are", short_list_text(lines));
  finding.evidence.emplace_back("shorter_than_config", capped(lines));
}

void find_flat_matrices(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "flat-shard", .severity = Severity::kWarning};
  std::vector<std::string> shapes;
  std::size_t empty = 0;
  for (TensorId tensor : each_tensor(facts)) {
    const ExtentsView shape = c.shape(tensor);
    if (shape.size() != 1 || !is_unpacked_float(c.dtype(tensor)) || !is_to_be_matrix(c.fqn(tensor)))
      continue;
    empty += shape[0] == 0 ? 1 : 0;
    finding.subjects.emplace_back(c.fqn(tensor));
    shapes.push_back(std::string(c.fqn(tensor)) + " " + to_text(shape));
  }
  if (finding.subjects.empty()) return;
  const bool is_one = finding.subjects.size() == 1;
  finding.cause = fmt::format(
      "{} {} to be {} by {} and {} ({}): {}. No model with these names loads that, and the other "
      "ranks' parts are missing.",
      plural(finding.subjects.size(), "tensor"), is_one ? "is" : "are",
      is_one ? "a matrix" : "matrices", is_one ? "its name" : "their names",
      empty == finding.subjects.size() ? (is_one ? "has no element" : "have no element")
                                       : (is_one ? "is saved flat" : "are saved flat"),
      short_list_text(shapes),
      empty == finding.subjects.size()
          ? "DeepSpeed ZeRO-3 leaves that of a parameter in a state dict that was not gathered, "
            "and FSDP on a rank that owns no part of it"
          : "one rank's part of parameters that FSDP or DeepSpeed ZeRO-3 had flattened, saved as "
            "if it were the whole");
  finding.evidence = {{"shapes", capped(shapes)},
                      {"count", count_of(finding.subjects.size())},
                      {"without_an_element", count_of(empty)}};
  add_short_vectors(facts, finding);
  findings.push_back(std::move(finding));
}

void find_flat_shards(const Facts& facts, std::vector<Finding>& findings) {
  // In formats with recorded chunks, flat parameters are chunks of known tensors.
  if (facts.spec != nullptr || !facts.checkpoint.format().traits.has_one_piece_per_tensor) return;
  find_flat_matrices(facts, findings);
  find_flat_parameters(facts, findings);
}

}  // namespace

const Rule kFlatShard = {
    .id = "flat-shard",
    .depth = Depth::kMetadata,
    .title = "One rank's flat shard was saved instead of a matrix",
    .teaches =
        "FSDP and DeepSpeed ZeRO-3 flatten parameters and give each rank a shard. A state dict "
        "taken without gathering holds one rank's shard: a flat vector, or nothing, under the name "
        "of a matrix. Saved by save_pretrained it looks like a model, and loads fail with 'size "
        "mismatch ... copying a param with shape torch.Size([0])'. Nothing in it is damaged, but "
        "the other ranks' shards are in no file. Here the tensor's name shows it (a matrix's name, "
        "or _flat_param); a spec or another checkpoint (--against) shows how many ranks there "
        "were.",
    .lesson = {.drawing = R"(
  embed_tokens.weight [64, 16] and norm.weight [16], flat, on 4 ranks

  held by rank   │    0    │    1    │    2    │    3    │   1,040 elements
  saved          │   260   │              as embed_tokens.weight
)",
               .remedy = "Save again from the run: with FSDP a full state dict, with ZeRO-3 "
                         "stage3_gather_16bit_weights_on_model_save, or convert the sharded "
                         "checkpoint next to it (DCP, zero_to_fp32.py) into a model.",
               .link = "https://github.com/huggingface/transformers/issues/34080"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kLoadFails,
    .cause_of = ExplainedSymptoms::kTiles,
    .makes_shapes_doubtful = true,
    .run = find_flat_shards,
};

}  // namespace shw
