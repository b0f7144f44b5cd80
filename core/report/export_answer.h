// Answers of export-hdf5 as JSON and text.
#pragma once

#include <string>

#include "core/hdf5_view/export_hdf5.h"
#include "core/report/listing.h"

namespace shw {

// {"output", "tensors", "left_out": [fqn], "copied": [fqn], "partial": [fqn], "reasons": [{"fqn",
// "why", "damaged", "missing"}], "notes", "bytes", "paths", "hint"}
std::string exported_to_json(const Exported& exported, Hdf5Paths paths);
// Omitted tensors by reason, and how to open the file.
std::string exported_to_text(const Exported& exported, Hdf5Paths paths, const TextStyle& style);

}  // namespace shw
