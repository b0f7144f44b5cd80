#include "core/combine/extracted_adapter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/base/json.h"
#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/combine/low_rank.h"
#include "core/combine/model_config.h"
#include "core/combine/module_names.h"
#include "core/combine/tensor_rows.h"
#include "core/facts/names/adapter_config.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/facts/values/computed_tensors.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExtractionSchema = "shardwright/extraction-1";
constexpr std::string_view kWeight = ".weight", kBias = ".bias";
constexpr std::int64_t kHeldAtOnce = std::int64_t{4} << 20;  // elements
constexpr std::uint64_t kMaxExtraction = std::uint64_t{64} << 20;

tl::unexpected<Error> extraction_error(std::string why, std::string_view fqn) {
  return fail(ErrorKind::kUnsupported, std::move(why),
              Place{.file = {}, .tensor = std::string(fqn)},
              "`shardwright delta` writes what differs of any tensors, exactly.");
}

// A tensor that both models have.
struct ModelPair {
  std::string fqn;
  ReadableTensor tuned, base;
  bool differs = false;
};

Result<bool> differs(const ModelPair& pair) {
  const std::int64_t rows = pair.tuned.shape.empty() ? 1 : pair.tuned.shape[0];
  const std::int64_t row = std::max<std::int64_t>(
      volume(pair.tuned.shape).value_or(0) / std::max<std::int64_t>(rows, 1), 1);
  const std::int64_t step = std::max<std::int64_t>(kHeldAtOnce / row, 1);
  for (std::int64_t first = 0; first < rows; first += step) {
    const Box box = rows_box(pair.tuned.shape, first, std::min(step, rows - first));
    if (pair.tuned.dtype == pair.base.dtype) {
      SHW_TRY(const Bytes a, read_stored(pair.tuned, box));
      SHW_TRY(const Bytes b, read_stored(pair.base, box));
      if (a != b) return true;
      continue;
    }
    SHW_TRY(const std::vector<float> a, read_floats(pair.tuned, box));
    SHW_TRY(const std::vector<float> b, read_floats(pair.base, box));
    if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) return true;
  }
  return false;
}

Result<std::vector<ModelPair>> pairs_of(const std::shared_ptr<const Checkpoint>& tuned,
                                        const std::shared_ptr<const Checkpoint>& base,
                                        Progress* progress) {
  std::vector<ModelPair> pairs;
  for (TensorId tensor : tuned->tensors()) {
    const std::string fqn(tuned->fqn(tensor));
    const auto other = base->find(fqn);
    if (!other) return extraction_error("is not in the base", fqn);
    pairs.push_back({fqn, readable(tuned, tensor), readable(base, *other)});
    if (pairs.back().tuned.shape != pairs.back().base.shape)
      return extraction_error(
          fmt::format("is {}, and {} in the base", to_text(pairs.back().tuned.shape),
                      to_text(pairs.back().base.shape)),
          fqn);
  }
  for (TensorId tensor : base->tensors()) {
    if (!tuned->find(base->fqn(tensor)))
      return extraction_error("is in the base alone", base->fqn(tensor));
  }
  SHW_CHECK(parallel_for(pairs.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(pairs[i].differs, differs(pairs[i]));
    return {};
  }));
  return pairs;
}

// How each changed tensor is stored in the adapter.
struct AdapterLayout {
  std::vector<const ModelPair*> matrices;  // all weights of modules that are targets
  std::vector<const ModelPair*> whole;
  std::set<std::string> targets, saved;  // last parts of modules' names
  bool has_biases = false;
};

bool has_matrices(const ModelPair& pair) {
  return pair.fqn.ends_with(kWeight) && pair.tuned.shape.size() == 2 &&
         is_plain_float(pair.tuned.dtype) && is_plain_float(pair.base.dtype) &&
         !is_embedding_module(module_of(pair.fqn));
}

