// A file of torch.save, opened as far as its pickle.
#pragma once

#include <string>

#include "core/formats/common/pickle.h"
#include "core/formats/common/zip.h"
#include "core/io/source.h"

namespace shw {

// The archive and the state dict in it, whose texts point into `pickle`.
struct OpenedState {
  ZipReader zip;
  Bytes pickle;
  PickleTree tree;
};
Result<OpenedState> open_state(const Directory& directory, const std::string& path);

}  // namespace shw
