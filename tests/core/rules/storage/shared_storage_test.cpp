// A storage record copied over another one in a checkpoint by torch: found and corrected.
#include <atomic>
#include <filesystem>

#include "core/fixtures.h"
#include "core/formats/dcp/dcp_support.h"
#include "core/io/sink.h"
#include "core/repair/against_source.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;
namespace fs = std::filesystem;

namespace {

void write_metadata(const std::string& folder, const DcpMetadata& metadata) {
  MemorySink sink;
  REQUIRE(write_dcp_metadata(metadata, sink));
  fs::remove(folder + "/.metadata");
  std::string text(reinterpret_cast<const char*>(sink.bytes.data()), sink.bytes.size());
  shw::put(folder + "/.metadata", text);
}

std::shared_ptr<const Checkpoint> open_at(const std::string& folder) {
  auto checkpoint = open_checkpoint(folder);
  if (!checkpoint) FAIL(checkpoint.error().message);
  return *checkpoint;
}

CheckReport report_of(const Checkpoint& checkpoint, Depth depth = Depth::kHeaders) {
  CheckOptions options;
  options.depth = depth;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return std::move(*report);
}

const Finding* shared_in(const CheckReport& report) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == "shared-storage") return &finding;
  }
  return nullptr;
}

bool names(const Finding& finding, std::string_view fqn) {
  return std::find(finding.subjects.begin(), finding.subjects.end(), fqn) != finding.subjects.end();
}

struct Copied {
  std::string folder;
  DcpMetadata healthy;
};

// A copy of a fixture in which `from`'s record overwrites that of `to`.
struct SharingTile {
  std::size_t tensor, chunk;
};
void copy_record(const Copied& copied, SharingTile from, SharingTile to) {
  DcpMetadata broken = copied.healthy;
  broken.tensors[to.tensor].chunks[to.chunk].item =
      broken.tensors[from.tensor].chunks[from.chunk].item;
  write_metadata(copied.folder, broken);
}

// After the repair every record is the original one.
void expect_repaired(const Copied& copied, const Checkpoint& broken, const CheckReport& report,
                     const std::string& out) {
  auto plan = make_plan(broken, report, {});
  REQUIRE(plan.has_value());
  CHECK(plan->lossless);
  CHECK(plan->undecided.empty());
  // The plan is saved and read again as a user would do it.
  auto kept = plan_from_json(broken, plan_to_json(broken, *plan), "plan.json");
  if (!kept) FAIL(kept.error().message);
  auto repaired = apply_plan(broken, *kept, {out});
  if (!repaired) FAIL(repaired.error().message);
  auto verified = verified_against(out, broken);
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);
  auto result = open_at(out);
  for (const DcpTensor& tensor : copied.healthy.tensors) {
    auto id = result->find(tensor.fqn);
    REQUIRE(id.has_value());
    for (std::uint32_t i = 0; i < result->chunks(*id).size(); ++i) {
      auto item = result->item(result->chunks(*id)[i]);
      REQUIRE(item.has_value());
      CHECK(result->file(item->file).path == tensor.chunks[i].item.path);
      CHECK(static_cast<std::uint64_t>(item->offset) == tensor.chunks[i].item.offset);
    }
  }
}

Copied copy_of_fixture(const std::string& fixture, const std::string& folder) {
  fs::copy(fixture + "/ckpt", folder, fs::copy_options::recursive);
  return {folder, metadata_of(*open_at(folder))};
}

}  // namespace

