// Parses the command line with CLI11 and formats its errors.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "app/cli/command_text.h"
#include "app/cli/options.h"
#include "app/cli/split_arguments.h"
#include "app/cli/verb_options.h"
#include "app/cli/verb_table.h"
#include "core/base/spelling.h"
#include "core/io/remote/remote_path.h"
#include "core/report/text_words.h"
#include "core/verbs/run/newest_step.h"

namespace shw::cli {

namespace {

bool exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code) || is_remote(path) || verbs::is_step_alias(path);
}

// Also accepts `show FQN CHECKPOINT`: the argument that exists on disk is the checkpoint.
void swap_if_tensor_first(Options& options) {
  if (options.verb != "show" && options.verb != "map") return;
  if (!exists(options.checkpoint) && exists(options.subject))
    std::swap(options.checkpoint, options.subject);
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

bool expects_value(const CLI::App& verb, std::string_view option) {
  for (const CLI::Option* other : verb.get_options()) {
    if (other->get_items_expected_max() > 0 && other->check_name(std::string(option))) return true;
  }
  return false;
}

// The first option that the verb does not have.
std::optional<EarlyExit> unknown_option(bool json, const CLI::App& verb, const Typed& typed) {
  std::vector<std::string> names = option_names(verb);
  std::string_view before;
  for (std::string_view word : typed.after) {
    bool is_value =
        before.starts_with("-") && before.find('=') == before.npos && expects_value(verb, before);
    before = word;
    if (word == "--") return std::nullopt;
    if (is_value || word.size() < 2 || word[0] != '-' || (word[1] >= '0' && word[1] <= '9'))
      continue;
    std::string_view name = word.substr(0, word.find('='));
    if (word[1] != '-') name = name.substr(0, 2);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::vector<std::string_view> known(names.begin(), names.end());
    // All single letters are equally similar, so none is suggested.
    std::string advice =
        name.size() > 2 ? did_you_mean_text(did_you_mean(name, known, 2)) : std::string();
    if (advice.empty())
      advice = "`shardwright " + std::string(typed.verb) + " --help` shows what it takes.";
    return usage_error(json, std::string(typed.verb) + " has no option " + std::string(name),
                       advice);
  }
  return std::nullopt;
}

// "FQN: the tensor", as in --help.
std::string with_description(const CLI::App& verb, const std::string& name) {
  const CLI::Option* option = verb.get_option_no_throw(name);
  const std::string said = option == nullptr ? std::string() : option->get_description();
  return said.empty() ? name : name + ": " + said;
}

// Formats a CLI11 error.
EarlyExit usage_exit(bool json, const CLI::ParseError& problem, const CLI::App& app,
                     const Typed& typed) {
  std::string verb(typed.verb), message = problem.what();
  std::string help = "`shardwright " + verb + " --help` shows how it is used.";
  std::size_t required = message.find(" is required");
  if (problem.get_name() == "RequiredError" && required != std::string::npos) {
    const std::string missing =
        with_description(*app.get_subcommand(verb), message.substr(0, required));
    return usage_error(json, verb + " needs a " + missing, help);
  }
  if (problem.get_name() == "ExtrasError") {
    std::size_t colon = message.find(": ");
    std::string extra = colon == std::string::npos ? message : message.substr(colon + 2);
    return usage_error(json, verb + " has an unexpected argument: " + extra, help);
  }
  return usage_error(json, verb + ": " + message, help);
}

// Width of --help.
constexpr std::size_t kColumns = 80;

// Paragraphs, each preceded by an empty line.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.find("\n\n");
    out += "\n" + wrapped(std::string(text.substr(0, end)), 0, kColumns) + "\n";
    text.remove_prefix(end == text.npos ? text.size() : end + 2);
  }
  return out;
}

// Formats options for a terminal's width.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = "  " + make_option_name(option, is_positional) + make_option_opts(option);
    std::string about = make_option_desc(option);
    if (about.empty()) return name + "\n";
    about = wrapped(about, column_width_, kColumns);
    if (name.size() > kColumns) {  // many choices: broken behind one of them
      const std::size_t bar = name.rfind('|', kColumns - 1);
      if (bar != name.npos) name.insert(bar + 1, "\n       ");
    }
    if (name.size() >= column_width_) return name + "\n" + about + "\n";
    return name + about.substr(name.size()) + "\n";
  }
};

