// Every rank has its own metadata and loads its own bytes: all ranks are checked.
#include <filesystem>
#include <fstream>

#include "core/rules/make_rank_local.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;
namespace fs = std::filesystem;

namespace {

// "b" with the given numbers of elements.
std::string rank_local(const std::string& folder, const std::vector<std::int64_t>& elements) {
  std::vector<MadeModel> models(elements.size());
  for (std::size_t rank = 0; rank < elements.size(); ++rank)
    models[rank].add("b", Dtype::kFloat32, {elements[rank]},
                     distinct(static_cast<std::size_t>(elements[rank])));
  return rank_local(folder, models);
}

// "b" is equal on both, and one more tensor has the rank's number in it.
std::string with_own(const std::string& folder, const std::string& fqn, Dtype dtype,
                     std::int64_t length) {
  std::vector<MadeModel> models(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    models[rank].add("b", Dtype::kFloat32, {40}, distinct(40));
    models[rank].add(fqn, dtype, {length},
                     Numbers(static_cast<std::size_t>(length), static_cast<double>(rank + 1)));
  }
  return rank_local(folder, models);
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

TEST_CASE("a rank's own copy of a tensor that is damaged or cut off is reported") {
  TemporaryFolder scratch;
  CHECK(warned_of(rank_local(scratch / "whole", {40, 40, 40})).empty());
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    const std::string number = std::to_string(rank), file = "/__" + number + "_0.distcp";
    // A byte of the pickle (which begins at 64), which changes no element.
    const std::string bent = rank_local(scratch / ("bent" + number), {40, 40, 40});
    flip_byte(bent + file, 66);
    CHECK_FALSE(warned_of(bent).empty());
    const std::string cut = rank_local(scratch / ("cut" + number), {40, 40, 40});
    fs::resize_file(cut + file, fs::file_size(cut + file) - 1);
    CHECK(is_among(warned_of(cut), "short-file: " + file.substr(1)));
  }
}

TEST_CASE("ranks that say different things of one tensor are reported") {
  TemporaryFolder scratch;
  using Counts = std::vector<std::int64_t>;
  for (const Counts& counts : {Counts{40, 41}, Counts{40, 39}}) {
    const auto said = warned_of(rank_local(scratch / std::to_string(counts[1]), counts));
    CHECK(is_among(said, "bad-record: b"));
    // These are not tiles of one tensor, which would overlap.
    CHECK_FALSE(is_among(said, "chunk-overlap: b"));
    CHECK_FALSE(is_among(said, "chunk-out-of-bounds: b"));
  }
}

TEST_CASE("the state of a rank's generator is its own and what should be alike is not") {
  TemporaryFolder scratch;
  auto said_of = [&](const std::string& fqn, Dtype dtype, std::int64_t length) {
    return warned_of(with_own(scratch / (fqn + std::string(name(dtype))), fqn, dtype, length));
  };
  CHECK(said_of("torch_state", Dtype::kUint8, 5056).empty());
  CHECK(said_of("rng.cuda", Dtype::kUint8, 16).empty());
  CHECK(said_of("random.numpy", Dtype::kUint32, 624).empty());
  CHECK(said_of("dataloader.position", Dtype::kInt64, 1).empty());
  CHECK(said_of("w", Dtype::kFloat32, 16) == std::vector<std::string>{"replica-diverge: w"});
  CHECK(said_of("w", Dtype::kUint8, 16) == std::vector<std::string>{"replica-diverge: w"});
  CHECK_FALSE(said_of("rng_bias", Dtype::kFloat32, 16).empty());
  CHECK_FALSE(said_of("dataloader.table", Dtype::kInt64, 40).empty());
}

TEST_CASE("an entry of any rank that is not a tensor and is damaged or cut off is reported") {
  TemporaryFolder scratch;
  auto saved = [&](const std::string& name) {
    std::vector<MadeModel> models(2);
    for (MadeModel& model : models) {
      model.add("b", Dtype::kFloat32, {4}, distinct(4));
      model.entries = {{"lr", pickled_real(.5)}};
    }
    return rank_local(scratch / name, models);
  };
  CHECK(warned_of(saved("whole")).empty());
  for (const char* number : {"0", "1"}) {
    CAPTURE(number);
    const std::string file = std::string("/__") + number + "_0.distcp";
    const std::string bent = saved(std::string("bent") + number);
    flip_byte(bent + file, 50);  // in the pickle of the entry, which comes first
    CHECK(is_among(warned_of(bent), "bad-record: lr"));
    const std::string cut = saved(std::string("cut") + number);
    fs::resize_file(cut + file, 40);
    CHECK(is_among(warned_of(cut), "short-file: " + file.substr(1)));
    const std::string gone = saved(std::string("gone") + number);
    fs::remove(gone + file);
    CHECK(is_among(warned_of(gone), "missing-file: " + file.substr(1)));
  }
}

TEST_CASE("entries of which each rank has its own are reported and are not damage") {
  TemporaryFolder scratch;
  auto report_of = [&](const std::string& name, bool differing, Depth depth) {
    std::vector<MadeModel> models(3);
    for (std::size_t rank = 0; rank < models.size(); ++rank) {
      models[rank].add("b", Dtype::kFloat32, {4}, distinct(4));
      models[rank].entries = {{"lr", pickled_real(.5)},
                              {"seed", pickled_real(differing ? static_cast<double>(rank) : 7)}};
    }
    auto opened = open_checkpoint(rank_local(scratch / name, models));
    REQUIRE(opened.has_value());
    auto report = check(**opened, CheckOptions{depth, nullptr, std::nullopt});
    REQUIRE(report.has_value());
    CHECK(report->verdict == Verdict::kClean);
    return std::move(*report);
  };
  auto own_in = [](const CheckReport& report) {
    std::vector<std::string> subjects;
    for (const Finding& finding : report.findings) {
      if (finding.rule != "own-entries") continue;
      CHECK(finding.severity == Severity::kInfo);
      subjects = finding.subjects;
    }
    return subjects;
  };
  auto is_open = [](const CheckReport& report, const std::string& what) {
    return std::any_of(report.unjudged.begin(), report.unjudged.end(),
                       [&](const Unjudged& one) { return one.what == what; });
  };
  const std::string objects = "whether 2 objects that several ranks saved are equal";
  const std::string copies = "whether copies of 1 tensor that several ranks saved are equal";
  for (bool differing : {false, true}) {
    CAPTURE(differing);
    const std::vector<std::string> own =
        differing ? std::vector<std::string>{"seed"} : std::vector<std::string>{};
    const std::string name = differing ? "own" : "alike";
    const CheckReport metadata = report_of(name + "0", differing, Depth::kMetadata);
    CHECK(own_in(metadata).empty());
    CHECK(is_open(metadata, objects));
    const CheckReport headers = report_of(name + "1", differing, Depth::kHeaders);
    CHECK(own_in(headers) == own);
    CHECK_FALSE(is_open(headers, objects));
    CHECK(is_open(headers, copies));
    const CheckReport data = report_of(name + "2", differing, Depth::kData);
    CHECK(own_in(data) == own);
    CHECK_FALSE(is_open(data, copies));
  }
}