TEST_CASE("two tiles of one tensor with one record are distinguished and pointed back") {
  int repaired = 0, tried = 0;
  for (const char* name : {"healthy_fsdp", "healthy_grid", "healthy_two_threads"}) {
    std::string fixture = fixture_cases(name).front();
    CAPTURE(fixture);
    TemporaryFolder folder;
    Copied copied = copy_of_fixture(fixture, folder / "ckpt");
    for (std::size_t t = 0; t < copied.healthy.tensors.size() && tried < 12; ++t) {
      const DcpTensor& tensor = copied.healthy.tensors[t];
      if (tensor.chunks.size() < 2) continue;
      CAPTURE(tensor.fqn);
      ++tried;
      copy_record(copied, {t, 0}, {t, 1});
      auto broken = open_at(copied.folder);
      CheckReport report = report_of(*broken);
      CHECK(report.verdict == Verdict::kFindings);
      const Finding* finding = shared_in(report);
      REQUIRE(finding != nullptr);
      CHECK(finding->severity == Severity::kError);
      CHECK(names(*finding, tensor.fqn));
      if (!finding->remedy) continue;
      CHECK(finding->remedy->lossless);
      expect_repaired(copied, *broken, report, folder / ("out" + std::to_string(tried)));
      ++repaired;
    }
  }
  CHECK(tried > 3);
  CHECK(repaired > 0);
}

TEST_CASE("a record that was copied over another tensor's is an error that names both") {
  std::string fixture = fixture_cases("healthy_fsdp").front();
  TemporaryFolder folder;
  Copied copied = copy_of_fixture(fixture, folder / "ckpt");
  int repaired = 0, tried = 0;
  for (std::size_t t = 0; t + 1 < copied.healthy.tensors.size() && tried < 6; ++t, ++tried) {
    const DcpTensor &from = copied.healthy.tensors[t], &to = copied.healthy.tensors[t + 1];
    CAPTURE(from.fqn);
    CAPTURE(to.fqn);
    copy_record(copied, {t, 0}, {t + 1, 0});
    auto broken = open_at(copied.folder);
    CheckReport report = report_of(*broken);
    const Finding* finding = shared_in(report);
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    CHECK(names(*finding, from.fqn));
    CHECK(names(*finding, to.fqn));
    if (!finding->remedy) continue;
    expect_repaired(copied, *broken, report, folder / ("out" + std::to_string(tried)));
    ++repaired;
  }
  CHECK(repaired > 0);
}

TEST_CASE("at metadata depth a shared record is an error without a remedy") {
  std::string fixture = fixture_cases("healthy_fsdp").front();
  TemporaryFolder folder;
  Copied copied = copy_of_fixture(fixture, folder / "ckpt");
  copy_record(copied, {0, 0}, {1, 0});
  CheckReport report = report_of(*open_at(copied.folder), Depth::kMetadata);
  const Finding* finding = shared_in(report);
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK_FALSE(finding->remedy.has_value());
  CHECK(finding->cause.find("--depth headers") != std::string::npos);
}

TEST_CASE("items that overlap by a part are an error and nothing is guessed") {
  std::string fixture = fixture_cases("healthy_fsdp").front();
  TemporaryFolder folder;
  Copied copied = copy_of_fixture(fixture, folder / "ckpt");
  DcpMetadata broken = copied.healthy;
  DcpItem& item = broken.tensors[0].chunks[0].item;
  item.offset += 64;
  write_metadata(copied.folder, broken);
  const CheckReport report = report_of(*open_at(copied.folder), Depth::kMetadata);
  const Finding* finding = shared_in(report);
  // For the last item of a file the record would end beyond the file, which is reported as
  // short-file.
  REQUIRE(finding != nullptr);
  CHECK_FALSE(finding->remedy.has_value());
}

TEST_CASE("a record of zero bytes is not a home for a tile even where no header is read") {
  std::string fixture = fixture_cases("healthy_fsdp").front();
  TemporaryFolder folder;
  Copied copied = copy_of_fixture(fixture, folder / "ckpt");
  DcpMetadata broken = copied.healthy;
  broken.tensors[0].chunks[0].item.length = 0;
  write_metadata(copied.folder, broken);
  const CheckReport report = report_of(*open_at(copied.folder), Depth::kMetadata);
  CHECK(report.verdict == Verdict::kFindings);
  CHECK(std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    return finding.rule == "storage-dangling" && names(finding, broken.tensors[0].fqn);
  }));
}

