// The values of entries that are no tensors, as another file takes them.
#pragma once

#include <map>
#include <optional>

#include "core/base/progress.h"
#include "core/formats/common/carried_storages.h"
#include "core/model/checkpoint.h"

namespace shw {

class CarriedValues {
 public:
  explicit CarriedValues(const Checkpoint& checkpoint, Progress* progress = nullptr)
      : checkpoint_(checkpoint), progress_(progress) {}
  // kUnsupported: it holds what is not carried over, by name. An error names the object.
  Result<CarriedValue> of(std::size_t object);

 private:
  const Checkpoint& checkpoint_;
  Progress* progress_;
  // Those that stand in a pickle with others are found at once, when one is first asked for.
  std::optional<std::map<std::size_t, Result<CarriedValue>>> inlined_;
};

// Whether they are one value, byte for byte, wherever their storages lie.
Result<bool> is_same_value(const Checkpoint& a, const CarriedValue& one, const Checkpoint& b,
                           const CarriedValue& two, Progress* progress);

}  // namespace shw
