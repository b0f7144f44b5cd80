// Hypotheses in which one side is not the model's tensor: a placeholder, a flat vector, packed
// bits, concatenated copies, or an adapter of another rank.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/words.h"
#include "core/explain/hypotheses.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::int64_t kMaxFlatRanks = 4096;

// The two sides by kind rather than by run.
struct Sides {
  const Extents& odd;    // the placeholder or flat vector
  const Extents& whole;  // the model's parameter
  FaultSide wrong;       // the run of the odd side
};
Sides sides(const ShapeCase& shapes, bool saved_is_odd) {
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  if (saved_is_odd) return {saved, current, FaultSide::kCheckpoint};
  return {current, saved, FaultSide::kRequest};
}

bool is_placeholder(ExtentsView shape) {
  return shape.size() == 1 && (shape[0] == 0 || shape[0] == 1);
}

void add_placeholder(const ShapeCase& shapes, const Sides& both, std::vector<Hypothesis>& all) {
  if (!is_placeholder(both.odd) || is_placeholder(both.whole) || both.whole.empty()) return;
  bool one_dim = both.whole.size() == 1;
  if (one_dim && both.odd[0] == 1) return;  // more likely a shard of one row
  Hypothesis one{"H-Z", nullptr, both.wrong};
  one.confidence = shapes.traits.state ? 0.2 : one_dim ? 0.6 : both.odd[0] == 0 ? 0.88 : 0.75;
  bool saved = both.wrong == FaultSide::kCheckpoint;
  one.title = saved ? "the file holds ZeRO-3 placeholders instead of weights"
                    : "the loading model is already sharded by ZeRO-3";
  one.text =
      saved ? "DeepSpeed ZeRO-3 shards a parameter over all ranks and leaves " + to_text(both.odd) +
                  " in its place; the module was saved like that. The weights are in the "
                  "zero_pp_rank_*_optim_states.pt files of that save: merge them with "
                  "zero_to_fp32.py, and save with stage3_gather_16bit_weights_on_model_save. FSDP1 "
                  "with use_orig_params does the same on ranks that own no part of a parameter."
            : "DeepSpeed's ZeRO-3 (or FSDP1 with use_orig_params) leaves " + to_text(both.odd) +
                  " where a parameter was, which a plain load_state_dict cannot fill. The "
                  "checkpoint is fine. Load before deepspeed.initialize, inside "
                  "GatheredParameters, or through the engine's load_checkpoint.";
  one.decide = saved ? "Check whether most tensors of the file have the shape " +
                           to_text(both.odd) + ", and whether optim_states files are next to it."
                     : "Check whether the message appears for every parameter, with " +
                           to_text(both.odd) + " for the model each time.";
  one.command = saved ? "shardwright info CHECKPOINT" : "shardwright ls CHECKPOINT";
  all.push_back(std::move(one));
}

// One side has no elements, but its dims: not the [0] of a placeholder. A rank without a part of an
// optimizer's state saves such a shape too.
void add_empty_shape_hypothesis(const ShapeCase& shapes, const Sides& both,
                                std::vector<Hypothesis>& all) {
  auto has_zero = [](const Extents& shape) {
    return std::find(shape.begin(), shape.end(), 0) != shape.end();
  };
  if (shapes.traits.state || both.odd.size() < 2 || !has_zero(both.odd) || has_zero(both.whole))
    return;
  const bool saved = both.wrong == FaultSide::kCheckpoint;
  Hypothesis one{"empty-side", nullptr, both.wrong};
  one.confidence = 0.85;
  one.title = saved ? "the file holds a tensor without elements"
                    : "the loading model was built with size 0 along one axis";
  one.text =
      saved ? "The run that saved built the model with a count of 0 there (images, classes, "
              "speakers, tokens that were added), or a rank without a shard saved. The model's "
              "values are not in this file."
            : "A count that the model takes from its data or its config (images, classes, "
              "speakers, experts) was 0 when it was built: the data was not found, or an option "
              "was omitted. The checkpoint is fine. Build the model with the settings of the save.";
  one.decide = "Compare the count behind this axis in the config and data of both runs.";
  one.command = "shardwright ls CHECKPOINT";
  all.push_back(std::move(one));
}

