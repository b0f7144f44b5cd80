// Archives of numpy arrays (.npz) and single arrays (.npy), as numpy and MLX write them, and the
// leaves of an Equinox model (.eqx): arrays one after the other, often behind a line of JSON.
#pragma once

#include <memory>

#include "core/formats/format_row.h"

namespace shw {

inline constexpr std::string_view kNpzSuffix = ".npz", kNpySuffix = ".npy", kEqxSuffix = ".eqx";
// True for the name of a file that is read here.
bool is_numpy_file(std::string_view path);

extern const Format kNpzFormat;
OpenedCheckpoint open_npz(std::shared_ptr<const Directory> directory, Progress* progress);
// Verifies the CRCs of all records of an archive.
Result<DataCheck> check_npz(const std::shared_ptr<const ByteSource>& file, Progress* progress);

}  // namespace shw
