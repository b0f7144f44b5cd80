// Hypotheses from a tensor's name and two sizes: heads, position tables, an axis of length one,
// blocks of GGUF that were not decoded.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "core/base/checked.h"
#include "core/explain/hypotheses.h"
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

Extents without_unit_dims(const Extents& shape) {
  Extents rest;
  for (std::int64_t extent : shape) {
    if (extent != 1) rest.push_back(extent);
  }
  return rest;
}

// "1 + 14 x 14", "24 x 24"; empty if `rows` is neither a square nor one or two above it.
std::string patch_grid_text(std::int64_t rows) {
  for (std::int64_t extra : {0, 1, 2, 5}) {
    if (rows - extra < 4) continue;
    const auto side =
        static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(rows - extra))));
    if (checked_mul(side, side) != rows - extra) continue;
    return (extra == 0 ? "" : fmt::format("{} + ", extra)) + fmt::format("{} x {}", side, side);
  }
  return "";
}

// Bytes and elements of ggml's blocks: Q4_0 to Q8_0, and the K quantisations.
struct GgmlBlock {
  std::int64_t elements, bytes;
  std::string_view name;
};
constexpr std::array<GgmlBlock, 9> kGgmlBlocks = {{{32, 18, "Q4_0 or Q4_K"},
                                                   {32, 20, "Q4_1"},
                                                   {32, 22, "Q5_0 or Q5_K"},
                                                   {32, 24, "Q5_1"},
                                                   {32, 34, "Q8_0"},
                                                   {256, 84, "Q2_K"},
                                                   {256, 110, "Q3_K"},
                                                   {256, 210, "Q6_K"},
                                                   {32, 17, "MXFP4"}}};

const GgmlBlock* ggml_block_for_shapes(const Extents& bytes, const Extents& elements) {
  if (bytes.size() != elements.size() || bytes.empty() || bytes.back() == 0) return nullptr;
  if (!std::equal(bytes.begin(), bytes.end() - 1, elements.begin())) return nullptr;
  for (const GgmlBlock& block : kGgmlBlocks) {
    if (elements.back() % block.elements != 0) continue;
    if (checked_mul(elements.back() / block.elements, block.bytes) == bytes.back()) return &block;
  }
  return nullptr;
}

// "weight" or nothing: some loaders print only the last part of a name.
bool is_last_name_part_only(std::string_view name) {
  return name.find('.') == name.npos && (name.empty() || name == "weight" || name == "embedding");
}

// True if joining neighbouring axes of `many` makes `few`: [768, 12, 64] and [768, 768].
bool reshapes_by_joining_dims(const Extents& many, const Extents& few) {
  std::size_t at = 0;
  for (std::int64_t extent : few) {
    std::int64_t product = 1;
    while (at < many.size() && (product < extent || many[at] == 1)) {
      const auto next = checked_mul(product, many[at++]);
      if (!next) return false;
      product = *next;
    }
    if (product != extent) return false;
  }
  return at == many.size();
}

// Loaders of JAX keep a bias per head as [heads, head_dim].
bool is_of_jax(std::string_view loader) {
  return loader == "Flax" || loader == "Orbax" || loader == "Keras" || loader == "TensorFlow";
}

// Weights with a row and a column of their own per place of a picture: [h, w], or [h, w / 2 + 1]
// where a Fourier transform of real numbers keeps half of the columns.
void add_image_size_hypothesis(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  constexpr std::int64_t kMinPlaces = 5, kMaxPlaces = 256;  // fewer are a convolution's window
  if (shapes.differing.size() != 2 || shapes.differing[1] != shapes.differing[0] + 1) return;
  const std::size_t row = shapes.differing[0];
  auto is_grid = [&](const Extents& shape) {
    const std::int64_t rows = shape[row], columns = shape[row + 1];
    return rows >= kMinPlaces && rows <= kMaxPlaces && (columns == rows || columns == rows / 2 + 1);
  };
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  const bool are_alike = (saved[row] == saved[row + 1]) == (current[row] == current[row + 1]);
  const bool is_window = row + 2 == saved.size() && saved.size() == 4 && saved[0] != 1;
  if (saved.size() < 3 || is_window || !is_grid(saved) || !is_grid(current) || !are_alike) return;
  Hypothesis one{"H-P", &kShapeMismatch, FaultSide::kEither, 0.85};
  one.title = "the tensor has one value per image position, and the image sizes differ";
  one.text = fmt::format(
      "Two neighbouring axes are a grid: {0} x {0} positions were saved, the model expects {1} x "
      "{1}. The loading model is built for a different image or patch size. The checkpoint is "
      "fine: build the model for the saved size, or interpolate these tensors.",
      saved[row], current[row]);
  one.decide = "Compare image size and patch size of both models.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("saved_positions", saved[row]);
  one.evidence.emplace_back("current_positions", current[row]);
  all.push_back(std::move(one));
}

