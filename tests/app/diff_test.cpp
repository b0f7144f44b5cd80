// `diff`, run as a process.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;

namespace {

const std::string kData = SHW_TEST_DATA;
const std::string kMoe = kData + "/torch-2.14/healthy_moe_ep/ckpt";

void copy_folder(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

// Flips the last byte of a tensor's first tile.
void flip_a_byte(const std::string& folder, const std::string& fqn) {
  Run shown = shardwright({"show", folder, fqn, "--json"});
  auto chunk = parsed(shown.out)["chunks"][0];
  std::fstream file(folder + "/" + chunk["file"].get<std::string>(),
                    std::ios::in | std::ios::out | std::ios::binary);
  // Somewhere in the payload of a torch zip: it begins on a multiple of 64 after its header.
  std::string bytes(chunk["length"].get<std::size_t>(), '\0');
  file.seekg(chunk["offset"].get<std::int64_t>());
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::size_t record = bytes.find("data/0");
  REQUIRE(record != std::string::npos);
  // The payload begins at the first byte after the name and its padding ("FB", a length, Z's).
  std::size_t padding = bytes.find("FB", record);
  std::size_t at = bytes.find_first_not_of('Z', padding + 4) + 1;
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  file.seekp(chunk["offset"].get<std::int64_t>());
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

TEST_CASE("diff of a checkpoint and its copy is open by metadata and the same by its bytes") {
  Scratch scratch;
  copy_folder(kMoe, scratch / "copy");
  Run open = shardwright({"diff", kMoe, scratch / "copy", "--json"});
  CHECK(open.code == 2);
  auto answer = parsed(open.out);
  CHECK(answer["verdict"] == "undecided");
  CHECK(answer["tensors"].empty());
  CHECK(answer["unjudged"][0]["needs"] == "--data");
  Run same = shardwright({"diff", kMoe, scratch / "copy", "--data", "--json"});
  CHECK(same.code == 0);
  CHECK(parsed(same.out)["verdict"] == "same");
  CHECK(parsed(same.out)["same"] == 6);
  CHECK(parsed(same.out)["unjudged"].empty());
  Run text = shardwright({"diff", kMoe, scratch / "copy"});
  CHECK(contains(text.out, "undecided: names, shapes, dtypes and tiles of 6 tensors"));
  CHECK(contains(text.out, "--data"));
}

TEST_CASE("diff names the element that one byte changed, and text says it too") {
  Scratch scratch;
  copy_folder(kMoe, scratch / "copy");
  flip_a_byte(scratch / "copy", "model.norm.weight");
  Run run = shardwright({"diff", kMoe, scratch / "copy", "--data", "--json"});
  CHECK(run.code == 1);
  auto answer = parsed(run.out);
  CHECK(answer["verdict"] == "different");
  CHECK(answer["counts"]["values"] == 1);
  auto tensor = answer["tensors"]["model.norm.weight"];
  CHECK(tensor["kind"] == "values");
  CHECK(tensor["differing"] == 1);
  CHECK(tensor["max_ulp"].get<std::int64_t>() > 0);
  CHECK(tensor["first"]["a"] != tensor["first"]["b"]);
  Run text = shardwright({"diff", kMoe, scratch / "copy", "--data"});
  CHECK(text.code == 1);
  CHECK(contains(text.out, "model.norm.weight"));
  CHECK(contains(text.out, "1 of 10 elements differ"));
  CHECK(shardwright({"diff", kMoe, scratch / "copy"}).code == 2);
}

TEST_CASE("diff sees through another format and other tiles") {
  Scratch scratch;
  const std::string hf = scratch / "hf", cut = scratch / "cut";
  REQUIRE(shardwright({"convert", kMoe, "--to", "safetensors", "--out", hf, "--yes"}).code == 0);
  REQUIRE(shardwright({"reshard", kMoe, "--mesh", "dp=3", "--out", cut, "--yes"}).code == 0);
  for (const std::string& other : {hf, cut}) {
    Run run = shardwright({"diff", other, kMoe, "--data", "--json"});
    CHECK(run.code == 0);
    auto answer = parsed(run.out);
    CHECK(answer["verdict"] == "same");
    CHECK(answer["counts"]["retiled"].get<int>() > 0);
    for (const auto& tensor : answer["tensors"]) CHECK(tensor["kind"] == "retiled");
  }
}

TEST_CASE("diff with a checkpoint that lost a file is never the same") {
  Scratch scratch;
  copy_folder(kMoe, scratch / "copy");
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "copy")) {
    if (entry.path().extension() != ".distcp") continue;
    std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
    break;
  }
  for (const char* how : {"--json", "--data"}) {
    Run run = shardwright({"diff", kMoe, scratch / "copy", how, "--json"});
    CHECK(run.code == 2);
    auto answer = parsed(run.out);
    CHECK(answer["verdict"] == "undecided");
    CHECK(answer["counts"]["undecided"].get<int>() > 0);
    for (const auto& tensor : answer["tensors"]) CHECK(tensor["error"]["in"] == "b");
  }
}

TEST_CASE("what a repair filled is never called the same again") {
  Scratch scratch;
  const std::string fixture = kData + "/torch-2.14/healthy_moe_ep/ckpt";
  const std::string out = scratch / "out", copy = scratch / "copy";
  copy_folder(fixture, scratch / "lost");
  const std::string plan = scratch / "steps.json";
  std::ofstream(plan) << R"({"schema": "shardwright/2", "steps": [
    {"step": "mask", "tensors": ["model.norm.weight"], "boxes": [{"offsets": [2], "sizes": [3]}],
     "value": 0}], "target": {"format": "dcp"}})";
  REQUIRE(shardwright({"repair", fixture, "--plan", plan, "--out", out, "--yes"}).code <= 1);
  copy_folder(out, copy);
  Run run = shardwright({"diff", out, copy, "--data", "--json"});
  CHECK(run.code == 2);
  auto tensor = parsed(run.out)["tensors"]["model.norm.weight"];
  CHECK(tensor["kind"] == "undecided");
  CHECK(tensor["a"]["filled"] == 3);
  CHECK(shardwright({"diff", fixture, out, "--data"}).code == 1);
}