void build(CLI::App& app, Options& options, std::vector<std::string>& words) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(0, 1);
  for (const VerbRow& help : verb_table()) {
    CLI::App* verb =
        app.add_subcommand(help.name, std::string(help.summary) + "\n" + paragraphs(help.details) +
                                          "\n  " + help.examples + "\n");
    add_positionals(*verb, help.name, options, words);
    // `completion` prints scripts only and has no further options.
    if (help.name != std::string_view("completion")) add_options(*verb, help.options, options);
    verb->callback([&options, name = help.name] { options.verb = name; });
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

ArgumentUse use_of(const CLI::Option& option) {
  ArgumentUse use;
  use.text = option.get_description();
  use.is_required = option.get_required();
  bool is_place = option.get_lnames().empty() && option.get_snames().empty();
  if (is_place) {
    use.names = {option.get_name()};
    use.repeats = option.get_items_expected_max() > 1;
    if (option.get_type_name().find('|') != std::string::npos) use.value = option.get_type_name();
    return use;
  }
  for (const std::string& name : option.get_snames()) use.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) use.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) use.value = option.get_type_name();
  return use;
}

}  // namespace

std::vector<VerbUse> verb_uses() {
  Options options;
  std::vector<std::string> words;
  CLI::App app("", "shardwright");
  build(app, options, words);
  std::vector<VerbUse> uses;
  for (const VerbRow& row : verb_table()) {
    VerbUse use{row.name, row.summary, row.details, row.examples, {}, {}};
    for (const CLI::Option* option : app.get_subcommand(row.name)->get_options()) {
      ArgumentUse argument = use_of(*option);
      bool is_place = !argument.names.front().starts_with("-");
      (is_place ? use.places : use.options).push_back(std::move(argument));
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

namespace {

bool is_verb(std::string_view word) {
  for (const VerbRow& row : verb_table()) {
    if (word == row.name) return true;
  }
  return false;
}

// "- **Exception Message:** ...", "----> 1 model.load()": no option has white space before its "=".
bool is_pasted_text(std::string_view word) {
  const std::size_t end = word.find_first_of("= \t\r\n");
  return word.starts_with("-") && end != word.npos && word[end] != '=';
}

// `help VERB` becomes `VERB --help`; a single path becomes `check PATH`. A message for `explain`
// loses the dashes it begins with, because they would make it an option.
std::vector<char*> normalise_arguments(int argc, char** argv) {
  static char check[] = "check", help[] = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc < 2) return words;
  const std::string_view first = words[1];
  if (first == "help" && argc > 2 && is_verb(words[2])) return {words[0], words[2], help};
  if (!first.empty() && !first.starts_with("-") && !is_verb(first) && exists(std::string(first)))
    words.insert(words.begin() + 1, check);
  if (first == "explain") {
    for (char*& word : words) {
      if (is_pasted_text(word)) word += std::string_view(word).find_first_not_of('-');
    }
  }
  return words;
}

bool requests_version(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "-V") return true;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--version") return true;
  }
  return false;
}

}  // namespace

std::variant<Options, EarlyExit> parse_arguments(int typed_count, char** typed_words_of) {
  std::vector<char*> meant = normalise_arguments(typed_count, typed_words_of);
  const int argc = static_cast<int>(meant.size());
  meant.push_back(nullptr);
  char** argv = meant.data();
  bool json = requests_json(argc, argv);
  std::string_view first = argc > 1 ? argv[1] : "--help";
  if (first == "-h" || first == "--help" || (first == "help" && argc == 2))
    return EarlyExit{0, help_text(), {}};
  if (first == "help") return refuse_verb(json, argv[2]);
  if (requests_version(argc, argv)) {
    return EarlyExit{0, json ? version_json() : version_text() + "\n", {}};
  }
  if (auto word = unknown_verb(argc, argv)) return refuse_verb(json, *word);
  Typed typed = split_arguments(argc, argv);
  if (typed.verb.empty())
    return usage_error(json, "a verb is missing", "`shardwright --help` lists the verbs.");
  if (!typed.before.empty() && typed.before.front() != "-h" && typed.before.front() != "--help")
    return usage_error(json, std::string(typed.before.front()) + " comes before the verb",
                       "Options come after it: shardwright " + std::string(typed.verb) + " " +
                           std::string(typed.before.front()) + " ...");

  Options options;
  std::vector<std::string> words;
  CLI::App app("", "shardwright");
  try {
    build(app, options, words);
    if (auto early = unknown_option(json, *app.get_subcommand(std::string(typed.verb)), typed))
      return *early;
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const CLI::App* verb : app.get_subcommands()) return EarlyExit{0, verb->help(), {}};
    return EarlyExit{0, help_text(), {}};
  } catch (const CLI::ParseError& problem) {
    return usage_exit(json, problem, app, typed);
  }
  if (!words.empty()) options.subject = joined(words);
  if (options.verb == "completion") return EarlyExit{0, *command_text(options.subject), {}};
  swap_if_tensor_first(options);
  return options;
}

}  // namespace shw::cli
