#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/hash.h"
#include "core/facts/storage/integrity.h"
#include "core/formats/open.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

// A small checkpoint of four ranks with a list of hashes as Megatron-LM writes it.
struct ListedCheckpoint {
  TemporaryFolder folder;
  std::vector<std::pair<std::string, std::string>> hashes;

  ListedCheckpoint() {
    std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt",
                          folder.path(), std::filesystem::copy_options::recursive);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      RunningSha256 hash;
      std::string bytes = contents(entry.path().string());
      hash.add(std::as_bytes(std::span(bytes)));
      hashes.emplace_back(entry.path().filename().string(), hash.text());
    }
    std::sort(hashes.begin(), hashes.end());
  }
  void write_list() const {
    std::string text = "{\"algorithm\": \"sha256\", \"files\": {";
    for (std::size_t i = 0; i < hashes.size(); ++i)
      text += (i == 0 ? "\"" : ", \"") + hashes[i].first + "\": \"" + hashes[i].second + "\"";
    put(folder / kIntegrityFile, text + "}}");
  }
  CheckReport report(Depth depth) const {
    auto checkpoint = open_checkpoint(folder.path());
    REQUIRE(checkpoint.has_value());
    CheckOptions options;
    options.depth = depth;
    auto report = check(**checkpoint, options);
    REQUIRE(report.has_value());
    return std::move(*report);
  }
};

std::vector<std::string> subjects_in(const CheckReport& report, std::string_view rule) {
  std::vector<std::string> subjects;
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule)
      subjects.insert(subjects.end(), finding.subjects.begin(), finding.subjects.end());
  }
  return subjects;
}

bool leaves_open(const CheckReport& report, std::string_view needs, std::string_view what) {
  return std::any_of(report.unjudged.begin(), report.unjudged.end(), [&](const Unjudged& one) {
    return one.needs.find(needs) != std::string::npos && one.what.find(what) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a list of hashes that agrees finds nothing, and is not held to be checked before") {
  ListedCheckpoint checkpoint;
  checkpoint.write_list();
  CheckReport deep = checkpoint.report(Depth::kData);
  CHECK(deep.verdict == Verdict::kClean);
  CHECK_FALSE(leaves_open(deep, "", kIntegrityFile));
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders}) {
    CheckReport shallow = checkpoint.report(depth);
    CHECK(subjects_in(shallow, "file-hash").empty());
    CHECK(leaves_open(shallow, "--data", "5 files are those that integrity.json"));
  }
}

TEST_CASE("files with another hash and files that are not there are named") {
  ListedCheckpoint checkpoint;
  checkpoint.hashes.emplace_back("common.pt", std::string(64, '0'));
  checkpoint.write_list();
  std::string path = checkpoint.folder / "__1_0.distcp", bytes = contents(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  put(path, bytes);
  CheckReport deep = checkpoint.report(Depth::kData);
  CHECK(deep.verdict == Verdict::kFindings);
  CHECK(subjects_in(deep, "file-hash") == std::vector<std::string>{"__1_0.distcp", "common.pt"});
  // A missing file is noticed without reading a byte.
  CHECK(subjects_in(checkpoint.report(Depth::kMetadata), "file-hash") ==
        std::vector<std::string>{"common.pt"});
}

TEST_CASE("names that leave the checkpoint are found and never opened") {
  ListedCheckpoint checkpoint;
  TemporaryFolder outside;
  put(outside / "secret", "");
  const std::string empty = RunningSha256().text();
  for (std::string name : {outside / "secret", std::string("../secret"), std::string("a/../../b")})
    checkpoint.hashes.emplace_back(name, empty);
  checkpoint.write_list();
  for (Depth depth : {Depth::kMetadata, Depth::kData}) {
    CheckReport report = checkpoint.report(depth);
    CHECK(subjects_in(report, "path-escape").size() == 3);
    CHECK(subjects_in(report, "file-hash").empty());
  }
}

TEST_CASE("a list that cannot be used, and files that it does not name, are left open and told") {
  ListedCheckpoint checkpoint;
  for (const char* text :
       {"", "{", "[]", "{\"files\": {}}", "{\"algorithm\": \"md5\", \"files\": {}}",
        "{\"algorithm\": \"sha256\", \"files\": {\"__0_0.distcp\": \"12\"}}",
        "{\"algorithm\": \"sha256\", \"files\": {\"__0_0.distcp\": 12}}",
        "{\"algorithm\": \"sha256\", \"files\": 7}"}) {
    CAPTURE(text);
    put(checkpoint.folder / kIntegrityFile, text);
    CheckReport report = checkpoint.report(Depth::kData);
    CHECK(subjects_in(report, "file-hash").empty());
    CHECK(leaves_open(report, "a readable list", kIntegrityFile));
  }
  std::erase_if(checkpoint.hashes, [](const auto& one) { return one.first == "__2_0.distcp"; });
  checkpoint.write_list();
  CheckReport report = checkpoint.report(Depth::kData);
  CHECK(leaves_open(report, "a hash", "__2_0.distcp"));
  CHECK(report.verdict == Verdict::kClean);
}