// How a 1-D tensor of `n` elements can come from a parameter of shape `whole`: the flattened
// parameter, or one rank's part of it. `volume`: elements of `whole`. `ranks`: known number of
// ranks. Flat::weight: confidence of 0 to 1.
struct Flat {
  double weight = 0;
  std::int64_t ranks = 0;  // n is one of so many parts; 1: the whole
  std::int64_t extra = 0;  // elements beyond the parameter
};
Flat fit_flattened_vector(std::int64_t n, const Extents& whole, std::int64_t volume,
                          std::optional<std::int64_t> ranks) {
  if (n == volume) return {0.8, 1, 0};
  if (n > volume) return {0.4, 1, n - volume};
  Flat flat{0.3, volume / n + (volume % n == 0 ? 0 : 1), 0};
  if (flat.ranks > kMaxFlatRanks) return {};
  flat.extra = (n - volume % n) % n;
  // An embedding followed by its norm: a few whole rows more.
  bool rows = flat.extra % whole.back() == 0 && flat.extra / whole.back() <= 8;
  if (flat.extra < flat.ranks || rows) flat.weight = 0.8;
  bool is_extent = std::find(whole.begin(), whole.end(), n) != whole.end();
  if (is_extent || flat.ranks > 1024) flat.weight = 0.15;  // a bias, a norm or a row
  if (ranks && flat.ranks == *ranks) flat.weight = std::max(flat.weight, 0.9);
  if (ranks && *ranks % flat.ranks != 0) flat.weight = std::min(flat.weight, 0.25);
  return flat;
}

std::string flattened_size_text(const Sides& both, const Flat& flat, std::int64_t volume) {
  std::string sum = fmt::format("{} has {} elements", to_text(both.whole), volume);
  std::string more = fmt::format("{} more", flat.extra);
  if (flat.ranks > 1)
    return fmt::format("{}, and {} x {} is {}", sum, flat.ranks, both.odd[0],
                       flat.extra == 0 ? "just that" : more);
  return sum + (flat.extra == 0 ? ", as many as the vector" : ", the vector " + more);
}

void add_flattened_hypothesis(const ShapeCase& shapes, const Sides& both,
                              std::vector<Hypothesis>& all) {
  if (both.odd.size() != 1 || both.whole.size() < 2 || is_placeholder(both.odd)) return;
  auto volume = shw::volume(both.whole);
  if (!volume || *volume <= 0) return;
  bool saved = both.wrong == FaultSide::kCheckpoint;
  std::optional<std::int64_t> ranks;
  if (shapes.worlds) ranks = saved ? shapes.worlds->save : shapes.worlds->load;
  Flat flat = fit_flattened_vector(both.odd[0], both.whole, *volume, ranks);
  if (flat.weight <= 0) return;
  // "shape '[4096, 4096]' is invalid for input of size 8388608" may be about any tensor.
  if (shapes.message.name.empty() && (flat.ranks > 1 || flat.extra != 0))
    flat.weight *= flat.extra == 0 ? 0.55 : 0.3;
  Hypothesis one{"H-F", nullptr, flat.ranks == 1 ? FaultSide::kEither : both.wrong, flat.weight};
  one.title = saved ? "the checkpoint holds a flat parameter of FSDP1"
                    : "the loading model has its parameters flattened by FSDP1";
  std::string part = flat.ranks > 1 ? fmt::format("one rank's part of {}", flat.ranks) : "all";
  one.text =
      flattened_size_text(both, flat, *volume) + ": the vector is " + part +
      " of the flat parameter that FSDP1 builds from a wrapped module" +
      (flat.extra != 0 ? " (the rest: padding, or a norm wrapped with it). " : ". ") +
      (saved && flat.ranks > 1 ? "The other ranks' shards are not in this file: consolidate all of "
                                 "them, or save with FULL_STATE_DICT."
       : saved ? "Nothing is lost; split and reshape it in the order of the module's parameters."
               : "The checkpoint is fine: load before the model is wrapped, or through "
                 "FSDP.state_dict_type.");
  one.decide =
      "Check whether the module is wrapped by FSDP1 (FullyShardedDataParallel), and over how many "
      "ranks.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("elements", *volume);
  one.evidence.emplace_back("parts", flat.ranks);
  one.evidence.emplace_back("extra_elements", flat.extra);
  all.push_back(std::move(one));
}

