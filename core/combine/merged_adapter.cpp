#include "core/combine/merged_adapter.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/combine/base_names.h"
#include "core/combine/lora_rows.h"
#include "core/combine/model_config.h"
#include "core/combine/module_names.h"
#include "core/combine/wrapped_parameters.h"
#include "core/facts/names/adapter_config.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/facts/values/computed_tensors.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

using Parts = LoraParts;

tl::unexpected<Error> merge_error(std::string why, std::string_view fqn = {},
                                  std::string advice = {}) {
  return fail(ErrorKind::kUnsupported, std::move(why),
              Place{.file = {}, .tensor = std::string(fqn)}, std::move(advice));
}

// The tensors of an adapter: matrices by module, others by their name in the base.
struct AdapterTensors {
  std::map<std::string, Parts> modules;
  std::map<std::string, TensorId> biases;       // lora_B.bias, by module
  std::map<std::string, TensorId> base_layers;  // base weights that PEFT saves with their matrices
  std::map<std::string, TensorId> whole;
};

std::string whole_name(std::string_view fqn) {
  std::string name = adapter_file_name(fqn).substr(kPeftRoot.size());
  for (std::string_view part : {".base_layer", ".original_module"}) {
    if (const std::size_t at = name.find(part); at != std::string::npos)
      name.erase(at, part.size());
  }
  return name;
}

// With trained biases PEFT saves a module of modules_to_save up to three times: under its own name,
// under the wrapper's name, and in its original state. Lower ranks are preferred.
int preference_of_saved_copy(std::string_view fqn) {
  if (fqn.find(".original_module.") != std::string_view::npos) return 2;
  return fqn.find(".modules_to_save.") != std::string_view::npos ? 1 : 0;
}
// False if the adapter has another copy of the same rank.
bool keep_preferred_saved_copy(const Checkpoint& adapter, TensorId tensor,
                               AdapterTensors& tensors) {
  const auto [found, is_new] = tensors.whole.emplace(whole_name(adapter.fqn(tensor)), tensor);
  if (is_new) return true;
  const int rank = preference_of_saved_copy(adapter.fqn(tensor));
  const int there = preference_of_saved_copy(adapter.fqn(found->second));
  if (rank < there) found->second = tensor;
  return rank != there;
}

Result<AdapterTensors> tensors_of(const Checkpoint& adapter) {
  AdapterTensors tensors;
  for (TensorId tensor : adapter.tensors()) {
    const std::string_view fqn = adapter.fqn(tensor);
    bool is_new = true;
    if (const auto name = lora_name(fqn)) {
      const bool is_bias = fqn.ends_with(".bias");
      if (is_bias && name->part != LoraPart::kB) return merge_error("is not part of LoRA", fqn);
      is_new = is_bias ? tensors.biases.emplace(name->module, tensor).second
                       : tensors.modules[name->module].emplace(name->part, tensor).second;
    } else if (is_adapter_name(fqn) || fqn.find(".token_adapter.") != std::string_view::npos) {
      return merge_error("does not belong to a LoRA adapter: other kinds cannot be merged", fqn,
                         "PEFT's merge_and_unload() merges it, where it can be merged.");
    } else {
      is_new = keep_preferred_saved_copy(adapter, tensor, tensors);
    }
    if (!is_new)
      return merge_error("is of a second adapter in the same file", fqn,
                         "Save each adapter alone with save_pretrained(), and merge one after the "
                         "other.");
  }
  // PEFT also saves an embedding that has matrices, because it may have more rows than the base's.
  for (const auto& [module, parts] : tensors.modules) {
    if (auto found = tensors.whole.extract(module + ".weight"))
      tensors.base_layers.emplace(module, found.mapped());
  }
  return tensors;
}

Status check_config(const AdapterConfig& config) {
  if (!config.changes_base.empty())
    return merge_error(
        fmt::format("the adapter began as \"{}\" (init_lora_weights), which changes the base's own "
                    "weights when it is loaded: its matrices alone do not say how",
                    config.changes_base),
        {},
        "Save it with path_initial_model_for_weight_conversion, which makes a plain LoRA of it, or "
        "merge it with PEFT.");
  if (config.has_unknown_rows)
    return merge_error(
        "adapter_config.json says that matrices are stacked or split (one of layer_replication, "
        "use_qalora, use_bdlora, megatron_config), which is not merged");
  if (!config.peft_type.empty() && config.peft_type != "LORA")
    return merge_error(
        fmt::format("the adapter has the type {}: only LoRA can be merged", config.peft_type));
  return {};
}

