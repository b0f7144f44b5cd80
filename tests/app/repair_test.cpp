// Output before, during and after a repair: text, JSON and exit codes.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;
using Json = nlohmann::json;

namespace {

const std::string kLossy = SHW_TEST_DATA "/real-code/s2_megatron_t2_f1";
const std::string kFilled = "filled-elements";

std::string repaired(const Scratch& scratch) {
  std::string out = scratch / "mended";
  Run run = shardwright({"repair", kLossy + "/ckpt", "--out", out, "--yes"});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "288 of"));
  CHECK_FALSE(contains(run.out, "nothing is lost"));
  return out;
}

Json finding_of(const Json& answer, const std::string& rule) {
  for (const Json& finding : answer["findings"]) {
    if (finding["rule"] == rule) return finding;
  }
  return {};
}

// A checkpoint with a hole that cannot be repaired and a .metadata that is not portable: the spec
// requires one more row of a vector than was saved.
std::string spec_that_wants_more(const Scratch& scratch) {
  Json spec = parsed([&] {
    std::ifstream file(kLossy + "/spec.json");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }());
  for (auto& [fqn, entry] : spec.items()) {
    if (entry["shape"].size() != 1) continue;
    entry["shape"][0] = entry["shape"][0].get<int>() + 1;
    break;
  }
  std::ofstream(scratch / "spec.json") << spec.dump();
  return scratch / "spec.json";
}

}  // namespace

TEST_CASE("what a repair filled is recognised by every verb afterwards, and in JSON") {
  Scratch scratch;
  std::string out = repaired(scratch);
  Run check = shardwright({"check", out});
  CHECK(check.code == 1);
  CHECK(contains(check.out, kFilled));
  CHECK_FALSE(contains(check.out, "clean"));
  Json answer = parsed(shardwright({"check", out, "--json"}).out);
  CHECK(answer["verdict"] == "findings");
  Json finding = finding_of(answer, kFilled);
  CHECK(finding["severity"] == "warning");
  std::int64_t lost = 0;
  for (const Json& one : finding["evidence"]["lost_elements"]) lost += one.get<std::int64_t>();
  CHECK(lost == 288);
  REQUIRE(!finding["subjects"].empty());

  std::string fqn = finding["subjects"][0];
  CHECK(contains(shardwright({"info", out}).out, "288 elements lost and filled"));
  CHECK(parsed(shardwright({"info", out, "--json"}).out)["filled"]["elements"] == 288);
  CHECK(contains(shardwright({"ls", out}).out, "elements lost, filled with"));
  CHECK(contains(shardwright({"show", out, fqn}).out, "elements lost, filled with"));
  CHECK(contains(shardwright({"map", out, fqn}).out, "elements lost, filled with"));
  CHECK(parsed(shardwright({"show", out, fqn, "--json"}).out)["filled"]["lost"] ==
        finding["evidence"]["lost_elements"][0]);
  CHECK(parsed(shardwright({"map", out, fqn, "--json"}).out)["filled"]["lost"] ==
        finding["evidence"]["lost_elements"][0]);
  for (const char* page : {"r.html", "r.md"}) {
    REQUIRE(shardwright({"report", out, "--out", scratch / page}).code == 1);
    std::ifstream file(scratch / page);
    std::string text(std::istreambuf_iterator<char>(file), {});
    CHECK(contains(text, kFilled));
    CHECK_FALSE(contains(text, "Nothing was found"));
    CHECK(contains(text, "Elements are lost"));
  }
  Run plan = shardwright({"plan", out});
  CHECK(plan.code == 1);
  CHECK_FALSE(contains(plan.out, "Nothing to repair"));
}

TEST_CASE("the totals of a proof are said once") {
  Scratch scratch;
  Run verify = shardwright({"verify", repaired(scratch)});
  CHECK(verify.code == 0);
  std::size_t first = verify.out.find("288 lost");
  REQUIRE(first != verify.out.npos);
  CHECK(verify.out.find("288 lost", first + 1) == verify.out.npos);
}

