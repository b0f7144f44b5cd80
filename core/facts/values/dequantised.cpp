#include "core/facts/values/dequantised.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "core/base/json.h"
#include "core/base/words.h"
#include "core/facts/check_input.h"
#include "core/facts/names/quant_config.h"
#include "core/facts/values/computed_tensors.h"
#include "core/facts/values/quant_forms.h"
#include "core/formats/common/not_examined_finding.h"

namespace shw {
namespace {

constexpr std::string_view kModelConfig = "config.json";
constexpr std::uint64_t kMaxQuantConfigBytes = std::uint64_t{16} << 20;

// Removes the quantisation method from config.json, because loaders would look for the removed
// scales.
std::shared_ptr<const ByteSource> config_without_quantisation(const Directory& folder) {
  const std::string path(kModelConfig);
  if (folder.stat(path).kind != EntryKind::kFile) return nullptr;
  auto source = folder.open(path);
  if (!source || (*source)->size() > kMaxQuantConfigBytes) return nullptr;
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) return nullptr;
  auto json = parse_json<nlohmann::ordered_json>(
                  {reinterpret_cast<const char*>(bytes->data()), bytes->size()})
                  .tree;
  if (!json.is_object()) return nullptr;
  for (const char* key : {"quantization_config", "compression_config", "quantization"}) {
    json.erase(key);
    if (json.contains("text_config") && json["text_config"].is_object())
      json["text_config"].erase(key);
  }
  const std::string text =
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const auto view = std::as_bytes(std::span(text));
  return memory_source(path, Bytes(view.begin(), view.end()));
}

// The most frequent dtype of the weights that are not quantised; float32 if there are none.
Dtype usual_unquantised_dtype(const Checkpoint& c, const std::set<TensorId>& used) {
  std::map<Dtype, std::size_t> counts;
  for (TensorId tensor : c.tensors()) {
    const Dtype dtype = c.dtype(tensor);
    const bool is_plain =
        dtype == Dtype::kBfloat16 || dtype == Dtype::kFloat16 || dtype == Dtype::kFloat32;
    if (is_plain && !used.contains(tensor)) ++counts[dtype];
  }
  Dtype most = Dtype::kFloat32;
  std::size_t count = 0;
  for (const auto& [dtype, times] : counts) {
    if (times > count) most = dtype;
    count = std::max(count, times);
  }
  return most;
}

struct DecodedWeights {
  std::vector<DecodedWeight> weights;
  std::map<std::string, std::vector<std::string>> not_decoded;  // weight names by reason
  std::set<TensorId> kept;  // companions of weights that are not decoded
};

DecodedWeights decode_families(const std::shared_ptr<const Checkpoint>& checkpoint) {
  DecodedWeights found;
  const auto config = read_quant_config(*checkpoint->directory());
  const CheckInput input{*checkpoint, nullptr, nullptr, {}, {}, {}, {}};
  const std::vector<QuantFamily> families = quant_families(input, config);
  const TensorClasses classes = classes_of_families(*checkpoint, families);
  const QuantConfig known = config.value_or(QuantConfig{});
  for (const QuantFamily& family : families) {
    for (const QuantPair& pair : family.pairs) {
      // Skips weights that the file's codec decodes by itself (GGUF NVFP4): only those with a
      // global scale next to them are decoded here.
      if (!family.scheme->codec.empty() && !pair.beside[0]) continue;
      auto weight = decoded_weight(checkpoint, family, pair, known, classes);
      if (weight)
        found.weights.push_back(std::move(*weight));
      else
        found.not_decoded[weight.error().message].emplace_back(checkpoint->fqn(pair.weight));
      for (const auto& one : pair.beside)
        if (!weight && one) found.kept.insert(*one);
    }
  }
  return found;
}

std::vector<Finding> report_not_decoded(const DecodedWeights& found) {
  std::vector<Finding> findings;
  for (const auto& [why, names] : found.not_decoded) {
    findings.push_back(not_examined_finding(
        names, fmt::format("{} {} as {} stored: {} {}.", plural(names.size(), "quantised weight"),
                           names.size() == 1 ? "stays" : "stay",
                           names.size() == 1 ? "it is" : "they are", short_list_text(names), why)));
  }
  return findings;
}

ComputedTensor computed_weight(DecodedWeight weight, Dtype dtype) {
  ComputedTensor tensor{.fqn = std::move(weight.fqn),
                        .dtype = dtype,
                        .shape = std::move(weight.shape),
                        .rows_at_once = weight.rows_at_once,
                        .make = {},
                        .is_rounded = dtype != Dtype::kFloat32};
  tensor.make = [decode = std::move(weight.decode), dtype](std::int64_t first,
                                                           std::int64_t count) -> Result<Bytes> {
    SHW_TRY(const std::vector<float> made, decode(first, count));
    return rounded_to(dtype, made);
  };
  return tensor;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> dequantised(std::shared_ptr<const Checkpoint> checkpoint,
                                                      Progress* progress) {
  if (checkpoint->directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint is not in a directory");
  DecodedWeights found = decode_families(checkpoint);
  if (found.weights.empty()) {
    const std::string why =
        found.not_decoded.empty() ? "" : ": a quantised weight " + found.not_decoded.begin()->first;
    return fail(ErrorKind::kUnsupported, "holds no quantised weight that is decoded" + why,
                {checkpoint->directory()->name()}, "Open it without @dequantised.");
  }
  ComputedPart part;
  for (const DecodedWeight& weight : found.weights)
    part.replaced.insert(weight.used.begin(), weight.used.end());
  std::set<TensorId> of_quantised = part.replaced;
  of_quantised.merge(found.kept);
  const Dtype dtype = usual_unquantised_dtype(*checkpoint, of_quantised);
  if (auto config = config_without_quantisation(*checkpoint->directory()))
    part.files.push_back(std::move(config));
  part.hidden_files = {kQuantisationFiles.begin(), kQuantisationFiles.end()};
  for (DecodedWeight& weight : found.weights)
    part.tensors.push_back(computed_weight(std::move(weight), dtype));
  part.findings = report_not_decoded(found);
  part.made_of = {checkpoint};
  return add_computed_tensors(std::move(checkpoint), std::move(part), progress);
}

}  // namespace shw
