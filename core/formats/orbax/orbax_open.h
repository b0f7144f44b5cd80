// Opens an Orbax checkpoint, or another folder of zarr arrays.
#pragma once

#include <memory>
#include <optional>

#include "core/formats/format_row.h"

namespace shw {

extern const Format kOrbaxFormat;

// Folders in which the processes of a save have their own databases: "ocdbt.process_0".
inline constexpr std::string_view kOcdbtOfProcess = "ocdbt.process_";
// The error for an unfinished save: the databases of its processes were never joined.
std::optional<Error> unfinished_orbax(std::span<const Entry> entries, const std::string& item);

// Folders of the items: "" for the top, "state/". Empty if there are none.
std::vector<std::string> orbax_items(std::span<const Entry> entries);
OpenedCheckpoint open_orbax(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