Result<AdapterLayout> layout_of(const std::vector<ModelPair>& pairs) {
  AdapterLayout layout;
  for (const ModelPair& pair : pairs) {
    if (!pair.differs) continue;
    if (has_matrices(pair)) {
      layout.targets.emplace(last_part(module_of(pair.fqn)));
    } else if (pair.fqn.ends_with(kBias)) {
      layout.has_biases = true;
    } else if (pair.fqn.ends_with(kWeight) && pair.tuned.shape.size() < 3) {
      layout.saved.emplace(last_part(module_of(pair.fqn)));
    } else {
      return extraction_error(
          fmt::format("{} differs from the base, and has no place in an adapter",
                      to_text(pair.tuned.shape)),
          pair.fqn);
    }
  }
  // PEFT creates matrices for every module with a target's name.
  for (const ModelPair& pair : pairs) {
    const std::string module(last_part(module_of(pair.fqn)));
    if (layout.saved.contains(module))
      layout.whole.push_back(&pair);
    else if (has_matrices(pair) && layout.targets.contains(module))
      layout.matrices.push_back(&pair);
    else if (layout.has_biases && pair.fqn.ends_with(kBias))
      layout.whole.push_back(&pair);
  }
  if (layout.matrices.empty() && layout.whole.empty())
    return fail(ErrorKind::kUsage, "the two are equal bit for bit: there is nothing to extract");
  if (layout.matrices.empty())
    return extraction_error("no two-dimensional weight differs, and others have no matrices",
                            layout.whole.front()->fqn);
  return layout;
}

// True if weights are [in, out], as in GPT-2: their biases then have an element per column.
bool are_weights_transposed(const std::vector<ModelPair>& pairs) {
  std::map<std::string_view, std::int64_t> biases;
  for (const ModelPair& pair : pairs) {
    if (pair.fqn.ends_with(kBias) && pair.tuned.shape.size() == 1)
      biases.emplace(module_of(pair.fqn), pair.tuned.shape[0]);
  }
  return std::any_of(pairs.begin(), pairs.end(), [&](const ModelPair& pair) {
    const auto bias = biases.find(module_of(pair.fqn));
    const Extents& shape = pair.tuned.shape;
    return has_matrices(pair) && bias != biases.end() && shape[0] != shape[1] &&
           bias->second == shape[1];
  });
}

MatrixRows difference_of(const ModelPair& pair) {
  MatrixRows rows{pair.tuned.shape[0], pair.tuned.shape[1], {}};
  rows.read = [&pair](std::int64_t first, std::int64_t count) -> Result<std::vector<float>> {
    const Box box = rows_box(pair.tuned.shape, first, count);
    SHW_TRY(std::vector<float> difference, read_floats(pair.tuned, box));
    SHW_TRY(const std::vector<float> before, read_floats(pair.base, box));
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= before[i];
    return difference;
  };
  return rows;
}

ComputedTensor loaded_tensor(std::string fqn, Extents shape, std::vector<float> elements) {
  ComputedTensor tensor{.fqn = std::move(fqn),
                        .dtype = Dtype::kFloat32,
                        .shape = std::move(shape),
                        .make = {},
                        .is_rounded = true};
  const std::int64_t row = tensor.shape[1];
  tensor.make = [elements = std::move(elements), row](std::int64_t first,
                                                      std::int64_t count) -> Result<Bytes> {
    const auto bytes = std::as_bytes(std::span(elements).subspan(
        static_cast<std::size_t>(first * row), static_cast<std::size_t>(count * row)));
    return Bytes(bytes.begin(), bytes.end());
  };
  return tensor;
}

