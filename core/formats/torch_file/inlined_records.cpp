#include "core/formats/torch_file/inlined_records.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "core/formats/common/torch_item.h"
#include "core/formats/common/zip.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/state_dict.h"

namespace shw {
namespace {

// The storages that a value refers to, however deep. Every node is looked at once: a pickle may
// refer to one a thousand times.
std::set<std::string> storage_keys(const PickleTree& tree, NodeId value) {
  std::set<std::string> keys;
  std::set<NodeId> seen;
  std::vector<NodeId> open{value};
  while (!open.empty()) {
    NodeId node = open.back();
    open.pop_back();
    if (node == NodeId::kAbsent || !seen.insert(node).second) continue;
    if (tree.kind(node) == NodeKind::kPersistentId) {
      if (auto key = storage_key(tree, node)) keys.emplace(*key);
      continue;
    }
    for (NodeId item : tree.items(node)) open.push_back(item);
    for (NodeId part :
         {tree.callable(node), tree.arguments(node), tree.state(node), tree.contents(node)})
      open.push_back(part);
  }
  return keys;
}

class Records {
 public:
  Records(const ZipReader& zip, Progress* progress) : zip_(zip), progress_(progress) {}

  // Success, or what is wrong with one of them.
  Status check(const std::set<std::string>& keys) {
    for (const std::string& key : keys) {
      auto known = known_.find(key);
      if (known == known_.end()) known = known_.emplace(key, look(key)).first;
      SHW_CHECK(known->second);
    }
    return {};
  }

 private:
  Status look(const std::string& key) const {
    const ZipEntry* record = zip_.find("data/" + key);
    if (record == nullptr) return zip_.damaged(0, "the archive has no record data/" + key);
    SHW_TRY(std::uint32_t crc, zip_.crc_of(*record, progress_));
    if (crc == record->crc || zip_.crcs_absent()) return {};
    return zip_.damaged(record->header_offset,
                        fmt::format("record {} does not match its checksum", record->name));
  }

  const ZipReader& zip_;
  Progress* progress_;
  std::map<std::string, Status> known_;
};

}  // namespace

Status check_inlined_records(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                             Progress* progress) {
  std::map<std::string_view, std::size_t> opaque;
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    const ObjectRow& row = checkpoint.objects()[i];
    if (row.inlined && row.inlined->opcodes.empty()) opaque.emplace(row.fqn, i);
  }
  if (opaque.empty() || checkpoint.directory() == nullptr) return {};
  const std::string& path = checkpoint.file(FileId{0}).path;
  SHW_TRY(OpenedState state, open_state(*checkpoint.directory(), path));
  SHW_TRY(std::vector<StateEntry> entries, flatten_state_dict(state.tree, path));
  Records records(state.zip, progress);
  for (const StateEntry& entry : entries) {
    auto found = opaque.find(entry.fqn);
    if (found == opaque.end()) continue;
    if (is_cancelled(progress)) return cancelled_error();
    Status checked = records.check(storage_keys(state.tree, entry.value));
    if (!checked) objects[found->second] = tl::unexpected<Error>(std::move(checked).error());
  }
  return {};
}

}  // namespace shw
