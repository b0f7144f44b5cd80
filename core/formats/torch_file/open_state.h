// Opens a torch.save file and decodes its pickle.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/formats/pickle/pickle.h"
#include "core/formats/torch_file/state_dict.h"
#include "core/formats/zip/zip.h"
#include "core/io/source.h"

namespace shw {

enum class StateKind : std::uint8_t {
  kStateDict,
  kProgram,    // the module of a TorchScript file
  kConstants,  // the constants of a TorchScript file: "constants.0"
};

// The archive and the state dict in it; texts of the tree refer to `pickle`.
struct OpenedState {
  ZipReader zip;
  Bytes pickle;
  PickleTree tree;
  std::set<std::string> whole;  // names in kWholeRecord
  StateKind kind = StateKind::kStateDict;
};
Result<OpenedState> open_state(const Directory& directory, const std::string& path);
// The constants of a TorchScript file: of a frozen program these are all its weights.
Result<OpenedState> open_constants(const Directory& directory, const std::string& path);

// The leaves of the state dict (state_dict.h).
Result<std::vector<StateEntry>> entries_of(const OpenedState& state, const std::string& path);

}  // namespace shw
