// What an entry that is not a tensor says: a step, a learning rate, a data loader's state.
#pragma once

#include <cstddef>
#include <string>

#include "core/model/checkpoint.h"
#include "core/report/listing.h"

namespace shw {

// Its name, and its value as lines of keys and values. Of what is more than plain data only the
// reason why it is not shown: nothing in a pickle is run.
std::string entry_to_text(const Checkpoint& checkpoint, std::size_t object, const TextStyle& style);
std::string entry_to_json(const Checkpoint& checkpoint, std::size_t object);

}  // namespace shw
