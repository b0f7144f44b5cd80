#include "core/formats/torch_file/inlined_records.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "core/formats/common/torch_item.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/state_dict.h"
#include "core/formats/zip/zip.h"

namespace shw {
namespace {

// Limit for the opcodes of one value.
constexpr std::size_t kMaxInlinedBytes = std::size_t{64} << 20;

// The storages that a value refers to at any depth. Visits every node once, because a pickle may
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

class StorageRecordChecker {
 public:
  StorageRecordChecker(const ZipReader& zip, Progress* progress) : zip_(zip), progress_(progress) {}

  // Success, or the first error.
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
    const ZipEntry* record = zip_.find_storage(key);
    if (record == nullptr) return zip_.damaged(0, "the archive has no record data/" + key);
    SHW_TRY(std::uint32_t crc, zip_.crc_of(*record, progress_));
    if (crc == record->crc || zip_.lacks_crcs()) return {};
    return zip_.damaged(record->header_offset,
                        fmt::format("record {} does not match its checksum", record->name));
  }

  const ZipReader& zip_;
  Progress* progress_;
  std::map<std::string, Status> known_;
};

Status check_records_in(const Checkpoint& checkpoint, const std::string& path,
                        const std::map<std::string_view, std::size_t>& opaque,
                        std::vector<Result<DataCheck>>& objects, Progress* progress) {
  auto state = open_state(*checkpoint.directory(), path);
  if (!state) return {};  // opening has reported the unreadable file
  SHW_TRY(std::vector<StateEntry> entries, entries_of(*state, path));
  StorageRecordChecker records(state->zip, progress);
  for (const StateEntry& entry : entries) {
    auto found = opaque.find(entry.fqn);
    if (found == opaque.end()) continue;
    if (is_cancelled(progress)) return cancelled_error();
    Status checked = records.check(storage_keys(state->tree, entry.value));
    if (!checked) objects[found->second] = tl::unexpected<Error>(std::move(checked).error());
  }
  return {};
}

}  // namespace

Status check_inlined_records(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                             Progress* progress) {
  std::map<std::string_view, std::size_t> opaque;
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    const NonTensorEntry& row = checkpoint.objects()[i];
    if (row.inlined && row.inlined->opcodes.empty()) opaque.emplace(row.fqn, i);
  }
  if (opaque.empty() || checkpoint.directory() == nullptr) return {};
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced || file.kind != EntryKind::kFile) continue;
    SHW_CHECK(check_records_in(checkpoint, file.path, opaque, objects, progress));
  }
  return {};
}

Status carry_inlined_records(const Checkpoint& checkpoint,
                             std::map<std::size_t, Result<CarriedValue>>& values,
                             Progress* progress) {
  std::map<std::string_view, std::size_t> wanted;
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    const NonTensorEntry& row = checkpoint.objects()[i];
    if (row.inlined && !(row.inlined->is_all && !row.inlined->opcodes.empty()))
      wanted.emplace(row.fqn, i);
  }
  if (wanted.empty() || checkpoint.directory() == nullptr) return {};
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced || file.kind != EntryKind::kFile) continue;
    SHW_TRY(OpenedState state, open_state(*checkpoint.directory(), file.path));
    SHW_TRY(std::uint64_t pickle_at, state.zip.data_offset(*state.zip.find("data.pkl")));
    SHW_TRY(std::vector<StateEntry> entries, entries_of(state, file.path));
    const CarriedFrom from{state.tree, state.pickle, pickle_at, &state.zip, file.path};
    for (const StateEntry& entry : entries) {
      auto found = wanted.find(entry.fqn);
      if (found == wanted.end()) continue;
      if (is_cancelled(progress)) return cancelled_error();
      values.emplace(found->second, carry_value(from, entry.value, kMaxInlinedBytes, progress));
    }
  }
  return {};
}

}  // namespace shw
