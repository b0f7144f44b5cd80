#include "core/formats/torch_file/open_state.h"

#include "core/formats/common/torch_archive_check.h"
#include "core/formats/common/torch_file_records.h"
#include "core/formats/common/torch_item.h"

namespace shw {
namespace {

// Size limit: a state dict of 100,000 parameters takes some 20 MB of pickle.
constexpr std::uint64_t kMaxStatePickle = std::uint64_t{1} << 30;
constexpr PickleLimits kStateLimits{1u << 27, 200, 1u << 14};

Result<OpenedState> open_pickle(const Directory& directory, const std::string& path,
                                std::string_view record) {
  SHW_TRY(auto source, directory.open(path));
  SHW_TRY(ZipReader zip, open_torch_records(source));
  SHW_TRY(Bytes pickle, read_pickle_record(zip, kMaxStatePickle, record));
  SHW_TRY(std::uint64_t pickle_at, zip.data_offset(*zip.find(record)));
  SHW_TRY(PickleTree tree, decode_pickle(pickle, source->name(), pickle_at, kStateLimits));
  return OpenedState{std::move(zip), std::move(pickle), std::move(tree), {}};
}

}  // namespace

Result<OpenedState> open_state(const Directory& directory, const std::string& path) {
  SHW_TRY(OpenedState state, open_pickle(directory, path, kPickleRecord));
  SHW_TRY(state.whole, read_unflattened_names(state.zip));
  if (state.zip.find(kConstantsRecord) != nullptr && !is_state_mapping(state.tree))
    state.kind = StateKind::kProgram;
  return state;
}

Result<OpenedState> open_constants(const Directory& directory, const std::string& path) {
  SHW_TRY(OpenedState state, open_pickle(directory, path, kConstantsRecord));
  state.zip.set_storage_folder("constants/");
  state.kind = StateKind::kConstants;
  return state;
}

Result<std::vector<StateEntry>> entries_of(const OpenedState& state, const std::string& path) {
  if (state.kind != StateKind::kConstants) return flatten_state_dict(state.tree, path, state.whole);
  std::vector<StateEntry> entries;
  std::int64_t index = 0;
  for (NodeId constant : state.tree.items(state.tree.root())) {
    StateEntry entry{"constants." + std::to_string(index), {"constants", index}, constant};
    ++index;
    if (is_tensor_call(state.tree, constant)) entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace shw
