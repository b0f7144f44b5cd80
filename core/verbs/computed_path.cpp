#include "core/verbs/computed_path.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "core/base/run_limits.h"
#include "core/base/words.h"
#include "core/combine/averaged.h"
#include "core/combine/delta.h"
#include "core/combine/extracted_adapter.h"
#include "core/combine/merged_adapter.h"
#include "core/combine/quantised.h"
#include "core/combine/shifted_norms.h"
#include "core/compare/tensor_hashes.h"
#include "core/facts/values/dequantised.h"
#include "core/formats/open.h"
#include "core/io/path_suffix.h"
#include "core/verbs/mapped_view.h"
#include "core/verbs/trainer_folder.h"
#include "core/verbs/weight_entries.h"

namespace shw::verbs {
namespace {

using Opening =
    std::function<Result<std::shared_ptr<const Checkpoint>>(const std::string&, Progress*)>;
using Checkpoints = std::vector<std::shared_ptr<const Checkpoint>>;

constexpr const char *kDequantised = "dequantised", *kMerged = "merged", *kAverage = "average",
                     *kDelta = "delta-to", *kApplied = "applied", *kAdapter = "adapter",
                     *kQuantised = "quantised", *kAs = "as", *kNorms = "norms",
                     *kOptimizer = "optimizer";
constexpr double kSumTolerance = 1e-6;
constexpr std::int64_t kMaxRank = 4096;

Result<std::vector<double>> weights_of(std::string_view numbers, std::size_t count) {
  if (numbers.empty()) return std::vector<double>(count, 1.0 / static_cast<double>(count));
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t at = 0; at <= numbers.size();) {
    const std::size_t comma = std::min(numbers.find(',', at), numbers.size());
    const std::string text(numbers.substr(at, comma - at));
    at = comma + 1;
    double weight = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), weight);
    if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(weight))
      return fail(ErrorKind::kUsage, "\"" + text + "\" is not a weight", {},
                  "Weights are numbers such as 0.5, separated by commas.");
    weights.push_back(weight);
    sum += weight;
  }
  if (weights.size() != count)
    return fail(
        ErrorKind::kUsage,
        fmt::format("{} for {}", plural(weights.size(), "weight"), plural(count, "checkpoint")), {},
        "Give one weight for each checkpoint, in their order.");
  if (std::abs(sum - 1) > kSumTolerance)
    return fail(ErrorKind::kUsage, fmt::format("the weights add up to {}, not to 1", sum), {},
                "Divide each by their sum; a + (b - c) is 1,1,-1.");
  return weights;
}

std::set<std::string, std::less<>> non_weight_entries_of_all(const Checkpoints& checkpoints) {
  std::set<std::string, std::less<>> names;
  for (const auto& one : checkpoints) {
    const NonWeightEntries left = entries_that_are_not_weights(*one);
    names.insert(left.names.begin(), left.names.end());
  }
  return names;
}

Result<std::shared_ptr<const Checkpoint>> open_average(const ComputedSuffix& end,
                                                       const Opening& open, Progress* progress) {
  SHW_TRY(const std::vector<double> weights, weights_of(end.numbers, end.others.size() + 1));
  Checkpoints checkpoints;
  SHW_TRY(auto first, open(end.before, progress));
  checkpoints.push_back(std::move(first));
  for (const std::string& path : end.others) {
    SHW_TRY(auto other, open(path, progress));
    checkpoints.push_back(std::move(other));
  }
  return average_checkpoints(checkpoints, weights, non_weight_entries_of_all(checkpoints),
                             progress);
}

Result<TotalHash> hash_of_all(const Checkpoint& checkpoint, Progress* progress) {
  HashedTensors hashed;
  std::vector<TensorId> tensors;
  for (TensorId tensor : checkpoint.tensors()) tensors.push_back(tensor);
  SHW_TRY(hashed.tensors, tensor_hashes(checkpoint, tensors, kDefaultMemory, progress));
  TotalHash all{total_hash(hashed), checkpoint.tensor_count()};
  if (!all.hash.empty()) return all;
  for (const TensorHash& one : hashed.tensors) {
    if (!one.fingerprint) return tl::unexpected<Error>(one.fingerprint.error());
  }
  return fail(ErrorKind::kDamaged, "holds no tensor that can be hashed");
}