void add_packed_4bit_hypothesis(const Sides& both, std::string_view name,
                                std::vector<Hypothesis>& all) {
  auto whole = shw::volume(both.whole), odd = shw::volume(both.odd);
  if (!whole || !odd || *odd <= 1 || both.whole.size() < 2 || *whole / 2 != *odd || *whole % 2 != 0)
    return;
  bool column = both.odd.size() == 2 && both.odd[1] == 1 && both.whole[1] > 2;
  constexpr std::int64_t kMinRow = 32;  // shorter: the window of a convolution, not a row
  bool last = both.odd.size() == both.whole.size() && both.whole.back() % 2 == 0 &&
              both.whole.back() >= kMinRow && both.odd.back() == both.whole.back() / 2 &&
              std::equal(both.odd.begin(), both.odd.end() - 1, both.whole.begin());
  const bool unnamed = both.odd.size() == 1 && name.empty();
  if (!column && !last && !unnamed) return;
  // Tensor-parallel ranks cut these layers along their rows, not along the last axis.
  const bool cut_by_rows = std::ranges::any_of(
      std::array<std::string_view, 9>{"linear_fc1", "query_key_value", "qkv", "q_proj", "k_proj",
                                      "v_proj", "gate_proj", "up_proj", "h_to_4h"},
      [&](std::string_view word) { return name.find(word) != name.npos; });
  const double weight = column ? 0.93 : last && cut_by_rows ? 0.85 : unnamed ? 0.5 : 0.15;
  Hypothesis one{"H-Q", nullptr, FaultSide::kEither, weight};
  one.title = both.wrong == FaultSide::kCheckpoint
                  ? "the checkpoint is packed in 4 bits, the model is not"
                  : "the model that loads is packed in 4 bits, the checkpoint is not";
  one.text = "Half as many elements: two 4-bit values share a byte (" +
             std::string(last ? "NVFP4, MXFP4" : "bitsandbytes makes one column of them") +
             "). Nothing is damaged; load with the same quantisation, or dequantise first.";
  one.decide =
      "Check the dtype of the smaller side: uint8 suggests packed values; scales or quant_state "
      "tensors next to it prove it.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("values_a_byte", std::int64_t{2});
  all.push_back(std::move(one));
}

// The first GPTQ programs stored the scales of a layer as a column, the later ones as rows of
// groups.
void add_old_gptq_hypothesis(const ErrorMessage& message, std::vector<Hypothesis>& all) {
  const Extents &saved = message.saved, &current = message.current;
  if (!message.name.ends_with(".scales") && !message.name.ends_with("zeros")) return;
  if (saved.size() != 2 || current.size() != 2 || saved[1] != 1 || current[0] != 1) return;
  if (saved[0] != current[1] || saved[0] <= 1) return;
  Hypothesis one{"H-Q", nullptr, FaultSide::kRequest, 0.9};
  one.title = "the file has the first GPTQ format, but the program reads a later one";
  one.text =
      "A column [rows, 1] of scales is what GPTQ-for-LLaMa wrote in spring 2023; since then scales "
      "are [groups, rows], and codes and zeros are packed differently. Transposing the scales is "
      "not enough. Use a newer copy of the model, or quantise it again.";
  one.decide =
      "Check whether the layers have qzeros (later format) or zeros (first format) next to the "
      "scales.";
  one.command = "shardwright ls CHECKPOINT";
  all.push_back(std::move(one));
}

