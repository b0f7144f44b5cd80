#include "core/verbs/names/sort.h"

#include <algorithm>

#include "core/base/natural_order.h"

namespace shw {
namespace {

// One sort key per tensor; descending shows larger ones first.
std::vector<std::uint64_t> keys_of(const Checkpoint& checkpoint, const CheckReport* report,
                                   SortKey key) {
  std::vector<std::uint64_t> keys(checkpoint.tensor_count(), 0);
  if (key == SortKey::kFindings && report != nullptr) {
    for (const Finding& finding : report->findings) {
      for (const std::string& subject : finding.subjects) {
        if (auto tensor = checkpoint.find(subject)) {
          std::uint64_t& grave = keys[index_of(*tensor)];
          grave = std::max<std::uint64_t>(grave, static_cast<std::uint64_t>(finding.severity) + 1);
        }
      }
    }
    return keys;
  }
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId tensor{t};
    if (key == SortKey::kChunks) keys[t] = checkpoint.chunks(tensor).size();
    if (key == SortKey::kBytes)
      keys[t] = static_cast<std::uint64_t>(volume(checkpoint.shape(tensor)).value_or(0)) *
                size_of(checkpoint.dtype(tensor));
  }
  return keys;
}

}  // namespace

void sort_tensors(const Checkpoint& checkpoint, const CheckReport* report, SortKey key,
                  bool descending, std::vector<std::uint32_t>& order) {
  if (key == SortKey::kName) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return natural_less(checkpoint.fqn(TensorId{a}), checkpoint.fqn(TensorId{b}));
    });
  } else if (key == SortKey::kShape) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      ExtentsView x = checkpoint.shape(TensorId{a}), y = checkpoint.shape(TensorId{b});
      return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    });
  } else if (key == SortKey::kDtype) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return name(checkpoint.dtype(TensorId{a})) < name(checkpoint.dtype(TensorId{b}));
    });
  } else if (key != SortKey::kRecorded) {
    auto keys = keys_of(checkpoint, report, key);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  }
  if (descending) std::reverse(order.begin(), order.end());
}

}  // namespace shw
