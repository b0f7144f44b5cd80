// A message that no row of the table knows, read by its kind: two shapes of which one is said to be
// the file's, names that are missing or too many, two numbers of ranks or experts, a checkpoint
// that is not found.
#pragma once

#include <vector>

#include "core/explain/error_message.h"
#include "core/explain/pasted_text.h"

namespace shw {

// At most `most`, in the order of the text; nothing where no kind is sure.
std::vector<ErrorMessage> read_general(const PastedText& pasted, std::size_t most);

}  // namespace shw
