#include "app/cli/words.h"

#include "core/report/text_words.h"

namespace shw::cli {
namespace {

std::string command(const char* verb, const Options& options) {
  std::string text = std::string("shardwright ") + verb + " " + shell_word(options.checkpoint);
  if (!options.against.empty()) text += " --against " + shell_word(options.against);
  if (!options.fill.empty()) text += " --fill " + shell_word(options.fill);
  if (!options.spec.empty()) text += " --spec " + shell_word(options.spec);
  if (!options.mesh.empty()) text += " --mesh " + shell_word(options.mesh);
  if (!options.depth.empty())
    text += options.depth == "data" ? " --data" : " --depth " + options.depth;
  return text;
}

}  // namespace

std::string check_command(const Options& options) {
  return command("check", options);
}
std::string repair_command(const Options& options) {
  return command("repair", options);
}

}  // namespace shw::cli
