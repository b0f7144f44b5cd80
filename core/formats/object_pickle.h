// The imports and calls of a BYTES entry's pickle, which is read as data and not executed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/pickle/pickle_safety.h"
#include "core/model/checkpoint.h"

namespace shw {

struct UnknownName {
  std::string module, name;
  std::uint64_t at = 0;  // absolute in the file; compressed items: begin of the item
  bool called = false;
  NameKind kind = NameKind::kUnknown;
};

struct ObjectPickle {
  std::string file;
  std::vector<UnknownName> names;                // all names that are not kKnown, at most 256
  std::optional<std::uint64_t> unusual_call_at;  // position of a call whose callee is computed
  std::string not_read;               // why the pickle was not read completely; empty if it was
  std::optional<Error> damaged = {};  // why the entry cannot be loaded at all
};

// Accepts archives and pickles of torch.save, and plain pickles. Other, truncated or
// damaged items, and archives without a required record, are an Error. Reads at most 64
// MiB.
Result<ObjectPickle> scan_object(const Checkpoint& checkpoint, std::size_t object);

}  // namespace shw
