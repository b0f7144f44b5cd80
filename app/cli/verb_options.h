// What each verb takes, told to CLI11: its places and its options, with the words of --help.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/cli/options.h"

namespace CLI {
class App;
}

namespace shw::cli {

// `words`: what `ls` is given behind the checkpoint.
void add_positionals(CLI::App& verb, const std::string& name, Options& options,
                     std::vector<std::string>& words);
// `shape`: VerbRow::options, a letter an option.
void add_options(CLI::App& verb, std::string_view shape, Options& options);

}  // namespace shw::cli