// MLX packs 32 / bits values along the last axis.
void add_mlx_packed_hypothesis(const Sides& both, std::vector<Hypothesis>& all) {
  if (both.whole.size() != both.odd.size() || both.whole.size() < 2 || both.odd.back() <= 1 ||
      both.whole.back() % both.odd.back() != 0 ||
      !std::equal(both.odd.begin(), both.odd.end() - 1, both.whole.begin()))
    return;
  const std::int64_t values = both.whole.back() / both.odd.back();
  if (values != 4 && values != 8 && values != 16) return;
  const bool disk = both.wrong == FaultSide::kCheckpoint;
  Hypothesis one{"H-Q", nullptr, FaultSide::kEither, 0.85};
  one.title = disk ? "the checkpoint is quantised, but config.json does not say so"
                   : "config.json says quantised, but the weights are not";
  one.text = fmt::format(
      "A 32-bit number holds {} values of {} bits along the last axis. Nothing is damaged: {}",
      values, 32 / values,
      disk ? "config.json has lost its \"quantization\" (bits, group_size), or comes from another "
             "folder."
           : "remove \"quantization\" from config.json, or convert the weights.");
  one.decide =
      "Check \"quantization\" in config.json, and whether the weight has .scales next to it.";
  one.command = "shardwright check CHECKPOINT";
  one.evidence.emplace_back("values_a_number", values);
  all.push_back(std::move(one));
}

// A layer of a GGUF file that is still packed: its rows are bytes of blocks, not values.
void add_ggml_packed_hypothesis(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  struct Block {
    std::string_view type;
    std::int64_t values, bytes;
  };
  constexpr std::array<Block, 9> kBlocks = {Block{"Q4_0 or Q4_K", 32, 18},
                                            {"Q5_0 or Q5_K", 32, 22},
                                            {"Q8_0", 32, 34},
                                            {"Q6_K", 256, 210},
                                            {"Q3_K", 256, 110},
                                            {"Q2_K", 256, 84},
                                            {"Q4_1", 32, 20},
                                            {"Q5_1", 32, 24},
                                            {"IQ4_XS", 256, 136}};
  const Extents &packed = shapes.message.current, &plain = shapes.message.saved;
  if (packed.size() != 2 || plain.size() != 1 || packed[0] <= 1 || plain[0] % packed[0] != 0)
    return;
  const std::int64_t row = plain[0] / packed[0];
  const auto* block = std::ranges::find_if(kBlocks, [&](const Block& one) {
    return row > 0 && row % one.values == 0 && packed[1] == row / one.values * one.bytes;
  });
  if (block == kBlocks.end()) return;
  Hypothesis one{"H-Q", nullptr, FaultSide::kEither, 0.9};
  one.title = "the model's layer is packed as in GGUF, but was used as an unpacked weight";
  one.text = fmt::format(
      "{} rows of {} values take {} bytes each as {}: the weight is still in packed blocks. "
      "Nothing is damaged. The adapter loader (or the layer) does not unpack them: use the nodes "
      "or program made for GGUF models, a version that supports this type, or the model in fp8 or "
      "bf16.",
      packed[0], row, packed[1], block->type);
  one.decide = "Check whether the model comes from a .gguf file.";
  one.command = "shardwright info CHECKPOINT";
  one.evidence.emplace_back("values_a_row", row);
  one.evidence.emplace_back("bytes_a_row", packed[1]);
  all.push_back(std::move(one));
}

// "shape '[32000, 6144]' is invalid for input of size 131072000": a reshape of a tensor without a
// name.
void add_reshape_hypothesis(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const ErrorMessage& message = shapes.message;
  if (!message.name.empty() || message.saved.size() != 1 || message.current.size() < 2) return;
  const auto wanted = shw::volume(message.current);
  const std::int64_t found = message.saved[0];
  if (!wanted || *wanted <= 0 || found <= 1 || found == *wanted) return;
  const bool fewer = found < *wanted;
  const std::int64_t large = fewer ? *wanted : found, small = fewer ? found : *wanted;
  const bool is_ratio = large % small == 0;
  const bool fits_parts =
      std::ranges::any_of(all, [](const Hypothesis& other) { return other.confidence >= 0.2; });
  const double weight = fits_parts ? 0.1 : is_ratio ? 0.35 : 0.5;
  Hypothesis one{"H-RS", &kShapeMismatch, FaultSide::kEither, weight};
  one.title = fewer ? "the tensor has fewer elements than the code reshapes it to"
                    : "the tensor has more elements than the code reshapes it to";
  one.text =
      fmt::format("The tensor has {} elements, but {} needs {}. ", found, to_text(message.current),
                  *wanted) +
      (is_ratio
           ? fmt::format(
                 "That is a factor of {}. Possible causes: it is one rank's shard, its "
                 "4-bit values are packed, the model has fewer key heads than query heads, ",
                 large / small)
           : std::string("Neither number is a multiple of the other, so the code's sizes (heads, "
                         "head_dim, groups) do not match this weight. Possible causes: ")) +
      "config.json belongs to another model, or the code does not support this layout.";
  one.decide = "Compare the tensor in the line of code above with its shape in the checkpoint.";
  one.command = "shardwright check CHECKPOINT";
  one.evidence.emplace_back("elements", found);
  one.evidence.emplace_back("wanted", *wanted);
  all.push_back(std::move(one));
}

}  // namespace

