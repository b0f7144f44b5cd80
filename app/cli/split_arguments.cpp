#include "app/cli/split_arguments.h"

#include "app/cli/verb_table.h"
#include "core/base/spelling.h"
#include "core/io/remote/remote_path.h"
#include "core/report/answers.h"
#include "core/report/report.h"

namespace shw::cli {

bool requests_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

EarlyExit usage_error(bool json, const std::string& typed, const std::string& advice) {
  const std::string message = text_without_secrets(typed);
  if (json)
    return {
        3,
        with_answer_header(error_to_json(Error{ErrorKind::kUsage, message, {}, advice}), {}) + "\n",
        {}};
  return {3, {}, "shardwright: " + message + "\n" + advice + "\n"};
}

std::optional<std::string> unknown_verb(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word.starts_with("-")) continue;
    for (const VerbRow& verb : verb_table()) {
      if (word == verb.name) return std::nullopt;
    }
    return std::string(word);
  }
  return std::nullopt;
}

EarlyExit refuse_verb(bool json, const std::string& word) {
  std::vector<std::string_view> names;
  for (const VerbRow& verb : verb_table()) names.push_back(verb.name);
  std::string advice = did_you_mean_text(did_you_mean(word, names, 2));
  if (advice.empty()) advice = "`shardwright --help` lists the verbs.";
  return usage_error(json, "unknown command \"" + word + "\"", advice);
}

Typed split_arguments(int argc, char** argv) {
  Typed typed;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (!typed.verb.empty())
      typed.after.push_back(word);
    else if (word.starts_with("-"))
      typed.before.push_back(word);
    else
      typed.verb = word;
  }
  return typed;
}

}  // namespace shw::cli