TEST_CASE("diff names a file from where the person is, whatever it is called") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "run");
  std::ofstream(scratch / "run/run.safetensors") << "no header at all";
  Run refused = shell("cd '" + scratch / "" + "' && \"$SHARDWRIGHT\" diff run run");
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "run/run.safetensors"));
}

TEST_CASE("diff that is not told two checkpoints says what is missing") {
  CHECK(shardwright({"diff", kMoe}).code == 3);
  Run none = shardwright({"diff", kMoe, "/no/such/folder", "--json"});
  CHECK(none.code == 4);
  CHECK(contains(none.out, "/no/such/folder"));
  CHECK(shardwright({"diff", kMoe, kMoe, "--dta"}).code == 3);
}

TEST_CASE("every healthy fixture is the same as its copy and as what it converts to") {
  std::size_t converted = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kData + "/torch-2.14")) {
    const std::string name = entry.path().filename().string();
    const std::string folder = entry.path().string() + "/ckpt";
    if (!name.starts_with("healthy_") || !std::filesystem::exists(folder)) continue;
    CAPTURE(name);
    Scratch scratch;
    copy_folder(folder, scratch / "copy");
    Run copied = shardwright({"diff", folder, scratch / "copy", "--data", "--memory", "1M"});
    CHECK(copied.code == 0);
    INFO(copied.out);
    Run made = shardwright({"convert", folder, "--to", "torch", "--out", scratch / "pt", "--yes"});
    if (made.code != 0) continue;
    Run run = shardwright({"diff", folder, scratch / "pt", "--data", "--json"});
    CHECK(run.code == 0);
    CHECK(parsed(run.out)["verdict"] == "same");
    ++converted;
  }
  CHECK(converted > 3);
}
