#include "core/facts/reference/alike_contents.h"

#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tensor_contents.h"
#include "core/facts/reference/tile_content.h"

namespace shw {
namespace {

constexpr std::uint64_t kLookedAt = 4096;  // bytes, what TensorBoxes::start_of reads at most

}  // namespace

Result<std::map<TensorId, std::string>> contents_of_alike(const CheckInput& input,
                                                          const std::vector<TensorId>& tensors) {
  const Checkpoint& c = input.checkpoint;
  const std::vector<ComparisonCost> costs(tensors.size(), {kLookedAt, kLookedAt});
  auto begin_of = [&](std::size_t i) -> Result<std::string> {
    TensorBoxes boxes(c, tensors[i], c.dtype(tensors[i]), input.progress);
    auto start = boxes.start_of(whole(c.shape(tensors[i])));
    if (!start) return std::string();
    return std::string(name(c.dtype(tensors[i]))) + to_text(c.shape(tensors[i])) + *start;
  };
  std::map<TensorId, std::string> contents;
  if (tensors.empty()) return contents;
  SHW_TRY(auto begins, find_together(input, "look for copies", costs, begin_of));
  std::map<std::string, std::vector<TensorId>> by_begin;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!begins[i].empty()) by_begin[begins[i]].push_back(tensors[i]);
  }
  std::vector<TensorId> alike;
  for (const auto& [begin, group] : by_begin) {
    if (group.size() > 1) alike.insert(alike.end(), group.begin(), group.end());
  }
  TensorContents whole_contents(input, c);
  SHW_CHECK(whole_contents.learn(alike));
  for (TensorId tensor : alike) contents.emplace(tensor, whole_contents.of(tensor));
  return contents;
}

}  // namespace shw