void add_pair(const ModelPair& pair, LowRank found, std::int64_t rank, bool is_turned,
              ComputedPart& part) {
  const std::string module = std::string(kPeftRoot) + std::string(module_of(pair.fqn));
  const std::int64_t rows = pair.tuned.shape[0], columns = pair.tuned.shape[1];
  // The difference W is B A; for an [in, out] weight its transpose, A^T B^T.
  std::vector<float> a = std::move(found.right), b = std::move(found.left);
  if (is_turned) {
    const auto r = static_cast<std::size_t>(rank);
    std::vector<float> other = transposed_matrix(a, r, static_cast<std::size_t>(columns));
    a = transposed_matrix(b, static_cast<std::size_t>(rows), r);
    b = std::move(other);
  }
  part.tensors.push_back(
      loaded_tensor(module + ".lora_A.weight", {rank, is_turned ? rows : columns}, std::move(a)));
  part.tensors.push_back(
      loaded_tensor(module + ".lora_B.weight", {is_turned ? columns : rows, rank}, std::move(b)));
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json adapter_config(const AdapterLayout& layout, std::int64_t rank, bool is_turned,
                    const Directory& base) {
  return {{"peft_type", "LORA"},
          {"task_type", is_causal_model(base) ? Json("CAUSAL_LM") : Json()},
          {"base_model_name_or_path", base.name()},
          {"r", rank},
          {"lora_alpha", rank},
          {"lora_dropout", 0.0},
          {"target_modules", layout.targets},
          {"modules_to_save", layout.saved.empty() ? Json() : Json(layout.saved)},
          {"bias", layout.has_biases ? "all" : "none"},
          {"fan_in_fan_out", is_turned},
          {"inference_mode", true}};
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> extract_adapter(std::shared_ptr<const Checkpoint> tuned,
                                                          std::shared_ptr<const Checkpoint> base,
                                                          std::int64_t rank, Progress* progress) {
  if (tuned->directory() == nullptr || base->directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint has no directory");
  SHW_TRY(const std::vector<ModelPair> pairs, pairs_of(tuned, base, progress));
  SHW_TRY(const AdapterLayout layout, layout_of(pairs));
  const bool is_turned = are_weights_transposed(pairs);
  std::vector<LowRank> found(layout.matrices.size());
  SHW_CHECK(parallel_for(found.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(found[i], factorise_low_rank(difference_of(*layout.matrices[i]), rank));
    return {};
  }));
  Json said{{"schema", kExtractionSchema},
            {"rank", rank},
            {"whole", Json::array()},
            {"rest", Json::object()}};
  ComputedPart part;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const ModelPair& pair = *layout.matrices[i];
    said["rest"][pair.fqn] = found[i].norm == 0 ? 0.0 : found[i].rest / found[i].norm;
    add_pair(pair, std::move(found[i]), rank, is_turned, part);
  }
  for (const ModelPair* pair : layout.whole) {
    said["whole"].push_back(pair->fqn);
    ComputedTensor tensor{.fqn = std::string(kPeftRoot) + pair->fqn,
                          .dtype = pair->tuned.dtype,
                          .shape = pair->tuned.shape,
                          .make = {}};
    tensor.make = [from = pair->tuned](std::int64_t first, std::int64_t count) {
      return read_stored(from, rows_box(from.shape, first, count));
    };
    part.tensors.push_back(std::move(tensor));
  }
  part.files.push_back(text_file(
      kAdapterConfigFile, text_of(adapter_config(layout, rank, is_turned, *base->directory()))));
  part.files.push_back(text_file(kExtractionFile, text_of(said)));
  part.made_of = {tuned, base};
  return make_computed_only_checkpoint(*tuned->directory(), std::move(part), progress);
}

std::string extraction_text(const Directory& folder) {
  auto source = folder.open(kExtractionFile);
  if (!source || (*source)->size() > kMaxExtraction) return {};
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) return {};
  const Json said =
      parse_json<Json>({reinterpret_cast<const char*>(bytes->data()), bytes->size()}).tree;
  if (!said.is_object() || !said.contains("rest") || !said["rest"].is_object()) return {};
  double squares = 0, most = 0;
  std::size_t count = 0;
  std::string worst;
  for (const auto& [fqn, value] : said["rest"].items()) {
    if (!value.is_number()) continue;
    const double share = value.get<double>();
    squares += share * share;
    ++count;
    if (share <= most) continue;
    most = share;
    worst = fqn;
  }
  if (count == 0) return {};
  if (most < 1e-5)
    return fmt::format("of {} the matrices of rank {} hold all of the change but for rounding",
                       plural(count, "weight"), said.value("rank", 0));
  return fmt::format(
      "of {} the matrices of rank {} leave out {:.2g} % of the change (root mean square); most of "
      "{} "
      "({:.2g} %)",
      plural(count, "weight"), said.value("rank", 0), 100 * std::sqrt(squares / double(count)),
      worst, 100 * most);
}

}  // namespace shw