// Keras keeps a dense layer as [inputs, outputs] and names it by its kind, so that the last layer
// does not show by its name.
void add_output_count_hypothesis(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  if (saved.size() > 2 || shapes.differing != std::vector<std::size_t>{saved.size() - 1}) return;
  Hypothesis one{"H-C", &kShapeMismatch, FaultSide::kRequest, 0.8};
  one.title = "a layer has a different number of outputs (classes, if it is the last layer)";
  one.text = fmt::format(
      "{} outputs were saved, but the model has {}, from the same inputs. In the last layer these "
      "are the classes (or tokens) of the data. The checkpoint is fine. Build the model with {}, "
      "or load by name and skip what differs (by_name=True, skip_mismatch=True) and train that "
      "layer again.",
      saved.back(), current.back(), saved.back());
  one.decide = "Check whether this layer is the only one that differs.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("saved_classes", saved.back());
  one.evidence.emplace_back("current_classes", current.back());
  all.push_back(std::move(one));
}

}  // namespace

void add_hypothesis_folded_axes(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  const bool is_saved_longer = saved.size() > current.size();
  const Extents &many = is_saved_longer ? saved : current, &few = is_saved_longer ? current : saved;
  // One row of numbers is FSDP's flat parameter, or packed.
  const bool is_flat = few.size() < 2 && !shapes.traits.bias && !is_of_jax(shapes.message.speaker);
  if (many.size() == few.size() || few.empty() || is_flat ||
      without_unit_dims(many) == without_unit_dims(few))
    return;
  if (!reshapes_by_joining_dims(many, few)) return;
  Hypothesis one{"H-FO", &kShapeMismatch, FaultSide::kRequest, 0.92};
  one.title = "the same elements in the same order, but one side merges some axes";
  one.text = fmt::format(
      "{} and {} have equally many elements, and merging neighbouring axes of the first gives the "
      "second: one program has a separate axis for heads, pixel patches or experts, the other does "
      "not. No element is lost or moved. Convert between the two programs, or reshape on load.",
      to_text(many), to_text(few));
  one.decide = "Check the shape in files that the loader itself writes.";
  one.command = "shardwright ls CHECKPOINT";
  all.push_back(std::move(one));
}

void add_hypothesis_unit_axis(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  const Extents bare = without_unit_dims(saved);
  if (saved.size() == current.size() || bare != without_unit_dims(current)) return;
  Hypothesis one{"H-1", &kShapeMismatch, FaultSide::kEither, 0.92};
  one.title = "the same elements in the same order, but only one side has an axis of length 1";
  one.text = to_text(saved) + " and " + to_text(current) +
             " differ only in axes of length 1: one number with or without an axis, a scale per "
             "row with or without a second axis, a convolution of width 1 against a linear layer, "
             "a batch axis. No element is lost or moved; the tensor has to be reshaped at the "
             "load, or saved again with the other shape.";
  one.decide = "Check the shape in files that the loader itself writes.";
  one.command = "shardwright ls CHECKPOINT";
  all.push_back(std::move(one));
}

void add_hypothesis_position_table(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  add_image_size_hypothesis(shapes, all);
  if (shapes.differing.size() != 1) return;
  const std::size_t dim = shapes.differing[0];
  const std::int64_t saved = shapes.message.saved[dim], current = shapes.message.current[dim];
  const std::string from = patch_grid_text(saved), to = patch_grid_text(current);
  const std::size_t dims = shapes.message.saved.size();
  const bool has_grids = !from.empty() && !to.empty() &&
                         is_last_name_part_only(shapes.message.name) && dim + 2 == dims &&
                         saved % 2 != 0 && current % 2 != 0;
  // The last axis of a table is the model's width.
  const bool is_width = dims >= 2 && dim + 1 == dims;
  if ((!shapes.traits.position || is_width) && !has_grids) return;
  Hypothesis one{"H-P", &kShapeMismatch, FaultSide::kRequest, 0.9};
  one.title = "the position table is for a different input size";
  one.text = fmt::format("{} positions were saved, but the model has {}", saved, current);
  if (!from.empty() && !to.empty())
    one.text += " (" + from + " and " + to + ": a different image or patch size)";
  one.text +=
      ". The loading model has a different image size, patch size or context length. The "
      "checkpoint is fine: build the model for the saved size, or interpolate the table.";
  one.decide = "Compare image size, patch size or context length of both models.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("saved_positions", saved);
  one.evidence.emplace_back("current_positions", current);
  all.push_back(std::move(one));
}

void add_hypothesis_class_head(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const std::string_view loader = shapes.message.kind->loader;
  if (!shapes.message.saved.empty() && (loader == "Keras" || loader == "TensorFlow"))
    add_output_count_hypothesis(shapes, all);
  if (!shapes.traits.head || shapes.differing != std::vector<std::size_t>{0}) return;
  const std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  Hypothesis one{"H-C", &kShapeMismatch, FaultSide::kRequest, 0.88};
  one.title = "the head has a different number of classes";
  one.text = fmt::format(
      "The checkpoint's head has {} rows, one per class (or token), but the loading model has {}. "
      "The checkpoint is fine. For a new task do not load the head, and train it; for the same "
      "task build the model with {} classes (num_labels, num_classes).",
      saved, current, saved);
  one.decide = "Check whether the head is the only tensor that differs.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("saved_classes", saved);
  one.evidence.emplace_back("current_classes", current);
  all.push_back(std::move(one));
}

