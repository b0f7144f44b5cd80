// Output for CI, from the program as a process: baselines, policies, SARIF, JUnit, annotations.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;

namespace {

const std::string kBroken = std::string(SHW_TEST_DATA) + "/torch-2.14/s1_placement_not_transposed";
const std::string kHasExpectedSizes =
    std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt";

std::vector<std::string> with_spec(const std::string& verb, std::vector<std::string> more) {
  std::vector<std::string> words{verb, kBroken + "/ckpt", "--spec", kBroken + "/spec.json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("what a baseline knows stays a finding and does not fail") {
  Scratch scratch;
  Run before = shardwright(with_spec("check", {"--json"}));
  REQUIRE(before.code == 1);
  write(scratch / "known.json", before.out);
  Run again = shardwright(with_spec("check", {"--json", "--baseline", scratch / "known.json"}));
  CHECK(again.code == 0);
  auto answer = parsed(again.out);
  CHECK(answer["verdict"] == "findings");
  CHECK(answer["baseline"]["new"] == 0);
  CHECK(answer["baseline"]["gone"].empty());
  for (const auto& finding : answer["findings"]) CHECK(finding["known"] == true);
  // A finding with another severity than in the baseline is not known.
  auto milder = parsed(before.out);
  milder["findings"][0]["severity"] = "info";
  write(scratch / "milder.json", milder.dump());
  CHECK(shardwright(with_spec("check", {"--baseline", scratch / "milder.json"})).code == 1);
  auto fewer = parsed(before.out);
  fewer["findings"][0]["subjects"].erase(0);
  write(scratch / "fewer.json", fewer.dump());
  CHECK(shardwright(with_spec("check", {"--baseline", scratch / "fewer.json"})).code == 1);
  Run gone = shardwright({"check", kHasExpectedSizes, "--spec", kBroken + "/spec.json",
                          "--baseline", scratch / "known.json", "--json"});
  CHECK(gone.code == 0);
  CHECK_FALSE(parsed(gone.out)["baseline"]["gone"].empty());
  // Without the spec these checks did not run.
  Run unasked =
      shardwright({"check", kHasExpectedSizes, "--baseline", scratch / "known.json", "--json"});
  CHECK(parsed(unasked.out)["baseline"]["gone"].empty());
  write(scratch / "no.json", "[1, 2]");
  CHECK(shardwright(with_spec("check", {"--baseline", scratch / "no.json"})).code == 3);
}

TEST_CASE("what could not be checked is exit 2 whatever is known and from wherever it fails") {
  const std::string open = std::string(SHW_TEST_DATA) + "/h5py/kinds.h5";
  Scratch scratch;
  Run before = shardwright({"check", open, "--data", "--json"});
  REQUIRE(before.code == 1);
  REQUIRE(contains(before.out, "not-looked-at"));
  write(scratch / "known.json", before.out);
  CHECK(shardwright({"check", open, "--data", "--baseline", scratch / "known.json"}).code == 2);
  CHECK(shardwright({"check", open, "--data", "--fail-on", "never"}).code == 2);
}

TEST_CASE("what is certain to be broken is exit 1 though something else could not be checked") {
  // A link into another file is not followed: no finding above info, and undecided. A NaN is put
  // into readable data: dec/w, at byte 2,048.
  std::string bytes = text_of(std::string(SHW_TEST_DATA) + "/h5py/links.h5");
  bytes.replace(2048, 4, std::string("\x00\x00\xc0\x7f", 4));
  Scratch scratch;
  write(scratch / "links.h5", bytes);
  Run alone = shardwright({"check", scratch / "links.h5", "--json", "--data"});
  CHECK(alone.code == 2);
  CHECK(parsed(alone.out)["verdict"] == "undecided");
  write(scratch / "p", "require: finite\n");
  Run broken =
      shardwright({"check", scratch / "links.h5", "--json", "--data", "--policy", scratch / "p"});
  CHECK(parsed(broken.out)["verdict"] == "undecided");
  CHECK(parsed(broken.out)["policy"][0]["verdict"] == "broken");
  CHECK(broken.code == 1);
}

TEST_CASE("a report says the command with the baseline and the policy that it was asked with") {
  Scratch scratch;
  write(scratch / "p", "require: coverage\n");
  for (const char* format : {"md", "html"}) {
    Run page =
        shardwright({"report", kHasExpectedSizes, "--policy", scratch / "p", "--format", format});
    CHECK(contains(page.out, "shardwright check "));
    CHECK(contains(page.out, " --policy " + (scratch / "p")));
  }
  // The file of the page is not where a repair goes, and each command has its own line.
  const std::string broken = std::string(SHW_TEST_DATA) + "/torch-2.14/s1_placement_not_transposed";
  for (const char* name : {"page.md", "page.html"}) {
    const std::string out = scratch / name;
    shardwright({"report", broken + "/ckpt", "--spec", broken + "/spec.json", "--out", out});
    const std::string page = text_of(out);
    CHECK(contains(page, "\nshardwright repair "));
    CHECK_FALSE(contains(page, out));
  }
}

TEST_CASE(
    "a mistake in a baseline or a policy is reported of the file as typed and before all else") {
  Scratch scratch;
  write(scratch / "b.json", "[]");
  write(scratch / "p", "require: coverge\n");
  // Run in the folder of both files, with relative paths as in a CI job.
  auto there = [&](const std::string& words) {
    return shell("cd '" + scratch / "" + "' && \"$SHARDWRIGHT\" " + words);
  };
  for (const std::string verb : {"check ", "report "}) {
    for (const std::string file : {"--baseline b.json", "--policy p"}) {
      CAPTURE(verb + file);
      Run refused = there(verb + kHasExpectedSizes + " " + file);
      CHECK(refused.code == 3);
      CHECK_FALSE(contains(refused.err, kHasExpectedSizes));
      // The output path is checked before the checkpoint is opened.
      CHECK(there(verb + "nowhere " + file).code == 3);
    }
  }
}

TEST_CASE("a policy is met or broken or open and the exit code says so") {
  Scratch scratch;
  write(scratch / "coverage", "# what we require\nrequire: coverage\n");
  write(scratch / "finite.json", R"({"require": ["coverage", "finite"]})");
  write(scratch / "optimizer", "require: [optimizer-complete]\n");
  write(scratch / "typo", "require: coverge\n");
  auto asked = [&](const std::string& policy, std::vector<std::string> more) {
    std::vector<std::string> words{"check", kHasExpectedSizes, "--json", "--policy",
                                   scratch / policy};
    words.insert(words.end(), more.begin(), more.end());
    return shardwright(words);
  };
  Run coverage = asked("coverage", {});
  CHECK(coverage.code == 0);
  CHECK(parsed(coverage.out)["policy"][0]["verdict"] == "met");
  Run finite = asked("finite.json", {});
  CHECK(finite.code == 2);
  CHECK(parsed(finite.out)["policy"][1]["verdict"] == "undecided");
  CHECK(asked("finite.json", {"--data"}).code == 0);
  Run optimizer = asked("optimizer", {});
  CHECK(optimizer.code == 1);
  CHECK(parsed(optimizer.out)["policy"][0]["verdict"] == "broken");
  Run typo = asked("typo", {});
  CHECK(typo.code == 3);
  CHECK(contains(typo.out, "coverage"));
  // Missing bytes break the policy, whatever the rules report about them.
  std::filesystem::copy(kHasExpectedSizes, scratch / "torn",
                        std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "torn")) {
    if (entry.path().extension() == ".distcp") std::filesystem::resize_file(entry.path(), 10);
  }
  Run torn = shardwright({"check", scratch / "torn", "--json", "--fail-on", "never", "--policy",
                          scratch / "coverage"});
  CHECK(torn.code == 1);
  CHECK_FALSE(parsed(torn.out)["policy"][0]["subjects"].empty());
}

TEST_CASE("report: the exit code is the one of check with the options that both take") {
  Scratch scratch;
  auto known = shardwright(with_spec("check", {"--json"})).out;
  write(scratch / "known.json", known);
  write(scratch / "p", "require: optimizer-complete\n");
  const std::string rule = parsed(known)["findings"][0]["rule"];
  const std::vector<std::vector<std::string>> all = {{},
                                                     {"--fail-on", "never"},
                                                     {"--fail-on", "error"},
                                                     {"--fail-on", "info"},
                                                     {"--baseline", scratch / "known.json"},
                                                     {"--policy", scratch / "p"},
                                                     {"--ignore", rule}};
  std::set<int> codes;
  for (const std::vector<std::string>& more : all) {
    CAPTURE(more.empty() ? std::string() : more.back());
    const int expected = shardwright(with_spec("check", more)).code;
    codes.insert(expected);
    for (const char* format : {"md", "json", "sarif", "github"}) {
      std::vector<std::string> words = more;
      words.insert(words.end(), {"--format", format});
      CHECK(shardwright(with_spec("report", words)).code == expected);
    }
  }
  CHECK(codes.count(0) == 1);
  CHECK(codes.count(1) == 1);
  CHECK(shardwright(with_spec("report", {"--ignore", "no-such-rule"})).code == 3);
  auto left = parsed(shardwright(with_spec("report", {"--json", "--ignore", rule})).out);
  for (const auto& finding : left["findings"]) CHECK(finding["rule"] != rule);
  CHECK(contains(left["unjudged"].dump(), rule));
}

TEST_CASE("every form of a report says the same findings") {
  auto found = parsed(shardwright(with_spec("check", {"--json"})).out)["findings"];
  auto sarif = parsed(shardwright(with_spec("report", {"--format", "sarif"})).out);
  auto results = sarif["runs"][0]["results"];
  REQUIRE(results.size() == found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(results[i]["ruleId"] == found[i]["rule"]);
    auto rule = sarif["runs"][0]["tool"]["driver"]["rules"][results[i]["ruleIndex"].get<int>()];
    CHECK(rule["id"] == found[i]["rule"]);
  }
  CHECK(parsed(shardwright(with_spec("report", {"--format", "json"})).out)["findings"] == found);
  CHECK(parsed(shardwright(with_spec("report", {"--json"})).out)["findings"] == found);
  Run junit = shardwright(with_spec("report", {"--format", "junit"}));
  CHECK(contains(junit.out, "<failure type=\"error\""));
  Run github = shardwright(with_spec("report", {"--format", "github"}));
  CHECK(contains(github.out, "::error file="));
  CHECK(contains(github.out, ",title=" + found[0]["rule"].get<std::string>() + "::"));
  Scratch scratch;
  CHECK(shardwright(with_spec("report", {"--out", scratch / "r.xml"})).code == 1);
  std::ifstream file(scratch / "r.xml");
  std::string first;
  std::getline(file, first);
  CHECK(first == "<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
}
