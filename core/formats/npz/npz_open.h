// Archives of numpy arrays (.npz) and single arrays (.npy), as numpy and MLX write them.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

inline constexpr std::string_view kNpzSuffix = ".npz", kNpySuffix = ".npy";

extern const Format kNpzFormat;
OpenedCheckpoint open_npz(std::shared_ptr<const Directory> directory, Progress* progress);
// Verifies the CRCs of all records of an archive.
Result<DataCheck> check_npz(const std::shared_ptr<const ByteSource>& file, Progress* progress);

}  // namespace shw
