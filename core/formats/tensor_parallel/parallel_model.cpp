#include "core/formats/tensor_parallel/parallel_model.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/io/read_whole.h"

namespace shw {
namespace {

constexpr std::string_view kParallelConfig = "config.json";
constexpr std::uint64_t kMaxParallelConfig = std::uint64_t{16} << 20;
// Sizes of models are far below this, and products of two stay below 2^63.
constexpr std::int64_t kMaxModelSize = std::int64_t{1} << 30;
constexpr std::uint32_t kMaxMappedRanks = 4096;

std::int64_t positive_config_integer(const nlohmann::json& config,
                                     std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = config.find(key);
    if (found == config.end() || !found->is_number_integer()) continue;
    const auto value = found->get<std::int64_t>();
    if (value > 0 && value <= kMaxModelSize) return value;
  }
  return 0;
}

// A model of text and images has the sizes of its text in text_config.
const nlohmann::json& text_config_of(const nlohmann::json& config) {
  if (config.contains("hidden_size") || config.contains("n_embd")) return config;
  for (const char* key : {"text_config", "llm_config"}) {
    const auto found = config.find(key);
    if (found != config.end() && found->is_object()) return *found;
  }
  return config;
}

void read_sizes(const nlohmann::json& config, ParallelModel& model) {
  model.width = positive_config_integer(config, {"hidden_size", "n_embd", "d_model"});
  model.heads = positive_config_integer(config, {"num_attention_heads", "n_head", "num_heads"});
  model.key_heads = positive_config_integer(config, {"num_key_value_heads", "num_kv_heads"});
  if (model.key_heads == 0) model.key_heads = model.heads;
  model.head_width = positive_config_integer(config, {"head_dim", "head_size"});
  if (model.head_width == 0 && model.heads != 0 && model.width % model.heads == 0)
    model.head_width = model.width / model.heads;
  model.inner = positive_config_integer(
      config, {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"});
  if (model.inner == 0) model.inner = 4 * model.width;
  model.words = positive_config_integer(config, {"vocab_size"});
  model.experts =
      positive_config_integer(config, {"num_experts", "num_local_experts", "n_routed_experts"});
  model.layers = positive_config_integer(config, {"num_hidden_layers", "n_layer", "num_layers"});
}

// TensorRT-LLM deals ranks out to pipeline ranks first. With context parallelism, or experts of
// their own ranks, nothing is joined.
void read_mapping(const nlohmann::json& config, std::uint32_t ranks, ParallelModel& model) {
  const auto mapping = config.find("mapping");
  if (mapping == config.end() || !mapping->is_object()) return;
  const auto tensor = static_cast<std::uint64_t>(positive_config_integer(*mapping, {"tp_size"}));
  const auto pipeline = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(positive_config_integer(*mapping, {"pp_size"})));
  const auto world = static_cast<std::uint64_t>(positive_config_integer(*mapping, {"world_size"}));
  const bool is_whole = tensor != 0 && tensor <= kMaxMappedRanks && pipeline <= kMaxMappedRanks &&
                        tensor * pipeline <= kMaxMappedRanks && tensor * pipeline == world &&
                        ranks <= world;
  if (!is_whole) return;
  model.tensor_ranks = static_cast<std::uint32_t>(tensor);
  model.pipeline_ranks = static_cast<std::uint32_t>(pipeline);
  model.is_mapped = true;
}

// "self_attn" and "qkv_proj" of "model.layers.0.self_attn.qkv_proj.weight".
struct ParallelLayer {
  std::string_view around, layer, parameter;
};

ParallelLayer layer_of(std::string_view name) {
  auto consume_last = [&name]() {
    const std::size_t dot = name.rfind('.');
    const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
    name = dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
    return last;
  };
  ParallelLayer parts;
  parts.parameter = consume_last();
  parts.layer = consume_last();
  parts.around = consume_last();
  return parts;
}

constexpr auto kFusedAttention =
    std::to_array<std::string_view>({"qkv_proj", "query_key_value", "c_attn", "qkv", "Wqkv"});
constexpr auto kFusedGates = std::to_array<std::string_view>({"gate_up_proj"});
constexpr auto kInnerRows = std::to_array<std::string_view>(
    {"up_proj", "gate_proj", "fc1", "c_fc", "dense_h_to_4h", "fc_in", "fc"});
constexpr auto kInnerColumns = std::to_array<std::string_view>(
    {"down_proj", "fc2", "dense_4h_to_h", "fc_out", "c_proj", "proj"});
constexpr auto kAttentionColumns =
    std::to_array<std::string_view>({"o_proj", "out_proj", "dense", "c_proj"});
constexpr auto kWordRows =
    std::to_array<std::string_view>({"embed_tokens", "wte", "word_embeddings", "vocab_embedding",
                                     "lm_head", "embed_in", "embed_out", "tok_embeddings"});
constexpr auto kRouters = std::to_array<std::string_view>({"gate", "router"});

class ParallelCut {
 public:
  ParallelCut(const ParallelModel& model, const ParallelLayer& name, const Extents& local,
              std::uint32_t rank)
      : model_(model), name_(name), local_(local), rank_(rank), ranks_(model.tensor_ranks) {}

  std::optional<ParallelPart> find() const {
    if (name_.layer.find("norm") != std::string_view::npos || name_.layer.starts_with("ln_"))
      return is_whole_norm() ? whole_part() : std::nullopt;
    if (name_.parameter != "weight" && name_.parameter != "bias") return std::nullopt;
    if (is_one_of(name_.layer, kFusedAttention)) return fused_attention();
    if (is_one_of(name_.layer, kFusedGates)) return rows(2 * model_.inner, true);
    if (is_one_of(name_.layer, kWordRows)) return part_of_vocabulary();
    if (is_one_of(name_.layer, kRouters) && is_router()) return whole_part();
    const bool is_inner_row = is_one_of(name_.layer, kInnerRows) ||
                              (model_.engine == ParallelEngine::kTensorRt && name_.layer == "gate");
    if (is_inner_row) return rows(model_.inner, false);
    return part_of_column_split();
  }

 private:
  bool is_bias() const { return name_.parameter == "bias"; }
  bool is_attention() const { return name_.around.find("att") != std::string_view::npos; }
  std::optional<ParallelPart> whole_part() const { return ParallelPart{local_, {whole(local_)}}; }

  // True for a norm of the layer's input or output, or of one head: it is not split.
  bool is_whole_norm() const {
    if (local_.size() != 1) return false;
    return local_[0] == model_.width || local_[0] == model_.head_width ||
           local_[0] == model_.query_rows();
  }

  bool is_router() const {
    return model_.experts != 0 && local_.size() == 2 && local_[0] == model_.experts &&
           local_[1] == model_.width;
  }

  // A matrix of `columns` columns, or its bias.
  bool has_columns(std::int64_t columns) const {
    return is_bias() ? local_.size() == 1 : local_.size() == 2 && local_[1] == columns;
  }

  ParallelPart empty_part_with_size(std::size_t axis, std::int64_t size) const {
    ParallelPart part{local_, {}};
    part.shape[axis] = size;
    return part;
  }
  void add_box(ParallelPart& part, std::size_t axis, std::int64_t offset, std::int64_t size) const {
    Box box = whole(local_);
    box.offsets[axis] = offset;
    box.sizes[axis] = size;
    part.boxes.push_back(std::move(box));
  }

  std::optional<ParallelPart> rows(std::int64_t all, bool is_gated) const {
    if (all == 0 || !has_columns(model_.width)) return std::nullopt;
    if (local_[0] == all) return whole_part();
    if (local_[0] * std::int64_t{ranks_} != all || (is_gated && local_[0] % 2 != 0))
      return std::nullopt;
    ParallelPart part = empty_part_with_size(0, all);
    const std::int64_t halves = is_gated ? 2 : 1, size = local_[0] / halves;
    for (std::int64_t half = 0; half < halves; ++half)
      add_box(part, 0, half * (all / halves) + rank_ * size, size);
    return part;
  }

  // Keys and values of fewer heads than ranks are on several ranks.
  std::optional<ParallelPart> fused_attention() const {
    const std::int64_t ranks = ranks_, heads = model_.heads, keys = model_.key_heads;
    if (heads == 0 || model_.head_width == 0 || !has_columns(model_.width)) return std::nullopt;
    const std::int64_t all_keys = keys * model_.head_width;
    const std::int64_t all = model_.query_rows() + 2 * all_keys;
    if (local_[0] == all) return whole_part();
    const bool is_even = heads % ranks == 0 && (keys % ranks == 0 || ranks % keys == 0);
    if (!is_even) return std::nullopt;
    const std::int64_t queries = model_.query_rows() / ranks;
    const std::int64_t copies = keys % ranks == 0 ? 1 : ranks / keys;
    const std::int64_t own_keys = copies == 1 ? all_keys / ranks : model_.head_width;
    if (local_[0] != queries + 2 * own_keys) return std::nullopt;
    ParallelPart part = empty_part_with_size(0, all);
    add_box(part, 0, rank_ * queries, queries);
    const std::int64_t at = rank_ / copies * own_keys;
    add_box(part, 0, model_.query_rows() + at, own_keys);
    add_box(part, 0, model_.query_rows() + all_keys + at, own_keys);
    return part;
  }

  // Engines pad the words to a multiple of 64, and of the ranks.
  bool covers_vocabulary(std::int64_t count) const {
    constexpr std::int64_t kMaxPadding = 1024;
    return count >= model_.words && count - model_.words <= kMaxPadding;
  }

  std::optional<ParallelPart> part_of_vocabulary() const {
    if (model_.words == 0 || (!is_bias() && local_.size() != 2)) return std::nullopt;
    if (has_columns(model_.width)) {
      if (covers_vocabulary(local_[0])) return whole_part();
      const std::int64_t all = local_[0] * std::int64_t{ranks_};
      if (!covers_vocabulary(all)) return std::nullopt;
      ParallelPart part = empty_part_with_size(0, all);
      add_box(part, 0, rank_ * local_[0], local_[0]);
      return part;
    }
    return is_bias() || !covers_vocabulary(local_[0]) ? std::nullopt : columns(model_.width);
  }

  std::optional<ParallelPart> part_of_column_split() const {
    const bool is_inner = is_one_of(name_.layer, kInnerColumns) && !is_attention();
    const bool is_output =
        is_one_of(name_.layer, kAttentionColumns) && (is_attention() || name_.layer != "c_proj");
    if (!is_inner && !is_output) return std::nullopt;
    const std::int64_t rows_of_whole = local_.empty() ? 0 : local_[0];
    if (rows_of_whole != model_.width || model_.width == 0) return std::nullopt;
    if (is_bias()) return local_.size() == 1 ? whole_part() : std::nullopt;
    return columns(is_inner ? model_.inner : model_.query_rows());
  }

  std::optional<ParallelPart> columns(std::int64_t all) const {
    if (local_.size() != 2 || all == 0) return std::nullopt;
    if (local_[1] == all) return whole_part();
    if (local_[1] * std::int64_t{ranks_} != all) return std::nullopt;
    ParallelPart part = empty_part_with_size(1, all);
    add_box(part, 1, rank_ * local_[1], local_[1]);
    return part;
  }

  const ParallelModel& model_;
  const ParallelLayer& name_;
  const Extents& local_;
  std::int64_t rank_;
  std::uint32_t ranks_;
};

// DeepSeek's convert.py cuts by these names alone, in equal parts, and scales of blocks as their
// weights. Experts of other ranks are not in a rank's file.
std::optional<ParallelPart> deepseek_part(const ParallelLayer& name, const Extents& local,
                                          std::uint32_t rank, std::uint32_t ranks) {
  constexpr auto kRows =
      std::to_array<std::string_view>({"embed", "head", "wq", "wq_b", "wkv_b", "wo_a", "w1", "w3"});
  constexpr auto kColumns = std::to_array<std::string_view>({"wo", "wo_b", "w2"});
  constexpr auto kReplicated = std::to_array<std::string_view>({"wq_a", "wkv_a", "gate"});
  const bool is_matrix =
      (name.parameter == "weight" || name.parameter == "scale") && local.size() == 2;
  if (name.layer.ends_with("norm") || is_one_of(name.layer, kReplicated))
    return ParallelPart{local, {whole(local)}};
  // Whole on every rank in version 3.2, and cut in version 4.
  if (name.around == "indexer") return std::nullopt;
  const bool is_row = is_one_of(name.layer, kRows);
  if (!is_matrix || (!is_row && !is_one_of(name.layer, kColumns))) return std::nullopt;
  const std::size_t axis = is_row ? 0 : 1;
  ParallelPart part{local, {whole(local)}};
  const auto all = checked_mul(local[axis], std::int64_t{ranks});
  if (!all) return std::nullopt;
  part.shape[axis] = *all;
  part.boxes.front().offsets[axis] = std::int64_t{rank} * local[axis];
  return part;
}

bool is_weight_dtype(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16;
}

// Sizes beyond any model's are not multiplied.
bool is_bounded(const Extents& local) {
  return !local.empty() && std::all_of(local.begin(), local.end(), [](std::int64_t extent) {
    return extent > 0 && extent <= kMaxModelSize;
  });
}

}  // namespace

ParallelModel parallel_model(const Directory& directory, ParallelEngine engine,
                             std::uint32_t ranks) {
  ParallelModel model;
  model.engine = engine;
  model.tensor_ranks = ranks;
  const std::string path(kParallelConfig);
  if (directory.stat(path).kind != EntryKind::kFile) return model;
  const auto source = directory.open(path);
  if (!source) return model;
  const auto text = read_whole_text(**source, kMaxParallelConfig);
  if (!text) return model;
  const auto read = parse_json<nlohmann::json>(*text);
  if (!read.problem.empty() || !read.tree.is_object()) return model;
  read_sizes(text_config_of(read.tree), model);
  if (engine == ParallelEngine::kTensorRt) read_mapping(read.tree, ranks, model);
  return model;
}

std::optional<ParallelPart> parallel_part(const ParallelModel& model, std::string_view name,
                                          Dtype dtype, const Extents& local, std::uint32_t rank) {
  if (!is_bounded(local)) return std::nullopt;
  const ParallelLayer parts = layer_of(name);
  if (model.engine == ParallelEngine::kDeepSeek)
    return deepseek_part(parts, local, rank, model.tensor_ranks);
  // Quantised weights are packed, transposed or shuffled as the kernels of a GPU need them.
  if (!is_weight_dtype(dtype)) return std::nullopt;
  return ParallelCut(model, parts, local, rank).find();
}

std::optional<std::string> name_in_model(const ParallelModel& model, std::string_view name,
                                         std::uint32_t pipeline_rank) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t at = name.find(kLayers);
  if (model.pipeline_ranks == 1 || at == std::string_view::npos) return std::string(name);
  std::string_view rest = name.substr(at + kLayers.size());
  const auto number = consume_number(rest);
  if (!number) return std::string(name);
  const std::int64_t each = model.layers / model.pipeline_ranks;
  if (each == 0 || model.layers % model.pipeline_ranks != 0 || *number >= each) return std::nullopt;
  return std::string(name.substr(0, at + kLayers.size())) +
         std::to_string(*number + each * pipeline_rank) + std::string(rest);
}

std::uint32_t infer_ranks_from_part(const ParallelModel& model, std::string_view name,
                                    const Extents& local) {
  if (model.engine != ParallelEngine::kVllm || !is_bounded(local)) return 0;
  const ParallelLayer parts = layer_of(name);
  const std::int64_t all = model.query_rows();
  const bool is_output = parts.layer == "o_proj" && parts.parameter == "weight" &&
                         local.size() == 2 && local[0] == model.width && all != 0;
  if (!is_output || all % local[1] != 0 || all / local[1] > kMaxMappedRanks) return 0;
  return static_cast<std::uint32_t>(all / local[1]);
}

}  // namespace shw