TEST_CASE("a repair with nothing to do names the checkpoint to go on with and ends well") {
  Scratch scratch;
  std::string healthy = SHW_TEST_DATA "/torch-2.14/healthy_zstd/ckpt";
  std::string out = scratch / "first";
  Run first = shardwright({"repair", healthy, "--out", out, "--yes", "--json"});
  CHECK(first.code == 0);
  std::string clean = parsed(first.out)["output"];
  Run again = shardwright({"repair", clean, "--yes", "--json"});
  CHECK(again.code == 0);
  CHECK(parsed(again.out)["output"] == clean);
  CHECK(parsed(again.out)["repaired"] == false);
  CHECK_FALSE(parsed(again.out).contains("certificate"));
}

TEST_CASE("a file with bytes that belong to no tensor is repaired, as check advises") {
  Scratch scratch;
  const std::string folder = scratch / "my model", path = folder + "/model.safetensors";
  std::filesystem::create_directory(folder);
  const std::string header = R"({"a.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string length{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  std::ofstream(path, std::ios::binary) << length << header << std::string(8 + 4, '\1');
  CHECK(shardwright({"check", folder}).code == 1);
  CHECK_FALSE(contains(shardwright({"plan", folder}).err, "--in-place"));
  const Run run = shardwright({"repair", folder, "--yes"});
  CHECK(run.code == 0);
  CHECK(run.out.starts_with("repaired"));
  CHECK(contains(run.err, "verify '" + folder + "-repaired'"));
  CHECK(shardwright({"check", folder + "-repaired"}).code == 0);
}

TEST_CASE("a repair of a format that is only read is advised with a conversion") {
  Scratch scratch;
  const std::string broken =
      SHW_TEST_DATA "/torch-checkpointing-0.1/broken_placement_not_transposed/ckpt";
  CHECK(contains(shardwright({"plan", broken}).err, "--then convert:dcp"));
  CHECK(contains(shardwright({"check", broken}).out, "--then convert:dcp"));
  const Run refused = shardwright({"repair", broken, "--out", scratch / "a", "--yes"});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "--then convert:dcp"));
  CHECK(shardwright({"repair", broken, "--then", "convert:dcp", "--out", scratch / "b", "--yes"})
            .code == 0);
}

TEST_CASE(
    "convert: the way back finds renamed tensors, takes casts back, and counts what was left out") {
  Scratch scratch;
  const std::string source = SHW_SOURCE_DIR "/tests/core/maps/data/llama3/hf";
  const Json listed = parsed(shardwright({"ls", source, "--json"}).out)["tensors"];
  auto way_back = [&](const std::string& out, const std::vector<std::string>& options) {
    std::vector<std::string> words = {"convert", source,  "--round-trip", "--yes",
                                      "--json",  "--out", scratch / out};
    words.insert(words.end(), options.begin(), options.end());
    const Json answer = parsed(shardwright(words).out);
    CHECK(answer["way_back"]["differ"].empty());
    CHECK(answer["way_back"]["without"].empty());
    return answer["way_back"];
  };
  CHECK(way_back("names", {"--to", "safetensors", "--strip", "model."})["equal"] == listed.size());
  CHECK(way_back("items", {"--to", "torch-checkpointing"})["equal"] == listed.size());
  CHECK(way_back("wide", {"--to", "safetensors", "--dtype", "fp64"})["equal"] == listed.size());
  CHECK(contains(shardwright({"convert", source, "--to", "safetensors", "--dtype", "fp64", "--out",
                              scratch / "wider", "--yes"})
                     .out,
                 "nothing is lost"));
  const Json less = way_back("less", {"--to", "dcp", "--leave-out", "*norm*"});
  CHECK(less["left_out"].get<std::size_t>() + less["equal"].get<std::size_t>() == listed.size());
  CHECK(less["left_out"] != 0);
}

