// Every rank has metadata of its own and gets its own bytes back: all of them are looked at.
#include <filesystem>
#include <fstream>

#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;
namespace fs = std::filesystem;

namespace {

// "b" as each of the ranks saved it for itself, of as many elements.
std::string rank_local(const std::string& folder, const std::vector<std::int64_t>& elements) {
  fs::create_directories(folder);
  for (std::uint32_t rank = 0; rank < elements.size(); ++rank) {
    MadeModel model;
    model.add("b", Dtype::kFloat32, {elements[rank]},
              distinct(static_cast<std::size_t>(elements[rank])));
    model.tensors[0].tiles = {{{0}, {elements[rank]}, rank}};
    const std::string number = std::to_string(rank), own = folder + "_of_" + number;
    made(own, model);
    fs::rename(own + "/.metadata", folder + "/__" + number + ".metadata");
    fs::rename(own + "/__" + number + "_0.distcp", folder + "/__" + number + "_0.distcp");
  }
  return folder;
}

void flip_byte(const std::string& path, std::int64_t at) {
  std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(at);
  const int byte = stream.get();
  REQUIRE(byte >= 0);
  stream.seekp(at);
  stream.put(static_cast<char>(byte ^ 0xFF));
}

// "rule: first subject" of each finding above info.
std::vector<std::string> warned_of(const std::string& folder) {
  auto opened = open_checkpoint(folder);
  REQUIRE(opened.has_value());
  auto report = check(**opened, CheckOptions{Depth::kData, nullptr, std::nullopt});
  REQUIRE(report.has_value());
  std::vector<std::string> said;
  for (const Finding& finding : report->findings) {
    if (finding.severity == Severity::kInfo) continue;
    REQUIRE_FALSE(finding.subjects.empty());
    said.push_back(finding.rule + ": " + finding.subjects.front());
  }
  return said;
}

bool is_among(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

TEST_CASE("a rank's own copy of a tensor that is damaged or cut off is told") {
  TemporaryFolder scratch;
  CHECK(warned_of(rank_local(scratch / "whole", {40, 40, 40})).empty());
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    const std::string number = std::to_string(rank), file = "/__" + number + "_0.distcp";
    // In the pickle, which begins at 64, and no element of it is another.
    const std::string bent = rank_local(scratch / ("bent" + number), {40, 40, 40});
    flip_byte(bent + file, 66);
    CHECK_FALSE(warned_of(bent).empty());
    const std::string cut = rank_local(scratch / ("cut" + number), {40, 40, 40});
    fs::resize_file(cut + file, fs::file_size(cut + file) - 1);
    CHECK(is_among(warned_of(cut), "short-file: " + file.substr(1)));
  }
}

TEST_CASE("ranks that say different things of one tensor are told") {
  TemporaryFolder scratch;
  CHECK(is_among(warned_of(rank_local(scratch / "longer", {40, 41})), "bad-record: b"));
  CHECK(is_among(warned_of(rank_local(scratch / "shorter", {40, 39})), "bad-record: b"));
}
