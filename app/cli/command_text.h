// The command line told to shells and to man, made from the table of verbs and the options that the
// parser knows: what is completed and what stands in the manual is what is taken.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shw::cli {

// An option, or what stands at a place of its own.
struct ArgumentUse {
  std::vector<std::string> names;  // "--quiet", "-q"; of a place the one name that help has for it
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

// The words that a value may be: nothing where it is free.
std::vector<std::string> choices_of(const ArgumentUse& argument);
bool takes_path(const ArgumentUse& argument);
// Of an option the long name, as it is typed.
const std::string& long_name(const ArgumentUse& option);

std::string bash_completion(const std::vector<VerbUse>& verbs);
std::string zsh_completion(const std::vector<VerbUse>& verbs);
std::string fish_completion(const std::vector<VerbUse>& verbs);
std::string man_page(const std::vector<VerbUse>& verbs);
std::string verbs_page(const std::vector<VerbUse>& verbs);  // docs/verbs.md

// What a line of --help has no room for, by the long name of an option.
struct OptionNote {
  const char* option;
  const char* text;
};
std::span<const OptionNote> option_notes();
std::span<const OptionNote> exit_codes();  // "0" and what it means
// What nearly all verbs take: said once.
bool is_common_option(const std::string& long_name);

// "bash", "zsh", "fish", "man" or "markdown"; nothing for another word.
std::optional<std::string> command_text(std::string_view form);

}  // namespace shw::cli