Result<std::shared_ptr<const Checkpoint>> open_delta(const ComputedSuffix& end, const Opening& open,
                                                     Progress* progress) {
  SHW_TRY(auto base, open(end.before, progress));
  SHW_TRY(auto result, open(end.others.front(), progress));
  SHW_TRY(const TotalHash base_hash, hash_of_all(*base, progress));
  SHW_TRY(const TotalHash result_hash, hash_of_all(*result, progress));
  return compute_delta(std::move(base), std::move(result), base_hash, result_hash, progress);
}

tl::unexpected<Error> wrong_delta_base_error(const std::string& path, const TotalHash& wanted,
                                             const TotalHash& own) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("the delta was made from a different base: its base has the hash {} "
                          "({}), this one has {} ({})",
                          wanted.hash, plural(wanted.tensors, "tensor"), own.hash,
                          plural(own.tensors, "tensor")),
              {path}, "`shardwright hash` prints the hash of any checkpoint.");
}

// Checks the hash of the result only: a matching result needs the right base.
Result<std::shared_ptr<const Checkpoint>> open_delta_applied_to_base(const ComputedSuffix& end,
                                                                     const Opening& open,
                                                                     Progress* progress) {
  SHW_TRY(auto base, open(end.before, progress));
  SHW_TRY(auto delta, open(end.others.front(), progress));
  if (delta->directory() == nullptr)
    return fail(ErrorKind::kUsage, "is not a delta", {end.others.front()});
  SHW_TRY(const DeltaInfo info, read_delta_info(*delta->directory()));
  auto made = apply_delta(base, std::move(delta), info, progress);
  if (made) {
    SHW_TRY(const TotalHash of_made, hash_of_all(**made, progress));
    if (of_made.hash == info.result.hash) return made;
  }
  SHW_TRY(const TotalHash own, hash_of_all(*base, progress));
  if (own.hash != info.base.hash) return wrong_delta_base_error(end.before, info.base, own);
  if (!made) return made;
  return fail(
      ErrorKind::kDamaged,
      fmt::format("applying the delta does not give the recorded hash ({}): the delta is damaged",
                  info.result.hash),
      {end.others.front()});
}

Result<std::shared_ptr<const Checkpoint>> open_extracted_adapter(const ComputedSuffix& end,
                                                                 const Opening& open,
                                                                 Progress* progress) {
  std::int64_t rank = 0;
  const char* last = end.numbers.data() + end.numbers.size();
  const auto [at, problem] = std::from_chars(end.numbers.data(), last, rank);
  if (problem != std::errc() || at != last || rank < 1 || rank > kMaxRank)
    return fail(ErrorKind::kUsage, "\"" + end.numbers + "\" is not a valid adapter rank", {},
                fmt::format("It is a whole number from 1 to {}.", kMaxRank));
  SHW_TRY(auto tuned, open(end.before, progress));
  SHW_TRY(auto base, open(end.others.front(), progress));
  return extract_adapter(std::move(tuned), std::move(base), rank, progress);
}

Result<std::shared_ptr<const Checkpoint>> open_suffix(const ComputedSuffix& end,
                                                      const Opening& open, Progress* progress) {
  if (end.word == kAverage) return open_average(end, open, progress);
  if (end.word == kDelta) return open_delta(end, open, progress);
  if (end.word == kApplied) return open_delta_applied_to_base(end, open, progress);
  if (end.word == kAdapter) return open_extracted_adapter(end, open, progress);
  SHW_TRY(auto stored, open(end.before, progress));
  if (end.word == kDequantised) return dequantised(std::move(stored), progress);
  if (end.word == kAs) {
    SHW_TRY(MappedView view, mapped_view(stored, end.numbers, {}, progress));
    return std::move(view.checkpoint);
  }
  if (end.word == kNorms) {
    if (end.numbers != "+1" && end.numbers != "-1")
      return fail(ErrorKind::kUsage, "\"" + end.numbers + "\" is not a valid shift for norms", {},
                  "Write PATH/@norms:+1 or PATH/@norms:-1.");
    return shift_norm_weights(std::move(stored), end.numbers == "+1" ? 1.0f : -1.0f, progress);
  }
  if (end.word == kOptimizer) {
    SHW_TRY(const std::string file, trainer_optimizer_file(*stored));
    SHW_TRY(auto optimizer, open(end.before + "/" + file, progress));
    return join_trainer_optimizer(std::move(stored), std::move(optimizer),
                                  end.others.empty() ? "" : end.others.front(), progress);
  }
  if (end.word == kQuantised) {
    SHW_TRY(const QuantiseOptions wanted, parse_quantise_options(end.numbers));
    return quantised(stored, wanted, non_weight_entries_of_all({stored}), progress);
  }
  SHW_TRY(auto adapter, open(end.others.front(), progress));
  return merge_adapter(std::move(stored), std::move(adapter), progress);
}

