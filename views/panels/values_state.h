#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/ids.h"

namespace shw {

struct ShownValues;
namespace verbs {
struct SavedValues;
}

struct ValuesState {
  std::string index;                               // typed index to go to
  bool index_wanted = false;                       // focus its field in the next frame
  std::weak_ptr<const verbs::SavedValues> saved;   // the file that was last announced
  bool open = false;                               // requested; true before the first values arrive
  const void* compared_with = nullptr;             // the last compared checkpoint; not dereferenced
  std::optional<TensorId> followed;                // the selection that was last followed
  std::int64_t shown_rows = 0, shown_columns = 0;  // of the numbers, as drawn last
};

}  // namespace shw
