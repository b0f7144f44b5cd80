// Values of non-tensor entries in a form that other files can store.
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
  // kUnsupported if the value contains something that cannot be copied; the error names it.
  Result<CarriedValue> of(std::size_t object);

 private:
  const Checkpoint& checkpoint_;
  Progress* progress_;
  // all values inside a shared pickle, computed on first use
  std::optional<std::map<std::size_t, Result<CarriedValue>>> inlined_;
};

// True if two values are equal byte for byte, wherever their storages are.
Result<bool> is_same_value(const Checkpoint& a, const CarriedValue& one, const Checkpoint& b,
                           const CarriedValue& two, Progress* progress);

}  // namespace shw