class AdapterMerge {
 public:
  AdapterMerge(std::shared_ptr<const Checkpoint> base, std::shared_ptr<const Checkpoint> adapter,
               AdapterConfig config)
      : base_(std::move(base)),
        adapter_(std::move(adapter)),
        config_(std::move(config)),
        names_(*base_) {}

  Result<ComputedPart> take(AdapterTensors tensors) {
    SHW_TRY(auto wrapped,
            consume_wrapped_parameters(base_, adapter_, config_, names_, tensors.modules));
    for (ParameterProduct& one : wrapped) SHW_CHECK(replace_expert_weight(std::move(one)));
    const bool turned = config_.fan_in_fan_out || has_only_transposed_fit(tensors);
    for (const auto& [module, parts] : tensors.modules) {
      const auto own_base = tensors.base_layers.find(module);
      std::optional<TensorId> saved;
      if (own_base != tensors.base_layers.end()) saved = own_base->second;
      SHW_CHECK(add_product(module, parts, saved, turned));
    }
    for (const auto& [module, tensor] : tensors.biases)
      SHW_CHECK(add_bias(module, tensor, tensors));
    for (const auto& [name, tensor] : tensors.whole) SHW_CHECK(add_whole(name, tensor));
    changes_.vocabulary = rows_;
    if (auto config = config_with_changes(*base_->directory(), changes_))
      part_.files.push_back(std::move(config));
    if (rows_) {
      for (auto& file : tokenizer_files(*adapter_->directory())) part_.files.push_back(file);
    }
    part_.made_of = {base_, adapter_};
    return std::move(part_);
  }

 private:
  ReadableTensor own(TensorId tensor) const { return readable(adapter_, tensor); }

  // True if the shapes match a product of A [r, in] and B [out, r]; `turned`: for an [in, out]
  // weight.
  bool fits(const Parts& parts, ExtentsView weight, bool turned) const {
    const auto a = parts.find(LoraPart::kA), b = parts.find(LoraPart::kB);
    if (a == parts.end() || b == parts.end() || weight.size() < 2) return false;
    const ExtentsView in = adapter_->shape(a->second), out = adapter_->shape(b->second);
    if (in.size() != weight.size() || out.size() != weight.size()) return false;
    if (turned)
      return weight.size() == 2 && in[0] == out[1] && in[1] == weight[0] && out[0] == weight[1];
    const bool is_point =
        std::all_of(out.begin() + 2, out.end(), [](auto size) { return size == 1; });
    return is_point && in[0] == out[1] && out[0] == weight[0] &&
           std::equal(in.begin() + 1, in.end(), weight.begin() + 1);
  }

  // Detects [in, out] modules as in GPT-2, which the config may not declare.
  bool has_only_transposed_fit(const AdapterTensors& tensors) {
    return std::any_of(tensors.modules.begin(), tensors.modules.end(), [&](const auto& module) {
      const auto weight = names_.find(module.first + ".weight");
      return weight && fits(module.second, base_->shape(*weight), true) &&
             !fits(module.second, base_->shape(*weight), false);
    });
  }

  Result<TensorId> base_tensor(const std::string& name, TensorId of) {
    if (auto found = names_.find(name)) return *found;
    return merge_error(fmt::format("belongs to {}, which the base does not have", name),
                       adapter_->fqn(of),
                       "The adapter belongs to another model, or the base uses different names: "
                       "`shardwright check ADAPTER --against BASE` shows more.");
  }

