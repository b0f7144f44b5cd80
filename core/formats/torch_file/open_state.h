// A file of torch.save, opened as far as its pickle.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/formats/common/pickle.h"
#include "core/formats/common/zip.h"
#include "core/formats/torch_file/state_dict.h"
#include "core/io/source.h"

namespace shw {

// The archive and the state dict in it, whose texts point into `pickle`.
struct OpenedState {
  ZipReader zip;
  Bytes pickle;
  PickleTree tree;
  std::set<std::string> whole;  // kWholeRecord
};
Result<OpenedState> open_state(const Directory& directory, const std::string& path);

// Its leaves (state_dict.h).
Result<std::vector<StateEntry>> entries_of(const OpenedState& state, const std::string& path);

}  // namespace shw
