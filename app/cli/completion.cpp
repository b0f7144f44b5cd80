// Completion scripts for bash, zsh and fish: verbs, options, values and files.
#include <fmt/core.h>

#include <algorithm>

#include "app/cli/command_text.h"

namespace shw::cli {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> names_of(const std::vector<VerbUse>& verbs) {
  std::vector<std::string> names;
  for (const VerbUse& verb : verbs) names.push_back(verb.name);
  return names;
}

std::vector<std::string> option_names(const VerbUse& verb) {
  std::vector<std::string> names;
  for (const ArgumentUse& option : verb.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

bool has_path_arguments(const VerbUse& verb) {
  return std::any_of(verb.places.begin(), verb.places.end(), is_path_argument);
}

// Escapes a text for the inside of single quotes. `quote` replaces each ', a backslash precedes
// each character in `more`, and newlines become spaces. Adds no outer quotes.
std::string quoted(std::string_view text, std::string_view more, std::string_view quote) {
  std::string out;
  for (char c : text) {
    if (c == '\'') {
      out += quote;
      continue;
    }
    if (more.find(c) != more.npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// ---- bash

// The COMPREPLY expression for the value of an option.
std::string bash_value(const ArgumentUse& option) {
  auto choices = choices_of(option);
  if (!choices.empty()) return fmt::format("_shardwright_words '{}'", joined(choices, " "));
  return is_path_argument(option) ? "_shardwright_files" : ":";
}

std::string bash_verb(const VerbUse& verb) {
  std::string text = fmt::format("    {})\n      case $before in\n", verb.name);
  for (const ArgumentUse& option : verb.options) {
    if (option.value.empty()) continue;
    text +=
        fmt::format("        {}) {}; return ;;\n", joined(option.names, "|"), bash_value(option));
  }
  text += "      esac\n";
  text += fmt::format("      options='{}'\n", joined(option_names(verb), " "));
  std::vector<std::string> words;
  for (const ArgumentUse& place : verb.places) {
    for (std::string& word : choices_of(place)) words.push_back(std::move(word));
  }
  if (!words.empty()) text += fmt::format("      words='{}'\n", joined(words, " "));
  if (!has_path_arguments(verb)) text += "      files=no\n";
  return text + "      ;;\n";
}

}  // namespace

std::vector<std::string> choices_of(const ArgumentUse& argument) {
  std::vector<std::string> choices;
  std::string_view rest = argument.value;
  if (rest.find('|') == rest.npos) return choices;
  while (true) {
    std::size_t bar = rest.find('|');
    std::string_view word = rest.substr(0, bar);
    word = word.substr(0, word.find('['));  // "cuda[:N]": fish would interpret the brackets
    std::size_t colon = word.find(':');     // "from:CHECKPOINT": any text may follow
    choices.emplace_back(colon == word.npos ? word : word.substr(0, colon + 1));
    if (bar == rest.npos) return choices;
    rest.remove_prefix(bar + 1);
  }
}

bool is_path_argument(const ArgumentUse& argument) {
  const std::string& what = argument.value.empty() ? argument.names.front() : argument.value;
  for (const char* path : {"FILE", "PATH", "DIR", "CHECKPOINT", "OTHER", "SOURCE", "A", "B"}) {
    if (what == path) return true;
  }
  return false;
}

const std::string& long_name(const ArgumentUse& option) {
  for (const std::string& name : option.names) {
    if (name.starts_with("--")) return name;
  }
  return option.names.front();
}

std::string bash_completion(const std::vector<VerbUse>& verbs) {
  std::string text =
      "# bash completion of shardwright: made by `shardwright completion bash`\n"
      "_shardwright_words() {\n"
      "  local IFS=$' \\t\\n'\n"
      "  COMPREPLY=($(compgen -W \"$1\" -- \"$word\"))\n"
      "}\n"
      "_shardwright_files() {\n"
      "  local IFS=$'\\n'\n"
      "  COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  compopt -o filenames 2>/dev/null\n"
      "}\n"
      "_shardwright() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local options='' words='' files=yes\n"
      "  COMPREPLY=()\n"
      "  if [[ $word == '=' ]]; then word=''; fi\n"
      "  if [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  if [[ $COMP_CWORD -eq 1 ]]; then\n";
  text += fmt::format("    _shardwright_words '{} --help --version'\n    return\n  fi\n",
                      joined(names_of(verbs), " "));
  text += "  case ${COMP_WORDS[1]} in\n";
  for (const VerbUse& verb : verbs) text += bash_verb(verb);
  return text +
         "  esac\n"
         "  if [[ $word == -* ]]; then\n"
         "    _shardwright_words \"$options\"\n"
         "  elif [[ -n $words ]]; then\n"
         "    _shardwright_words \"$words\"\n"
         "  elif [[ $files == yes ]]; then\n"
         "    _shardwright_files\n"
         "  fi\n"
         "}\n"
         "complete -F _shardwright shardwright\n";
}

// ---- zsh

namespace {

std::string zsh_action(const ArgumentUse& argument) {
  auto choices = choices_of(argument);
  if (!choices.empty()) return "(" + quoted(joined(choices, " "), ":", "") + ")";
  return is_path_argument(argument) ? "_files" : " ";
}

// Escapes '[', ']' and ':', which separate parts for _arguments.
std::string zsh_text(const std::string& text) {
  return quoted(text, "[]:\\", "'\\''");
}

std::string zsh_option(const ArgumentUse& option) {
  std::string text;
  for (const std::string& name : option.names) {
    bool is_long = name.starts_with("--");  // also completes "--depth=data"
    text += fmt::format(" \\\n        '({}){}{}[{}]", joined(option.names, " "), name,
                        is_long && !option.value.empty() ? "=" : "", zsh_text(option.text));
    if (!option.value.empty())
      text += fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option));
    text += "'";
  }
  return text;
}

std::string zsh_verb(const VerbUse& verb) {
  std::string text = fmt::format("    {})\n      _arguments -s", verb.name);
  for (const ArgumentUse& option : verb.options) text += zsh_option(option);
  std::size_t number = 0;
  for (const ArgumentUse& place : verb.places) {
    std::string where = place.repeats ? "*" : std::to_string(++number);
    text += fmt::format(" \\\n        '{}:{}:{}'", where, zsh_text(place.names.front()),
                        zsh_action(place));
  }
  return text + "\n      ;;\n";
}

}  // namespace

std::string zsh_completion(const std::vector<VerbUse>& verbs) {
  std::string text =
      "#compdef shardwright\n"
      "# made by `shardwright completion zsh`\n"
      "_shardwright() {\n"
      "  local -a verbs\n"
      "  verbs=(\n";
  for (const VerbUse& verb : verbs)
    text += fmt::format("    '{}:{}'\n", quoted(verb.name, ":", ""), zsh_text(verb.summary));
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $verb in\n";
  for (const VerbUse& verb : verbs) text += zsh_verb(verb);
  return text +
         "  esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _shardwright ]; then\n"
         "  _shardwright \"$@\"\n"
         "else\n"
         "  compdef _shardwright shardwright\n"
         "fi\n";
}

// ---- fish

namespace {

std::string fish_text(const std::string& text) {
  return quoted(text, "\\", "\\'");
}

std::string fish_option(const std::string& verb, const ArgumentUse& option) {
  std::string line =
      fmt::format("complete -c shardwright -n '__fish_seen_subcommand_from {}'", verb);
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  auto choices = choices_of(option);
  if (!choices.empty())
    line += fmt::format(" -x -a '{}'", fish_text(joined(choices, " ")));
  else if (is_path_argument(option))
    line += " -r -F";
  else if (!option.value.empty())
    line += " -x";
  return line + fmt::format(" -d '{}'\n", fish_text(option.text));
}

}  // namespace

std::string fish_completion(const std::vector<VerbUse>& verbs) {
  std::string text =
      "# fish completion of shardwright: made by `shardwright completion fish`\n"
      "complete -c shardwright -e\n"
      "complete -c shardwright -n __fish_use_subcommand -f -l help -s h -d 'say what there is'\n"
      "complete -c shardwright -n __fish_use_subcommand -f -l version -d 'which one this is'\n";
  for (const VerbUse& verb : verbs) {
    text += fmt::format("complete -c shardwright -n __fish_use_subcommand -f -a {} -d '{}'\n",
                        verb.name, fish_text(verb.summary));
  }
  for (const VerbUse& verb : verbs) {
    for (const ArgumentUse& place : verb.places) {
      auto choices = choices_of(place);
      if (choices.empty()) continue;
      text += fmt::format("complete -c shardwright -n '__fish_seen_subcommand_from {}' -a '{}'\n",
                          verb.name, fish_text(joined(choices, " ")));
    }
    if (!has_path_arguments(verb)) {
      text += fmt::format("complete -c shardwright -n '__fish_seen_subcommand_from {}' -f\n",
                          verb.name);
    }
    for (const ArgumentUse& option : verb.options) text += fish_option(verb.name, option);
  }
  return text;
}

std::optional<std::string> command_text(std::string_view form) {
  if (form == "bash") return bash_completion(verb_uses());
  if (form == "zsh") return zsh_completion(verb_uses());
  if (form == "fish") return fish_completion(verb_uses());
  if (form == "man") return man_page(verb_uses());
  if (form == "markdown") return verbs_page(verb_uses());
  return std::nullopt;
}

}  // namespace shw::cli
