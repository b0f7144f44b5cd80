// What torch.load would import and call for a BYTES entry: its pickle, read as data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/pickle_safety.h"
#include "core/model/checkpoint.h"

namespace shw {

struct UnknownName {
  std::string module, name;
  std::uint64_t at = 0;  // absolute in the file; of a compressed item, where the item begins
  bool called = false;
  NameKind kind = NameKind::kUnknown;
};

struct ObjectPickle {
  std::string file;
  std::vector<UnknownName> names;            // all that are not kKnown, at most 256
  std::optional<std::uint64_t> odd_call_at;  // where something is called that is first computed
  std::string not_read;                      // why it could not be looked through; else empty
  std::optional<Error> damaged = {};         // why it cannot be loaded, whatever it asks for
};

// Accepts what torch.save writes (a zip, or pickles in a row) and a pickle alone. An item that is
// none of them, is cut off or damaged, or lacks a record that torch.load needs is an Error. Reads
// 64 MiB at most.
Result<ObjectPickle> scan_object(const Checkpoint& checkpoint, std::size_t object);

}  // namespace shw
