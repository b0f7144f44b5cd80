// Shell completion, man page and docs/verbs.md, generated from the verb table and the parser's
// options, so that they match what is accepted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shw::cli {

// An option or a positional argument.
struct ArgumentUse {
  std::vector<std::string> names;  // "--quiet", "-q"; for a positional the name in --help
  std::string value;               // "FILE", "zero|cast"; empty: a flag
  std::string text;
  bool is_required = false;
  bool repeats = false;
};

struct VerbUse {
  std::string name, summary, details, examples;
  std::vector<ArgumentUse> places, options;
};

// In the order of the table of verbs (parse.cpp).
std::vector<VerbUse> verb_uses();

// The allowed values; empty if any text is allowed.
std::vector<std::string> choices_of(const ArgumentUse& argument);
bool is_path_argument(const ArgumentUse& argument);
// The long name of an option.
const std::string& long_name(const ArgumentUse& option);

std::string bash_completion(const std::vector<VerbUse>& verbs);
std::string zsh_completion(const std::vector<VerbUse>& verbs);
std::string fish_completion(const std::vector<VerbUse>& verbs);
std::string man_page(const std::vector<VerbUse>& verbs);
std::string verbs_page(const std::vector<VerbUse>& verbs);  // docs/verbs.md

// Text of an option that is too long for --help, by long name.
struct OptionNote {
  const char* option;
  const char* text;
};
std::span<const OptionNote> option_notes();
std::span<const OptionNote> exit_codes();  // exit codes with their meaning
// True for options of nearly all verbs, which are documented once.
bool is_common_option(const std::string& long_name);

// `form`: "bash", "zsh", "fish", "man" or "markdown"; nullopt otherwise.
std::optional<std::string> command_text(std::string_view form);

}  // namespace shw::cli
