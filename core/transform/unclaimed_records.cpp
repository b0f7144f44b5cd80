#include "core/transform/unclaimed_records.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/formats/common/filled_attribute.h"

namespace shw {
namespace {

// Adds records that belong to no entry. Of two with one key only one can be written; links out of
// the checkpoint are skipped.
void add_unowned_records(const Checkpoint& source, Outputs& outputs) {
  if (source.unclaimed_records().empty() || source.format().rewrite != Rewrite::kIndex) return;
  using Key = std::pair<std::string_view, std::optional<Extents>>;
  std::set<std::string_view> names;
  for (const UnclaimedStorageRecord& unclaimed : source.unclaimed_records())
    names.insert(unclaimed.fqn);
  std::set<Key> taken;
  for (const OutputTensor& tensor : outputs.tensors) {
    if (!names.contains(tensor.fqn)) continue;
    for (const OutputTile& tile : tensor.tiles) taken.emplace(tensor.fqn, tile.box.offsets);
  }
  for (const OutputObject& object : outputs.objects) taken.emplace(object.fqn, std::nullopt);
  for (const UnclaimedStorageRecord& unclaimed : source.unclaimed_records()) {
    const bool leads_nowhere = unclaimed.item.file == FileId::kNone ||
                               !source.file(unclaimed.item.file).safe ||
                               unclaimed.item.offset < 0 || unclaimed.item.length < 0;
    if (!leads_nowhere && taken.emplace(unclaimed.fqn, unclaimed.offsets).second)
      outputs.unclaimed_records.push_back(
          {unclaimed.fqn, unclaimed.offsets, unclaimed.item, unclaimed.transforms});
  }
}

// Adds names that were never saved: they are missing in the result too.
void add_only_in_planner(const Provenance& provenance, Outputs& outputs) {
  if (provenance.only_in_planner.empty()) return;
  std::set<std::string_view> there;
  for (const OutputTensor& tensor : outputs.tensors) there.insert(tensor.fqn);
  for (const OutputObject& object : outputs.objects) there.insert(object.fqn);
  for (const std::string& fqn : provenance.only_in_planner) {
    if (!there.contains(fqn)) outputs.only_in_planner.push_back(fqn);
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> other_attributes(const Checkpoint& source) {
  auto attributes = source.provenance().plain_attributes;
  std::erase_if(attributes, [](const auto& one) { return one.first == kFilledAttribute; });
  return attributes;
}

void add_unclaimed_records(const Checkpoint& source, Outputs& outputs) {
  add_unowned_records(source, outputs);
  add_only_in_planner(source.provenance(), outputs);
}

}  // namespace shw