// True for a known ending; others are names of folders.
bool is_known(const ComputedSuffix& end) {
  if (end.word == kDequantised) return end.others.empty() && end.numbers.empty();
  if (end.word == kOptimizer) return end.others.size() < 2 && end.numbers.empty();
  if (end.word == kQuantised || end.word == kAs || end.word == kNorms) return end.others.empty();
  if (end.word == kAverage) return !end.others.empty();
  if (end.word == kAdapter) return end.others.size() == 1;
  return (end.word == kMerged || end.word == kDelta || end.word == kApplied) &&
         end.others.size() == 1 && end.numbers.empty();
}

Result<std::shared_ptr<const Checkpoint>> open_path_with_suffix(const Opening& open_stored,
                                                                const std::string& path,
                                                                Progress* progress) {
  const auto end = parse_computed_suffix(path);
  if (!end || !is_known(*end)) return open_stored(path, progress);
  const Opening open = [&](const std::string& other, Progress* told) {
    return open_path_with_suffix(open_stored, other, told);
  };
  return open_suffix(*end, open, progress);
}

}  // namespace

Status check_input_path(const std::string& path) {
  if (path.find(',') == std::string::npos && path.find("/@") == std::string::npos) return {};
  return fail(ErrorKind::kUsage, "the path of an input has a comma or /@ in it: " + path, {},
              "Rename the folder, or give a link to it.");
}

std::string quantised_path(const std::string& path, const std::string& scheme) {
  return to_path({path, kQuantised, scheme, {}});
}

std::string merged_path(const std::string& base, const std::string& adapter) {
  return to_path({base, kMerged, {}, {adapter}});
}

std::string average_path(const std::string& first, const std::vector<std::string>& others,
                         const std::string& weights, bool are_dequantised) {
  ComputedSuffix end{first, kAverage, weights, others};
  if (are_dequantised) {
    for (std::string& other : end.others) other += kDequantisedPath;
  }
  return to_path(end);
}

std::string delta_path(const std::string& base, const std::string& result) {
  return to_path({base, kDelta, {}, {result}});
}

std::string applied_path(const std::string& base, const std::string& delta) {
  return to_path({base, kApplied, {}, {delta}});
}

std::string adapter_path(const std::string& tuned, const std::string& base, std::int64_t rank) {
  return to_path({tuned, kAdapter, std::to_string(rank), {base}});
}

Result<std::shared_ptr<const Checkpoint>> open_requested(const std::string& path,
                                                         Progress* progress) {
  auto opened = open_path_with_suffix(
      [](const std::string& asked, Progress* told) { return open_checkpoint(asked, told); }, path,
      progress);
  if (!opened && opened.error().kind == ErrorKind::kDamaged && opened.error().advice.empty())
    opened.error().advice =
        "If the file was copied here, compare its size and checksum with the source's, and copy it "
        "again if they differ. If they are equal, use an earlier step.";
  return opened;
}

Result<std::shared_ptr<const Checkpoint>> open_requested_for_comparison(const std::string& path,
                                                                        Progress* progress) {
  return open_path_with_suffix(
      [](const std::string& asked, Progress* told) { return open_to_compare(asked, told); }, path,
      progress);
}

}  // namespace shw::verbs
