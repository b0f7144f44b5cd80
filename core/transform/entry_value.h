// The value of an entry that a step creates.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace shw {

// None, or a Python value. Floats are a tuple, as torch saves betas; whole numbers and texts are a
// list, as it saves the parameters of a group.
using EntryValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<double>,
                 std::vector<std::int64_t>, std::vector<std::string>>;

// "(0.9, 0.95)": as Python shows it.
std::string to_text(const EntryValue& value);
// The pickle opcodes that rebuild the value, in the form that plain_pickle.h gives for values read
// from a file.
// kUsage if the value is too long.
Result<std::string> opcodes_of(const EntryValue& value);

}  // namespace shw
