// The small files that the desktop writes, and where each would go before it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/verbs/free_path.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

enum class NewFile : std::uint8_t { kReport, kView, kHashes, kNpy, kCsv, kPng, kSvg };

// "report", "view", "hashes", "npy", "csv", "png", "svg".
std::string_view name(NewFile file);
std::optional<NewFile> parse_new_file(std::string_view text);

// `fqn`: of the tensor whose values are written. `path`: see PlaceRequest.
PlaceRequest place_request(NewFile file, const std::string& checkpoint, std::string_view fqn,
                           const std::string& path);

struct NewFilePlace {
  NewFile file = NewFile::kReport;
  std::string typed_path;                  // as typed; empty: next to the checkpoint
  std::string path = {};                   // does not exist yet; empty if refused
  std::optional<Error> refused = {};       // why nothing can be written there
  std::optional<std::uint64_t> free = {};  // bytes on its disk
};
NewFilePlace inspect_new_file(const Store& store, const Opened& opened, const VerbOptions& options,
                              NewFile file, std::string_view fqn, const std::string& typed_path);

}  // namespace shw::verbs
