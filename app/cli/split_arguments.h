// Checks of the raw command line before option parsing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/options.h"

namespace shw::cli {

// Unknown options are reported before other errors: CLI11 would report a missing argument
// instead.
struct Typed {
  std::string_view verb;
  std::vector<std::string_view> before, after;  // options before the verb, words after it
};

Typed split_arguments(int argc, char** argv);

bool requests_json(int argc, char** argv);
// `typed` may hold words of the user; credentials in their URLs are masked.
EarlyExit usage_error(bool json, const std::string& typed, const std::string& advice);
// The first word that is not an option, if it is not a verb.
std::optional<std::string> unknown_verb(int argc, char** argv);
EarlyExit refuse_verb(bool json, const std::string& word);

}  // namespace shw::cli
