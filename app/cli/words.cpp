#include "app/cli/words.h"

#include <algorithm>
#include <string_view>

namespace shw::cli {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("./_-=,:@%+").find(c) != std::string_view::npos;
}

std::string command(const char* verb, const Options& options) {
  std::string text = std::string("shardwright ") + verb + " " + shell_word(options.checkpoint);
  if (!options.spec.empty()) text += " --spec " + shell_word(options.spec);
  if (!options.mesh.empty()) text += " --mesh " + shell_word(options.mesh);
  if (!options.depth.empty())
    text += options.depth == "data" ? " --data" : " --depth " + options.depth;
  return text;
}

}  // namespace

std::string shell_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string check_command(const Options& options) {
  return command("check", options);
}
std::string repair_command(const Options& options) {
  return command("repair", options);
}

}  // namespace shw::cli