  // `saved`: the adapter's own copy of the base weight.
  Status add_product(const std::string& module, const Parts& parts, std::optional<TensorId> saved,
                     bool turned) {
    const TensorId any = parts.begin()->second;
    const bool is_embedding =
        parts.contains(LoraPart::kEmbeddingA) && parts.contains(LoraPart::kEmbeddingB);
    const bool is_pair = parts.contains(LoraPart::kA) && parts.contains(LoraPart::kB);
    if (is_pair == is_embedding)
      return merge_error("has no second matrix next to it", adapter_->fqn(any));
    SHW_TRY(const TensorId weight, base_tensor(module + ".weight", any));
    if (saved) SHW_CHECK(record_vocabulary_size(weight, adapter_->shape(*saved), *saved));
    LoraProduct product{.weight = saved ? own(*saved) : readable(base_, weight),
                        .a = own(parts.at(is_pair ? LoraPart::kA : LoraPart::kEmbeddingA)),
                        .b = own(parts.at(is_pair ? LoraPart::kB : LoraPart::kEmbeddingB)),
                        .magnitude = {},
                        .is_transposed = turned || is_embedding};
    const ExtentsView shape = product.weight.shape;
    const bool is_right =
        is_pair ? fits(parts, shape, turned)
                : shape.size() == 2 && product.a.shape.size() == 2 && product.b.shape.size() == 2 &&
                      product.a.shape[0] == product.b.shape[1] && product.a.shape[1] == shape[0] &&
                      product.b.shape[0] == shape[1];
    if (!is_right)
      return merge_error(
          fmt::format("{} and {} do not make a {} of the base", to_text(product.a.shape),
                      to_text(product.b.shape), to_text(shape)),
          adapter_->fqn(any));
    SHW_TRY(product.scale, scale_of(module, product.a.shape[0]));
    SHW_CHECK(set_magnitude(parts, is_pair && shape.size() == 2, product));
    return add_computed(weight, std::move(product));
  }

  Status replace_expert_weight(ParameterProduct one) {
    SHW_TRY(one.product.scale, scale_of(one.parameter, one.product.rank));
    const Extents shape = one.product.weight.shape;
    return replace(one.weight, shape, 1,
                   [product = std::move(one.product)](std::int64_t first, std::int64_t count) {
                     return expert_rows(product, first, count);
                   });
  }

  Result<double> scale_of(const std::string& module, std::int64_t rank) const {
    if (const auto said = rank_of_module(config_, module); said && *said != rank)
      return merge_error(
          fmt::format("the matrices of {} have the rank {}, and adapter_config.json "
                      "says {}: PEFT refuses them, and the scale is not known",
                      module, rank, *said));
    if (const auto scale = scale_of_module(config_, module, rank)) return *scale;
    return merge_error(
        fmt::format("what {} is scaled with is not known: adapter_config.json has no "
                    "lora_alpha for it, or says it by a regular expression "
                    "(alpha_pattern)",
                    module));
  }

  Status set_magnitude(const Parts& parts, bool is_linear, LoraProduct& product) const {
    const auto found = parts.find(LoraPart::kMagnitude);
    if (found == parts.end()) {
      if (!config_.use_dora) return {};
      return merge_error(
          "has no magnitude vector next to it, and adapter_config.json says use_dora",
          adapter_->fqn(parts.begin()->second));
    }
    if (!config_.use_dora)
      return merge_error(
          "is of DoRA, and adapter_config.json does not say use_dora: PEFT would leave "
          "it out",
          adapter_->fqn(found->second));
    ReadableTensor magnitude = own(found->second);
    const std::int64_t outputs = product.weight.shape[product.is_transposed ? 1 : 0];
    if (!is_linear || magnitude.shape.empty() || volume(magnitude.shape) != outputs ||
        magnitude.shape[0] != outputs)
      return merge_error("is DoRA of a module that is not linear, which cannot be merged",
                         adapter_->fqn(found->second));
    product.magnitude = std::move(magnitude);
    return {};
  }

  Status can_compute(TensorId weight) const {
    const Dtype dtype = base_->dtype(weight);
    if (is_plain_float(dtype) && dtype != Dtype::kFloat64) return {};
    return merge_error(
        fmt::format("is {} in the base: weights of float32, float16 and bfloat16 are "
                    "merged",
                    name(dtype)),
        base_->fqn(weight),
        dtype == Dtype::kFloat64 ? "" : "--dequantise decodes quantised weights first.");
  }

