// Runs every command that check, plan and repair advise on the checkpoint that it was advised for.
// Some of these checkpoints are whole, others lack a file or the end of one.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;
namespace fs = std::filesystem;

namespace {

// `shardwright ...` in the text: up to a backtick, to two blanks, or to the end of the line.
std::set<std::string> commands_in(const std::string& text) {
  static const std::regex kCommand("shardwright ((?:(?!  |`).)+)");
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), kCommand), end; at != end; ++at)
    found.insert((*at)[1].str());
  return found;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Text may follow a command in the same sentence: ", or --fill from:CHECKPOINT" and "says what can
// be done".
bool is_for_this_checkpoint(const std::vector<std::string>& words, const std::string& path) {
  return words.size() > 1 && (words[1] == path || words[0] == "explain");
}

void try_all(const std::string& text, const std::string& path, std::set<std::string>& tried) {
  for (const std::string& command : commands_in(text)) {
    CAPTURE(command);
    std::vector<std::string> words = words_of(command);
    if (!is_for_this_checkpoint(words, path)) continue;
    while (!words.empty() && (words.back() == "or" || words.back() == "from:CHECKPOINT" ||
                              words.back().ends_with(",")))
      words.back().ends_with(",") ? words.back().pop_back() : words.pop_back();
    // What explain says of a rule is the same for every checkpoint.
    if (words[0] == "explain") words.resize(2);
    tried.insert(words[0]);
    if (words[0] == "explain" && !tried.insert(words[0] + " " + words[1]).second) continue;
    Scratch scratch;
    const bool writes = words[0] == "repair";
    const bool in_place = std::find(words.begin(), words.end(), "--in-place") != words.end();
    if (writes) words.emplace_back("--yes");
    if (writes && in_place) {
      fs::copy(path, scratch / "copy", fs::copy_options::recursive);
      words[1] = scratch / "copy";
    } else if (writes) {
      words.insert(words.end(), {"--out", scratch / "out"});
    }
    Run run = shardwright(words);
    CHECK_MESSAGE(run.code <= 1, run.err);
  }
}

void try_advice_on(const std::string& path, std::set<std::string>& tried) {
  CAPTURE(path);
  for (const char* verb : {"check", "plan"}) {
    Run run = shardwright({verb, path});
    try_all(run.out + "\n" + run.err, path, tried);
  }
}

}  // namespace

TEST_CASE("advice: every command that is advised for a checkpoint works on it") {
  std::set<std::string> tried;
  for (const char* family : {"torch-2.6", "torch-2.14", "real-code"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(SHW_TEST_DATA) / family)) {
      const std::string source = (entry.path() / "ckpt").string();
      const bool is_in_newer_family =
          family == std::string("torch-2.6") &&
          fs::exists(fs::path(SHW_TEST_DATA) / "torch-2.14" / entry.path().filename());
      if (!fs::is_directory(source) || is_in_newer_family) continue;
      try_advice_on(source, tried);
      for (const bool is_cut : {false, true}) {
        Scratch scratch;
        const std::string copy = scratch / "step_9000";
        fs::copy(source, copy, fs::copy_options::recursive);
        for (const auto& file : fs::directory_iterator(copy)) {
          if (file.path().extension() != ".distcp" || file.file_size() < 8) continue;
          if (is_cut)
            fs::resize_file(file.path(), file.file_size() / 2);
          else
            fs::remove(file.path());
          break;
        }
        try_advice_on(copy, tried);
      }
    }
  }
  CHECK(tried.contains("plan"));
  CHECK(tried.contains("repair"));
  CHECK(tried.contains("explain"));
}
