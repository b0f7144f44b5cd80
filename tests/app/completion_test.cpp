// Shell completion and the man page, interpreted by real shells and by groff.
#include <doctest/doctest.h>

#include <fstream>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;

namespace {

bool is_there(const std::string& program) {
  return shell("command -v " + program).code == 0;
}

std::string made_for(const std::string& form) {
  Run run = shardwright({"completion", form});
  REQUIRE(run.code == 0);
  REQUIRE(run.err.empty());
  return run.out;
}

std::string written(const Scratch& scratch, const std::string& form) {
  std::ofstream(scratch / form, std::ios::binary) << made_for(form);
  return scratch / form;
}

// The words that bash would offer for the last word.
std::string offered(const std::string& script, const std::string& words,
                    const std::string& folder = "/") {
  Run run = shell("cd " + folder + " && bash -c '. " + script +
                  "; COMP_WORDS=(shardwright \"$@\"); COMP_CWORD=$#; _shardwright; "
                  "echo \"${COMPREPLY[*]}\"' bash " +
                  words);
  REQUIRE(run.code == 0);
  return run.out;
}

// "--spec", ... of the help of a verb.
std::vector<std::string> options_in(const std::string& help) {
  std::vector<std::string> names;
  std::size_t at = help.find("\nOptions:");
  while ((at = help.find("--", at)) != std::string::npos) {
    std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at);
    std::size_t line = help.rfind('\n', at);
    // Options at the beginning of a line or after their short form.
    if (at - line <= 6) names.push_back(help.substr(at, end - at));
    at = end;
  }
  return names;
}

}  // namespace

TEST_CASE("bash completes verbs, options, their values and files") {
  Scratch scratch;
  std::string script = written(scratch, "bash");
  CHECK(offered(script, "che") == "check\n");
  CHECK(offered(script, "check --de") == "--depth\n");
  CHECK(offered(script, "check x --depth h") == "headers\n");
  CHECK(offered(script, "check --depth = me") == "metadata\n");
  CHECK(offered(script, "repair x --fill ''") == "zero cast from:\n");
  CHECK(offered(script, "repair x --device c") == "cpu cuda\n");
  CHECK(offered(script, "check x --mesh ''") == "\n");
  CHECK(offered(script, "completion f") == "fish\n");
  CHECK(offered(script, "check ste", demo()) == "step_9000\n");
  CHECK(offered(script, "check x --spec spec", demo()) == "spec.json\n");
}

TEST_CASE("every option that help names is completed and is in the manual") {
  Scratch scratch;
  std::string script = written(scratch, "bash");
  std::string zsh = made_for("zsh"), fish = made_for("fish");
  std::string man = made_for("man");
  std::string verbs = offered(script, "''");
  CHECK(contains(verbs, "info ls show"));
  for (const char* verb : {"check", "repair", "convert", "export-hdf5", "map", "explain"}) {
    CAPTURE(verb);
    auto names = options_in(shardwright({verb, "--help"}).out);
    CHECK(names.size() > 3);
    std::string all = " " + offered(script, std::string(verb) + " -") + " ";
    for (const std::string& name : names) {
      CHECK_MESSAGE(contains(all, name), name);
      CHECK_MESSAGE(contains(zsh, ")" + name), name);
      CHECK_MESSAGE(contains(fish, " -l " + name.substr(2)), name);
      std::string typed;
      for (char c : name) typed += c == '-' ? std::string("\\-") : std::string(1, c);
      CHECK_MESSAGE(contains(man, typed), name);
    }
  }
}

TEST_CASE("zsh, fish and groff read what is made for them without a complaint") {
  Scratch scratch;
  if (is_there("zsh")) CHECK(shell("zsh -n " + written(scratch, "zsh")).code == 0);
  if (is_there("fish")) {
    std::string script = written(scratch, "fish");
    Run run =
        shell("HOME=" + (scratch / ".") + " fish -c '. " + script +
              "; complete -C \"shardwright check --depth \"' | cut -f1 | sort | tr '\\n' ' '");
    CHECK(run.out == "data headers metadata ");
    // Values that fish would misread must be offered without an error.
    for (const char* asked : {"repair x --device ", "repair x --fill ", "report x --format "}) {
      run = shell("HOME=" + (scratch / ".") + " fish -c '. " + script +
                  "; complete -C \"shardwright " + asked + "\"'");
      CHECK_FALSE(run.out.empty());
      CHECK(run.err.empty());
    }
  }
  if (is_there("groff")) {
    Run run = shell("groff -man -ww -z " + written(scratch, "man"));
    CHECK(run.code == 0);
    CHECK(run.err.empty());
  }
  CHECK(shardwright({"completion", "csh"}).code == 3);
  CHECK(shardwright({"completion", "bash", "--json"}).code == 3);
}