  template <class Make>
  Status replace(TensorId weight, Extents shape, std::int64_t rows_at_once, Make make) {
    SHW_CHECK(can_compute(weight));
    if (!part_.replaced.insert(weight).second)
      return merge_error("is changed by two modules of the adapter", base_->fqn(weight));
    const Dtype dtype = base_->dtype(weight);
    ComputedTensor tensor{.fqn = std::string(base_->fqn(weight)),
                          .dtype = dtype,
                          .shape = std::move(shape),
                          .rows_at_once = rows_at_once,
                          .make = {},
                          .is_rounded = true};
    tensor.make = [make = std::move(make), dtype](std::int64_t first,
                                                  std::int64_t count) -> Result<Bytes> {
      SHW_TRY(const std::vector<float> sums, make(first, count));
      return rounded_to(dtype, sums);
    };
    part_.tensors.push_back(std::move(tensor));
    return {};
  }

  Status add_computed(TensorId weight, LoraProduct product) {
    const bool needs_all = product.is_transposed && product.magnitude.has_value();
    const std::int64_t rows = needs_all ? product.weight.shape[0] : 1;
    const Extents shape = product.weight.shape;
    return replace(weight, shape, rows,
                   [product = std::move(product)](std::int64_t first, std::int64_t count) {
                     return lora_rows(product, first, count);
                   });
  }

  // Adds the tensor base.bias + scale * lora_B.bias.
  Status add_bias(const std::string& module, TensorId tensor, const AdapterTensors& tensors) {
    const auto parts = tensors.modules.find(module);
    if (parts == tensors.modules.end() || !parts->second.contains(LoraPart::kA))
      return merge_error("has no matrices next to it", adapter_->fqn(tensor));
    SHW_TRY(const TensorId bias, base_tensor(module + ".bias", tensor));
    const ExtentsView shape = base_->shape(bias);
    if (!std::ranges::equal(shape, adapter_->shape(tensor)))
      return merge_error("has a shape that differs from the base's bias", adapter_->fqn(tensor));
    SHW_TRY(const double scale,
            scale_of(module, adapter_->shape(parts->second.at(LoraPart::kA))[0]));
    auto make = [base = readable(base_, bias), more = own(tensor), scale](
                    std::int64_t first, std::int64_t count) -> Result<std::vector<float>> {
      const Box box = rows_box(base.shape, first, count);
      SHW_TRY(std::vector<float> sums, read_floats(base, box));
      SHW_TRY(const std::vector<float> added, read_floats(more, box));
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(scale) * added[i];
      return sums;
    };
    return replace(bias, {shape.begin(), shape.end()}, 1, std::move(make));
  }

  bool is_saved_module(const std::string& name) const {
    return std::any_of(config_.saved.begin(), config_.saved.end(), [&](const std::string& saved) {
      return ("." + name).find("." + saved + ".") != std::string::npos;
    });
  }

  // Records a trained head that the base lacks, or that has other labels.
  void record_trained_head(const std::string& name, ExtentsView shape, bool is_new) {
    constexpr auto kHeads = std::to_array<std::pair<std::string_view, std::string_view>>(
        {{"SEQ_CLS", "SequenceClassification"},
         {"TOKEN_CLS", "TokenClassification"},
         {"QUESTION_ANS", "QuestionAnswering"}});
    const auto head = std::ranges::find(kHeads, config_.task,
                                        [](const auto& row) { return std::string(row.first); });
    if (head == kHeads.end() || shape.size() != 2 || !is_label_layer(name)) return;
    if (is_new) changes_.head = head->second;
    changes_.labels = shape[0];
  }

  // True for the head's weight and bias, which have a row per label.
  bool is_label_head_tensor(const std::string& name) const {
    const std::string weight = std::string(module_of(name)) + ".weight";
    return (config_.task == "SEQ_CLS" || config_.task == "TOKEN_CLS") && is_label_layer(weight) &&
           is_saved_module(name);
  }

  static bool is_label_layer(std::string_view name) {
    constexpr auto kLayers = std::to_array<std::string_view>(
        {"score.weight", "classifier.weight", "classifier.out_proj.weight", "qa_outputs.weight"});
    return std::ranges::any_of(kLayers,
                               [&](std::string_view layer) { return ends_in_module(name, layer); });
  }

