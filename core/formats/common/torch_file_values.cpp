#include "core/formats/common/torch_file_values.h"

#include <string_view>

#include "core/formats/common/torch_file_tensors.h"

namespace shw {
namespace {

constexpr std::size_t kMaxCarried = std::size_t{64} << 20;  // opcodes of one value

std::map<std::string_view, std::size_t> entries_to_carry(const Checkpoint& checkpoint) {
  std::map<std::string_view, std::size_t> wanted;
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    const NonTensorEntry& row = checkpoint.objects()[i];
    if (row.inlined && !(row.inlined->is_all && !row.inlined->opcodes.empty()))
      wanted.emplace(row.fqn, i);
  }
  return wanted;
}

}  // namespace

Status carry_values_of_torch_files(const Checkpoint& checkpoint,
                                   std::map<std::size_t, Result<CarriedValue>>& values,
                                   Progress* progress) {
  if (checkpoint.directory() == nullptr) return {};
  auto wanted = entries_to_carry(checkpoint);
  for (const FileRow& file : checkpoint.files()) {
    if (wanted.empty()) break;
    if (!file.referenced || file.kind != EntryKind::kFile) continue;
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(auto source, checkpoint.directory()->open(file.path));
    auto side = open_and_decode_torch_file(std::move(source));
    if (!side) continue;  // a finding reports that the file is unreadable
    SHW_TRY(std::uint64_t pickle_at, side->zip.data_offset(*side->zip.find("data.pkl")));
    const CarriedFrom from{side->tree, side->pickle, pickle_at, &side->zip, file.path};
    const NodeId root = side->tree.root();
    const auto items = side->tree.items(
        side->tree.kind(root) == NodeKind::kDict ? root : side->tree.contents(root));
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const auto key = side->tree.text(items[i]);
      auto found = key ? wanted.find(*key) : wanted.end();
      if (found == wanted.end()) continue;
      values.emplace(found->second, carry_value(from, items[i + 1], kMaxCarried, progress));
      wanted.erase(found);
    }
  }
  return {};
}

}  // namespace shw