TEST_CASE("a repair that can mend nothing is an error in text and in JSON") {
  Scratch scratch;
  std::string out = repaired(scratch);
  Run json = shardwright({"repair", out, "--yes", "--json"});
  CHECK(json.code == 2);
  Json error = parsed(json.out)["error"];
  CHECK(contains(error["message"].get<std::string>(), kFilled));
  CHECK(error.contains("file"));
  CHECK(error.contains("offset"));
  Run text = shardwright({"repair", out, "--yes"});
  CHECK(text.code == 2);
  CHECK_FALSE(contains(text.out + text.err, "Nothing to repair"));
  CHECK_FALSE(contains(text.out, "repaired"));
}

TEST_CASE("what a repair leaves wrong is said first, and its exit code is 1") {
  Scratch scratch;
  std::string spec = spec_that_wants_more(scratch);
  Run text =
      shardwright({"repair", kLossy + "/ckpt", "--spec", spec, "--out", scratch / "text", "--yes"});
  CHECK(text.code == 1);
  CHECK(text.out.starts_with("still wrong"));
  CHECK(contains(text.out, "repaired in part"));
  Run json = shardwright(
      {"repair", kLossy + "/ckpt", "--spec", spec, "--out", scratch / "json", "--yes", "--json"});
  CHECK(json.code == 1);
  bool left = false;
  Json answer = parsed(json.out);
  for (const Json& finding : answer["remaining"])
    left = left || finding["rule"] != "filled-elements";
  CHECK(left);
}

TEST_CASE("an output whose folder is not there is named itself, not the checkpoint") {
  Scratch scratch;
  Run run =
      shardwright({"repair", kLossy + "/ckpt", "--out", scratch / "nodir/deep", "--yes", "--json"});
  CHECK(run.code == 4);
  CHECK(parsed(run.out)["error"]["file"] == scratch / "nodir");
  Run relative = shell("cd " + scratch / "" + " && \"$SHARDWRIGHT\" repair " + kLossy +
                       "/ckpt --out nodir/q --yes");
  CHECK(relative.code == 4);
  CHECK(contains(relative.err, "nodir: "));
  CHECK_FALSE(contains(relative.err, "ckpt/nodir"));
}

TEST_CASE("the device that makes elements is said, chosen by name, and never made up") {
  Scratch scratch;
  auto run = [&](const std::string& device, const std::string& out) {
    return shardwright({"repair", kLossy + "/ckpt", "--out", scratch / out, "--yes", "--json",
                        "--device", device});
  };
  Run cpu = run("cpu", "cpu");
  CHECK(cpu.code == 0);
  CHECK(parsed(cpu.out)["device"]["used"] == "cpu");
  CHECK(parsed(run("auto", "auto").out)["device"]["used"] == "cpu");
  CHECK(parsed(cpu.out)["transport"].is_null());
  CHECK(run("gpu", "wrong").code == 3);
  // No machine has a GPU with this index.
  Run missing = run("cuda:4095", "missing");
  CHECK(missing.code == 4);
  CHECK(contains(parsed(missing.out)["error"]["message"].get<std::string>(), "GPU"));
  CHECK_FALSE(std::filesystem::exists(scratch / "missing"));
}

TEST_CASE("a fill that is none is a usage error, one that is not there is named as it was typed") {
  const std::string kDemoStep = demo() + "/step_9000", kDemoSpec = demo() + "/spec.json";
  for (const char* verb : {"plan", "repair", "report"}) {
    CAPTURE(verb);
    Run none = shardwright({verb, kDemoStep, "--spec", kDemoSpec, "--fill", "bogus"});
    CHECK(none.code == 3);
    CHECK(contains(none.err, "zero, cast, or from:"));
    Run missing = shardwright({verb, kDemoStep, "--spec", kDemoSpec, "--fill", "from:no/such"});
    CHECK(missing.code == 4);
    CHECK(contains(missing.err, "no/such"));
    CHECK_FALSE(contains(missing.err, "step_9000/no/such"));
  }
  CHECK(shardwright({"check", kDemoStep, "--fill", "zero"}).code == 3);
  CHECK(shardwright({"plan", kDemoStep, "--plan", "p", "--fill", "zero"}).code == 3);
  CHECK(shardwright({"plan", kDemoStep, "--against", "no/such"}).code == 4);
}