  // Adds a tensor that the adapter stores whole, in the dtype of the base's tensor.
  Status add_whole(const std::string& name, TensorId tensor) {
    const auto found = names_.find(name);
    if (!found && !is_saved_module(name)) return base_tensor(name, tensor).map([](TensorId) {});
    const ExtentsView shape = adapter_->shape(tensor);
    const bool has_labels = is_label_head_tensor(name);
    if (!found || has_labels) record_trained_head(name, shape, !found);
    if (found) {
      if (!has_labels) SHW_CHECK(record_vocabulary_size(*found, shape, tensor));
      if (!part_.replaced.insert(*found).second)
        return merge_error("is saved in full, but the adapter has matrices for it too",
                           adapter_->fqn(tensor));
    }
    const Dtype dtype = found ? base_->dtype(*found) : adapter_->dtype(tensor);
    const bool is_as_saved = dtype == adapter_->dtype(tensor);
    if (!is_as_saved && (!is_plain_float(dtype) || !is_plain_float(adapter_->dtype(tensor)) ||
                         dtype == Dtype::kFloat64))
      return merge_error("is of a dtype that does not become that of the base",
                         adapter_->fqn(tensor));
    auto make = [from = own(tensor), dtype, is_as_saved](std::int64_t first,
                                                         std::int64_t count) -> Result<Bytes> {
      const Box box = rows_box(from.shape, first, count);
      if (is_as_saved) return read_stored(from, box);
      SHW_TRY(const std::vector<float> elements, read_floats(from, box));
      return rounded_to(dtype, elements);
    };
    part_.tensors.push_back({.fqn = found ? std::string(base_->fqn(*found)) : name,
                             .dtype = dtype,
                             .shape = {shape.begin(), shape.end()},
                             .make = std::move(make),
                             .is_rounded = !is_as_saved});
    return {};
  }

  // Records a vocabulary of another size: embedding and head have other rows, and config.json must
  // follow.
  Status record_vocabulary_size(TensorId weight, ExtentsView shape, TensorId tensor) {
    const ExtentsView before = base_->shape(weight);
    if (std::ranges::equal(before, shape)) return {};
    const bool is_vocabulary = before.size() == shape.size() && !shape.empty() &&
                               std::equal(shape.begin() + 1, shape.end(), before.begin() + 1) &&
                               (!rows_ || *rows_ == std::pair(before[0], shape[0]));
    if (!is_vocabulary)
      return merge_error(fmt::format("is {}, and {} in the base", to_text(shape), to_text(before)),
                         adapter_->fqn(tensor));
    rows_ = {before[0], shape[0]};
    return {};
  }

  const std::shared_ptr<const Checkpoint> base_, adapter_;
  const AdapterConfig config_;
  BaseNames names_;
  ComputedPart part_;
  std::optional<std::pair<std::int64_t, std::int64_t>> rows_;  // vocabulary sizes: before, after
  ModelChanges changes_;
};

}  // namespace

Result<std::shared_ptr<const Checkpoint>> merge_adapter(std::shared_ptr<const Checkpoint> base,
                                                        std::shared_ptr<const Checkpoint> adapter,
                                                        Progress* progress) {
  if (base->directory() == nullptr || adapter->directory() == nullptr || !is_adapter(*adapter))
    return fail(ErrorKind::kUsage, "holds no adapter of PEFT",
                {adapter->directory() == nullptr ? "" : adapter->directory()->name()},
                "Give the base model first, then the folder with adapter_config.json.");
  SHW_TRY(auto config, read_adapter_config(*adapter->directory()));
  if (!config)
    return merge_error(
        "the adapter has no adapter_config.json: its scale (lora_alpha, r) is not "
        "known",
        {}, "Put the file that belongs to it into the folder.");
  SHW_CHECK(check_config(*config));
  SHW_TRY(AdapterTensors tensors, tensors_of(*adapter));
  AdapterMerge merge(base, std::move(adapter), std::move(*config));
  SHW_TRY(ComputedPart part, merge.take(std::move(tensors)));
  return add_computed_tensors(std::move(base), std::move(part), progress);
}

}  // namespace shw
