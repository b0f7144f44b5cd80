// An Orbax checkpoint, or another folder of zarr arrays, as one checkpoint.
#pragma once

#include <memory>
#include <optional>

#include "core/formats/format_row.h"

namespace shw {

extern const Format kOrbaxFormat;

// Folders in which the processes of a save have their own databases: "ocdbt.process_0".
inline constexpr std::string_view kOcdbtOfProcess = "ocdbt.process_";
// Why an item is no checkpoint yet: nobody has joined the databases of its processes.
std::optional<Error> unfinished_orbax(std::span<const Entry> entries, const std::string& item);

// The folders of its items: "" for the top, "state/". Empty where there is none.
std::vector<std::string> orbax_items(std::span<const Entry> entries);
OpenedCheckpoint open_orbax(std::shared_ptr<const Directory> directory, Progress* progress);

}  // namespace shw
