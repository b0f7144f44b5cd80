// What was typed, before the parser of options looks at it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/options.h"

namespace shw::cli {

// Words that begin with a dash stand before any other mistake: CLI11 would name the argument that
// it misses because of them.
struct Typed {
  std::string_view verb;
  std::vector<std::string_view> before, after;  // options before the verb, words after it
};

Typed typed_words(int argc, char** argv);

bool asks_for_json(int argc, char** argv);
EarlyExit usage_error(bool json, const std::string& message, const std::string& advice);
// The first word that is no option, if it is no verb.
std::optional<std::string> unknown_verb(int argc, char** argv);
EarlyExit refuse_verb(bool json, const std::string& word);

}  // namespace shw::cli