void add_hypothesis_placeholder(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  for (bool saved : {true, false}) add_empty_shape_hypothesis(shapes, sides(shapes, saved), all);
  for (bool saved : {true, false}) add_placeholder(shapes, sides(shapes, saved), all);
}

void add_hypothesis_flat(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  // DeepSpeed has flat rows of its own.
  if (shapes.message.speaker != "DeepSpeed")
    for (bool saved : {true, false}) add_flattened_hypothesis(shapes, sides(shapes, saved), all);
  add_ggml_packed_hypothesis(shapes, all);
  add_reshape_hypothesis(shapes, all);
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  if (!shapes.traits.flat || saved.size() != 1 || current.size() != 1 || saved == current) return;
  Hypothesis one{"H-F", nullptr, FaultSide::kEither, 0.75};
  one.title =
      "FSDP1 flattened the model for a different number of ranks, or wrapped it differently";
  one.text =
      "A flat parameter is all parameters of a wrapped module in one vector, padded to a multiple "
      "of the ranks: its length changes with the ranks and with what is wrapped. Nothing is "
      "damaged. Load with the ranks and the wrapping of the save, and save with SHARDED_STATE_DICT "
      "or FULL_STATE_DICT, which keep names and shapes.";
  one.decide =
      "Compare ranks and auto_wrap_policy of both runs; a difference smaller than the number of "
      "ranks is padding.";
  one.command = "shardwright ls CHECKPOINT";
  all.push_back(std::move(one));
}

void add_hypothesis_packed(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  // A flat row of many parameters has no bits of its own.
  const bool is_flat = shapes.message.saved.size() == 1 && (shapes.message.speaker == "DeepSpeed" ||
                                                            shapes.message.speaker == "Megatron");
  if (shapes.traits.state || is_flat) return;
  add_old_gptq_hypothesis(shapes.message, all);
  for (bool saved : {true, false}) {
    add_packed_4bit_hypothesis(sides(shapes, saved), shapes.message.name, all);
    if (shapes.message.speaker == "MLX") add_mlx_packed_hypothesis(sides(shapes, saved), all);
  }
}

void add_hypothesis_repeated(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const NameTraits& traits = shapes.traits;
  if (traits.state || (!traits.replicated && !traits.bias)) return;
  if (shapes.differing != std::vector<std::size_t>{0}) return;
  std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  std::int64_t small = std::min(saved, current), large = std::max(saved, current);
  if (small == 0 || large % small != 0 || large / small > kMaxFlatRanks) return;
  std::int64_t times = large / small;
  bool disk = saved > current;
  Hypothesis one{"H-K", disk ? &kAxisGrown : &kShapeMismatch,
                 disk ? FaultSide::kCheckpoint : FaultSide::kRequest, disk ? 0.6 : 0.35};
  one.title =
      disk ? fmt::format("a tensor that is equal on all ranks was concatenated {} times", times)
           : "the loader treats a tensor that is equal on all ranks as sharded";
  one.text = fmt::format(
      "{} is {} x {}. Norms, routers and some biases are the same on every rank: joining them (a "
      "merge of per-rank files, from_local with Shard(0)) repeats them. {}",
      large, times, small,
      disk ? fmt::format("One of the {} copies is the tensor.", times)
           : "The checkpoint is fine; fix the loader.");
  one.decide = fmt::format(
      "Check whether the {} parts are equal, and whether a rank group has {} ranks.", times, times);
  one.command = check_command(disk ? "--spec SPEC.json --data" : "--spec SPEC.json");
  one.evidence.emplace_back("copies", times);
  all.push_back(std::move(one));
}

