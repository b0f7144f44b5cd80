// Text of non-tensor entries: a step, a learning rate, a data loader's state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/model/checkpoint.h"
#include "core/report/listing.h"

namespace shw {

// Name and value as lines of keys and values. Objects beyond plain data show only the reason, since
// pickles are not executed.
std::string entry_to_text(const Checkpoint& checkpoint, std::size_t object, const TextStyle& style);
// One line per entry with its name and the begin of its value, for the first ones.
std::string entry_list_to_text(const Checkpoint& checkpoint, std::span<const std::uint32_t> objects,
                               const TextStyle& style);
std::string entry_to_json(const Checkpoint& checkpoint, std::size_t object);

}  // namespace shw
