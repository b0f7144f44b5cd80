// Parses sentences that say which file or which kind of thing is not there, whoever speaks.
#pragma once

#include <optional>
#include <string_view>

#include "core/explain/error_message.h"

namespace shw {

// "missing run_config.yaml in FOLDER", "has no file named model.fp16.safetensors": the file, with
// a kind by what such files hold. nullopt if the sentence does not say that a file is missing.
std::optional<ErrorMessage> missing_file_in(std::string_view sentence);

// The kind of names that a sentence calls missing, by what it says of them: scales, optimizer
// states. nullptr if it says only that they are missing. `sentence`: in lower case.
const MessageKind* kind_of_missing_names(std::string_view sentence);

}  // namespace shw