namespace {

// A column of "lora_embedding_A" is a token.
void add_adapter_tokens_hypothesis(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const std::int64_t saved = shapes.message.saved[1], current = shapes.message.current[1];
  Hypothesis one{"H-V", &kShapeMismatch, FaultSide::kRequest, 0.9};
  one.title =
      fmt::format("the adapter was trained with {} tokens, and the model has {}", saved, current);
  one.text =
      "The adapter changes the embedding, with one column per token. Tokens were added before "
      "training (or the base model differs). Load the adapter's tokenizer, resize the base to the "
      "adapter's number of tokens (resize_token_embeddings), then load the adapter.";
  one.decide =
      "Compare the length of the adapter's tokenizer with the rows of the base's embedding.";
  one.command = check_command("--against BASE");
  one.evidence.emplace_back("saved_tokens", saved);
  one.evidence.emplace_back("current_tokens", current);
  all.push_back(std::move(one));
}

// The axis of "lora_A" [r, in] or "lora_B" [out, r] that is the layer's.
bool is_layer_axis(const ErrorMessage& message, std::size_t dim) {
  auto has = [&](std::string_view word) { return message.name.find(word) != std::string::npos; };
  if (message.saved.size() != 2) return false;
  if (has("lora_A.") || has("lora_down.") || has("lora.down.")) return dim == 1;
  return (has("lora_B.") || has("lora_up.") || has("lora.up.")) && dim == 0;
}

// Of one rank's part, a size is a multiple of the other; parts by eight are of no other width.
void add_adapter_base_hypothesis(const ShapeCase& shapes, std::size_t dim,
                                 std::vector<Hypothesis>& all) {
  constexpr std::int64_t kMaxOfWidths = 4;
  const std::int64_t saved = shapes.message.saved[dim], current = shapes.message.current[dim];
  const std::int64_t small = std::min(saved, current), large = std::max(saved, current);
  const bool is_ratio = small > 0 && large % small == 0;
  if (is_ratio && large / small > kMaxOfWidths) return;
  Hypothesis one{"H-AB", &kShapeMismatch, FaultSide::kRequest, is_ratio ? 0.55 : 0.85};
  one.title = "the adapter was trained on another base model";
  one.text = fmt::format(
      "The LoRA rank matches, but the adapted layer has a different width: {} in the file, {} in "
      "the model. Use the adapter with the base model that it names, in the right size.",
      saved, current);
  one.decide =
      "Compare \"base_model_name_or_path\" in adapter_config.json with the model that is loaded.";
  one.command = check_command("--against BASE");
  one.evidence.emplace_back("saved_width", saved);
  one.evidence.emplace_back("current_width", current);
  all.push_back(std::move(one));
}

}  // namespace

void add_hypothesis_adapter_rank(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if (!shapes.traits.adapter || shapes.differing.size() != 1) return;
  std::size_t dim = shapes.differing[0];
  // "lora_embedding_A" is [r, tokens], "lora_embedding_B" [width, r].
  const std::string& fqn = shapes.message.name;
  if (fqn.find("embedding_A") != fqn.npos && dim == 1)
    return add_adapter_tokens_hypothesis(shapes, all);
  if (is_layer_axis(shapes.message, dim)) return add_adapter_base_hypothesis(shapes, dim, all);
  Hypothesis one{"H-R", &kShapeMismatch, FaultSide::kRequest, 0.8};
  one.title = "the adapter was trained with a different LoRA rank";
  one.text = fmt::format(
      "Saved with r={}, but the model has r={}. The checkpoint is fine: build the model with the "
      "rank in its adapter_config.json.",
      shapes.message.saved[dim], shapes.message.current[dim]);
  one.decide = "Check \"r\" (and rank_pattern) in adapter_config.json.";
  one.command = "shardwright ls CHECKPOINT lora_";
  one.evidence.emplace_back("saved_rank", shapes.message.saved[dim]);
  one.evidence.emplace_back("current_rank", shapes.message.current[dim]);
  all.push_back(std::move(one));
}

}  // namespace shw
