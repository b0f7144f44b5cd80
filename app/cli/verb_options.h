// Registers the options and positionals of each verb with CLI11, with their help texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/cli/options.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shw::cli {

// `words`: receives the words after the checkpoint of `ls`.
void add_positionals(CLI::App& verb, const std::string& name, Options& options,
                     std::vector<std::string>& words);
// Limits the option to these words, which help and completion list.
CLI::Option* limit_to_choices(CLI::Option* option, std::vector<std::string> words);
// `shape`: VerbRow::options, one letter per option.
void add_options(CLI::App& verb, std::string_view shape, Options& options);

}  // namespace shw::cli
