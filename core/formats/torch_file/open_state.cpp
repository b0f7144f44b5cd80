#include "core/formats/torch_file/open_state.h"

#include "core/formats/common/torch_file_records.h"
#include "core/formats/common/torch_item.h"

namespace shw {
namespace {

// Size limit: a state dict of 100,000 parameters takes some 20 MB of pickle.
constexpr std::uint64_t kMaxStatePickle = std::uint64_t{1} << 30;
constexpr PickleLimits kStateLimits{1u << 27, 200, 1u << 14};

tl::unexpected<Error> is_a_program(const std::string& path) {
  return fail(ErrorKind::kUnsupported,
              "is a TorchScript program (torch.jit.save), which is not read", {path},
              "torch.save(torch.jit.load(FILE).state_dict(), NEW) writes its weights in the form "
              "that is read.");
}

}  // namespace

Result<OpenedState> open_state(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  SHW_TRY(ZipReader zip, open_torch_records(source));
  SHW_TRY(Bytes pickle, read_pickle_record(zip, kMaxStatePickle));
  SHW_TRY(std::uint64_t pickle_at, zip.data_offset(*zip.find("data.pkl")));
  SHW_TRY(PickleTree tree, decode_pickle(pickle, source->name(), pickle_at, kStateLimits));
  SHW_TRY(std::set<std::string> whole, read_whole_record(zip));
  return OpenedState{std::move(zip), std::move(pickle), std::move(tree), std::move(whole)};
}

Result<std::vector<StateEntry>> entries_of(const OpenedState& state, const std::string& path) {
  // torch.jit.save's archive also has a data.pkl, which contains objects of the program.
  if (state.zip.find("constants.pkl") != nullptr && !is_state_mapping(state.tree))
    return is_a_program(path);
  return flatten_state_dict(state.tree, path, state.whole);
}

}  // namespace shw