// Converters view q and k as [heads, 2, half of a head, hidden] to reorder rotary halves.
void add_hypothesis_key_heads(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const Extents &saved = shapes.message.saved, &view = shapes.message.current;
  if (saved.size() != 1 || view.size() != 4 || (view[1] != 2 && view[2] != 2)) return;
  const auto all_heads = volume(view);
  if (!all_heads || *all_heads <= 0 || view[0] < 2 || saved[0] <= 0) return;
  const std::int64_t head = *all_heads / view[0];
  if (saved[0] % head != 0 || saved[0] / head >= view[0] || view[0] % (saved[0] / head) != 0)
    return;
  const std::int64_t heads = saved[0] / head;
  Hypothesis one{"H-K", &kShapeMismatch, FaultSide::kRequest, 0.9};
  one.title = "the converter used the number of query heads for a key or value tensor";
  one.text = fmt::format(
      "{} elements are {} heads of {} x {} x {}, and the view has {}. The model groups its queries "
      "(GQA): k_proj and v_proj have {} heads. config.json lacks num_key_value_heads, or the "
      "converter does not support grouped-query attention. The weights are fine: add the key, or "
      "update the converter.",
      saved[0], heads, view[1], view[2], view[3], view[0], heads);
  one.decide = "Check num_attention_heads and num_key_value_heads in config.json.";
  one.command = "shardwright check CHECKPOINT";
  one.evidence.emplace_back("key_value_heads", heads);
  all.push_back(std::move(one));
}

void add_hypothesis_ggml_block(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const GgmlBlock* block = ggml_block_for_shapes(shapes.message.saved, shapes.message.current);
  if (block == nullptr) return;
  // 24 / 32 and 20 / 32 are the ratio of many two widths as well: 768 and 1024, 5120 and 8192.
  const std::int64_t divisor = std::gcd(block->bytes, block->elements);
  const bool is_plain_ratio = block->elements / divisor <= 8;
  const bool reads_blocks =
      shapes.message.speaker == "llama.cpp" || shapes.message.speaker == "ComfyUI";
  Hypothesis one{"H-G", nullptr, FaultSide::kRequest, is_plain_ratio && !reads_blocks ? 0.25 : 0.9};
  one.title = "the bytes of quantised blocks were read as elements";
  one.text = fmt::format(
      "{} is {} x {} / {}: {} keeps {} elements in {} bytes. The file is fine; the loader did not "
      "decode this tensor, because it does not support the type or does not treat the file as "
      "GGUF. Update the loader, or use another quantisation of the file.",
      shapes.message.saved.back(), shapes.message.current.back(), block->bytes, block->elements,
      block->name, block->elements, block->bytes);
  one.decide = "Check the type of the tensor in the GGUF file.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("type", std::string(block->name));
  all.push_back(std::move(one));
}

// GPTQ and AWQ: scales and zero points have a row per group, packed weights a row per 32 / bits.
void add_hypothesis_groups(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const ErrorMessage& message = shapes.message;
  const std::string_view name = message.name;
  auto ends_in = [&](std::initializer_list<std::string_view> ends) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](std::string_view end) { return name.ends_with(end); });
  };
  const bool is_group = ends_in({".qzeros", ".scales", ".scales_and_zeros", ".weight_scale"});
  const bool is_packed = ends_in({".qweight", ".weight_packed"});
  if ((!is_group && !is_packed) || shapes.differing.size() != 1) return;
  const std::size_t dim = shapes.differing[0], last = message.saved.size() - 1;
  // Another axis is that of the outputs, which neither groups nor bits change.
  const bool is_last = ends_in({".weight_scale", ".weight_packed"});
  if (dim != (is_last ? last : 0) || message.saved.size() < 2) return;
  Hypothesis one{"H-QG", &kQuantisedPairs, FaultSide::kRequest, 0.93};
  one.title = is_group
                  ? "the quantisation group size differs between file and model"
                  : "the weight is packed with a different number of bits, or has a different size";
  one.text = fmt::format(
      "{} in the file, {} in the model. {} No damage was found: load with the quantisation of the "
      "save (quantization_config, quantize_config.json, or the option for it).",
      message.saved[dim], message.current[dim],
      is_group ? "There is a row per group: one row means one group for the whole column "
                 "(group_size -1)."
               : "A packed row holds 32 / bits values: mixed bits or padding give other rows.");
  one.decide = "Compare group_size and bits in the file's config with those of the call.";
  one.command = check_command();
  one.evidence.emplace_back("saved", message.saved[dim]);
  one.evidence.emplace_back("current", message.current[dim]);
  all.push_back(std::move(one));
}

}  // namespace shw