TEST_CASE(
    "one rank's file that is a link to another rank's is reported, unless it holds one number") {
  std::string fixture = fixture_cases("healthy_fsdp").front();
  for (bool hard : {true, false}) {
    CAPTURE(hard);
    TemporaryFolder folder;
    Copied copied = copy_of_fixture(fixture, folder / "ckpt");
    const fs::path one = fs::path(copied.folder) / "__1_0.distcp";
    const fs::path other = fs::path(copied.folder) / "__2_0.distcp";
    CHECK(shared_in(report_of(*open_at(copied.folder))) == nullptr);
    fs::remove(other);
    if (hard)
      fs::create_hard_link(one, other);
    else
      fs::create_symlink("__1_0.distcp", other);
    CheckReport deep = report_of(*open_at(copied.folder));
    const Finding* finding = shared_in(deep);
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kWarning);
    CHECK(finding->subjects == std::vector<std::string>{"__1_0.distcp", "__2_0.distcp"});
    // No file was opened, so equal files cannot be excluded.
    CheckReport shallow = report_of(*open_at(copied.folder), Depth::kMetadata);
    REQUIRE(shared_in(shallow) != nullptr);
    CHECK(shared_in(shallow)->severity == Severity::kInfo);
  }
}

TEST_CASE("linked files of nothing but large tiles are recognised by where these begin") {
  constexpr std::int64_t kTile = 2'200'000;  // of 8 bytes
  for (bool one_number : {true, false}) {
    CAPTURE(one_number);
    TemporaryFolder folder;
    MadeModel model;
    Numbers numbers(static_cast<std::size_t>(2 * kTile), 1);
    for (std::size_t i = 0; i < numbers.size() && !one_number; ++i)
      numbers[i] = static_cast<double>(i % 1000);
    model.add("w", Dtype::kFloat64, {2, kTile}, std::move(numbers));
    model.tensors[0].tiles = {{{0, 0}, {1, kTile}, 0}, {{1, 0}, {1, kTile}, 1}};
    made(folder / "ckpt", model);
    const fs::path second = fs::path(folder / "ckpt") / "__1_0.distcp";
    fs::remove(second);
    fs::create_hard_link(fs::path(folder / "ckpt") / "__0_0.distcp", second);
    CheckReport report = report_of(*open_at(folder / "ckpt"));
    const Finding* finding = shared_in(report);
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == (one_number ? Severity::kInfo : Severity::kWarning));
  }
}

TEST_CASE("files that hold the same ones are not read once for each other one") {
  constexpr std::int64_t kRanks = 64;
  TemporaryFolder folder;
  MadeModel model;
  for (const char* name : {"a", "b"}) {
    model.add(name, Dtype::kFloat32, {kRanks, 32}, Numbers(kRanks * 32, 1));
    for (std::int64_t rank = 0; rank < kRanks; ++rank)
      model.tensors.back().tiles.push_back({{rank, 0}, {1, 32}, static_cast<std::uint32_t>(rank)});
  }
  ContentWriter(folder / "ckpt").write(model);
  auto directory = open_directory(folder / "ckpt");
  REQUIRE(directory.has_value());
  std::atomic<int> reads{0};
  auto checkpoint = open_checkpoint(
      faulty_directory(*directory, [&](const std::string&, std::uint64_t, std::size_t) {
        ++reads;
        return std::nullopt;
      }));
  REQUIRE(checkpoint.has_value());
  reads = 0;
  CHECK(report_of(**checkpoint).verdict == Verdict::kClean);
  CHECK(reads < 8 * 2 * kRanks);
}

TEST_CASE("no healthy checkpoint shares a byte between two records") {
  int seen = 0;
  for (const std::string& fixture : fixture_cases("healthy_")) {
    CAPTURE(fixture);
    auto checkpoint = open_checkpoint(fixture + "/ckpt");
    REQUIRE(checkpoint.has_value());
    CHECK(shared_in(report_of(**checkpoint, Depth::kMetadata)) == nullptr);
    ++seen;
  }
  CHECK(seen > 5);
}
