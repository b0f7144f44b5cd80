// Copied items may already be damaged: the copy has the same bytes and the same non-matching
// checksum. No repair may certify it as kept, and no verdict may call it proved.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/items/item_cursor.h"
#include "core/model/builder.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"
#include "core/verbs/verbs.h"

using namespace shw;

namespace {

void bend_byte(const std::string& file, std::uint64_t at) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(static_cast<std::streamoff>(at));
  const int byte = bytes.get();
  bytes.seekp(static_cast<std::streamoff>(at));
  bytes.put(static_cast<char>(byte ^ 4));
}

// "w", whose rows are repaired, and "v" with two tiles, which is copied. The recorded shape of "v"
// may have another number of rows than its tiles, and the item of its last tile more than two.
void write_two(const std::string& path, std::int64_t rows_of_v = 4, std::int64_t rows_of_last = 2) {
  MadeTensor w{"w", {6, 4}, {}}, v{"v", {rows_of_v, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i) {
    Values of_w, of_v;
    const std::int64_t rows = i == 1 ? rows_of_last : 2;
    for (std::int64_t k = 0; k < 12; ++k) of_w.push_back(100 * i + k);
    for (std::int64_t k = 0; k < 4 * rows; ++k) of_v.push_back(1000 + 100 * i + k);
    const auto writer = static_cast<std::uint32_t>(i);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, of_w, writer});
    v.chunks.push_back({{{2 * i, 0}, {2, 4}}, {rows, 4}, of_v, writer});
  }
  write_checkpoint(path, {w, v});
}

// Flips one bit of the last tile of a tensor.
void bend_tensor(const std::string& path, const std::string& fqn) {
  auto checkpoint = opened(path);
  ChunkId last{};
  for (ChunkId chunk : checkpoint->chunks(*checkpoint->find(fqn))) last = chunk;
  const ChunkStorage lies = ItemCursor(*checkpoint).storage(last).value();
  bend_byte(path + "/" + checkpoint->file(checkpoint->item(last)->file).path, lies.offset + 5);
}

Certificate certificate_of_copy(const std::string& folder) {
  auto certificate = certificate_from_json(contents(folder + "/" + kCertificateFile), folder);
  REQUIRE(certificate.has_value());
  return *certificate;
}

bool speaks_of(const std::vector<std::string>& reasons, const std::string& what) {
  return std::any_of(reasons.begin(), reasons.end(), [&](const std::string& reason) {
    return reason.find(what) != std::string::npos;
  });
}

void check_doubted(const std::string& out, const RepairResult& result) {
  CHECK_FALSE(result.lossless);
  REQUIRE(result.damage.size() == 1);
  CHECK(result.damage.begin()->first == "v");
  CHECK(result.damage.begin()->second.find("__1_0.distcp") != std::string::npos);
  const Certificate certificate = certificate_of_copy(out);
  CHECK_FALSE(certificate.lossless);
  for (const TensorCertificate& tensor : certificate.tensors) {
    const bool is_bent = tensor.fqn == "v";
    CHECK(tensor.damage.empty() != is_bent);
    CHECK(tensor.damaged == (is_bent ? 8 : 0));
    CHECK(tensor.kept == (is_bent ? 8 : 24));
    CHECK(tensor.lost == 0);
  }
  auto report = verify_repair(*opened(out));
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
  CHECK(speaks_of(report->reasons, "v: in __1_0.distcp the bytes of the record archive/data/0"));
  CHECK(report->damaged == 8);
}

}  // namespace

TEST_CASE("a tile that came along damaged is recognised by name, and is neither kept nor proved") {
  TemporaryFolder folder;
  for (bool in_place : {false, true}) {
    CAPTURE(in_place);
    const std::string path = folder / (in_place ? "here" : "ckpt");
    write_two(path);
    bend_tensor(path, "v");
    auto checkpoint = opened(path);
    auto result = apply_plan(*checkpoint, plan_of_rows(*checkpoint, !in_place),
                             {in_place ? "" : folder / "out", in_place});
    REQUIRE(result.has_value());
    check_doubted(in_place ? path : folder / "out", *result);
  }
}

TEST_CASE("what came along whole is proved, and its certificate speaks of no damage") {
  TemporaryFolder folder;
  write_two(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  auto result = apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {folder / "out"});
  REQUIRE(result.has_value());
  CHECK(result->lossless);
  CHECK(result->damage.empty());
  CHECK(contents(folder / "out/certificate.json").find("damage") == std::string::npos);
  CHECK(verify_repair(folder / "out")->outcome == VerifyReport::Outcome::kProved);
}

TEST_CASE("members of a team hear of damage that one of them has come by") {
  TemporaryFolder folder;
  write_two(folder / "ckpt");
  bend_tensor(folder / "ckpt", "v");
  const std::vector<Status> ended = run_on_threads(2, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(60), "one");
    SHW_TRY(auto checkpoint, open_checkpoint(folder / "ckpt"));
    ApplyOptions options{folder / "out"};
    options.team = &team;
    SHW_CHECK(apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), options));
    SHW_TRY(VerifyReport report, verify_repair(folder / "out", nullptr, &team));
    const bool is_told = report.outcome == VerifyReport::Outcome::kUndecided &&
                         speaks_of(report.reasons, "v: in __1_0.distcp");
    return is_told ? Status{} : fail(ErrorKind::kDamaged, "is proved");
  });
  for (const Status& one : ended) CHECK(one.has_value());
}

TEST_CASE("an entry that came along damaged is recognised by name, and is not proved") {
  TemporaryFolder folder;
  test::MadeModel model;
  model.add("w", Dtype::kFloat32, {6, 4}, test::distinct(24));
  model.tensors[0].tiles = {{{0, 0}, {3, 4}, 0}, {{3, 0}, {3, 4}, 1}};
  model.entries = {{"lr", test::pickled_real(.5), 1}};
  auto checkpoint = test::made(folder / "ckpt", model);
  const ItemPlace item = *checkpoint->objects()[0].item;
  const std::string file = folder / "ckpt/__1_0.distcp";
  const std::string bytes = contents(file);
  const auto at = bytes.find("archive/data.pkl", static_cast<std::size_t>(item.offset));
  REQUIRE(at != std::string::npos);
  bend_byte(file, at + 16 + 5);
  checkpoint = opened(folder / "ckpt");
  auto result = apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {folder / "out"});
  REQUIRE(result.has_value());
  CHECK_FALSE(result->lossless);
  REQUIRE(result->damage.contains("lr"));
  auto report = verify_repair(folder / "out");
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
  CHECK(speaks_of(report->reasons, "lr: in __1_0.distcp the bytes of the record archive/data.pkl"));
}

TEST_CASE("an element of two damaged tiles is damaged once, and one that is lost is lost") {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.add_tensor("w", Dtype::kFloat32, Extents{8});
  FileId file = builder.file("__0_0.distcp");
  builder.add_chunk(Extents{0}, Extents{4}, {file, 0, 64});
  builder.add_chunk(Extents{2}, Extents{4}, {file, 64, 64});
  builder.add_chunk(Extents{6}, Extents{2}, {file, 128, 64});
  auto result = builder.finish();
  ChecksumMismatches doubts;
  doubts.add(ChunkId{0}, "the first");
  doubts.add(ChunkId{1}, "the second");
  TensorCertificate entry;
  entry.lost_boxes = {{{5}, {2}}};
  entry.lost = 2;
  record_mismatches(*result, TensorId{0}, doubts, entry);
  CHECK(entry.damaged == 5);
  CHECK(entry.damage == "the first (and so in 1 more chunk)");
}

TEST_CASE("a tile that came along with the item of another tile was not kept") {
  TemporaryFolder folder;
  write_two(folder / "ckpt", 4, 3);
  auto checkpoint = opened(folder / "ckpt");
  auto result = apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {folder / "out"});
  REQUIRE(result.has_value());
  CHECK_FALSE(result->lossless);
  const Certificate certificate = certificate_of_copy(folder / "out");
  CHECK_FALSE(certificate.lossless);
  for (const TensorCertificate& tensor : certificate.tensors) {
    CHECK(tensor.damaged == (tensor.fqn == "v" ? 8 : 0));
    CHECK(tensor.kept == (tensor.fqn == "v" ? 8 : 24));
  }
  auto report = verify_repair(folder / "out");
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
  CHECK(speaks_of(report->reasons, "the item is a tensor [3, 4] of float32 and not the chunk"));
}

TEST_CASE("tiles whose records name one item were not kept, whichever of them it is") {
  TemporaryFolder folder;
  MadeTensor w{"w", {6, 4}, {}}, v{"v", {4, 4}, {}};
  const Values rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto writer = static_cast<std::uint32_t>(i);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, rows, writer});
    v.chunks.push_back({{{2 * i, 0}, {2, 4}}, {2, 4}, {9, 8, 7, 6, 5, 4, 3, 2}, 0, i == 1});
  }
  for (bool in_place : {false, true}) {
    const std::string path = folder / (in_place ? "here" : "ckpt");
    write_checkpoint(path, {w, v});
    auto checkpoint = opened(path);
    // Not a tied tensor: these are two tiles of one tensor.
    auto found = check(*checkpoint, CheckOptions{});
    REQUIRE(found.has_value());
    REQUIRE(found->findings.size() == 1);
    CHECK(found->findings[0].rule == "shared-storage");
    CHECK(found->findings[0].severity == Severity::kError);
    auto result = apply_plan(*checkpoint, plan_of_rows(*checkpoint, !in_place),
                             {in_place ? "" : folder / "out", in_place});
    REQUIRE(result.has_value());
    CHECK_FALSE(result->lossless);
    const std::string out = in_place ? path : folder / "out";
    for (const TensorCertificate& tensor : certificate_of_copy(out).tensors) {
      CHECK(tensor.damaged == (tensor.fqn == "v" ? 16 : 0));
      CHECK(tensor.kept == (tensor.fqn == "v" ? 0 : 24));
    }
    auto report = verify_repair(out);
    REQUIRE(report.has_value());
    CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
    CHECK(speaks_of(report->reasons,
                    "v: __0_0.distcp: the bytes of its chunk [0:2, 0:4] are those of v [2:4, 0:4] "
                    "as well (and so in 1 more chunk)"));
  }
}

TEST_CASE("of more records of one item than are read no tile was kept") {
  TemporaryFolder folder;
  MadeTensor w{"w", {6, 4}, {}}, v{"v", {5000}, {}};
  const Values rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (std::int64_t i = 0; i < 2; ++i)
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, rows, static_cast<std::uint32_t>(i)});
  for (std::int64_t i = 0; i < 5000; ++i) v.chunks.push_back({{{i}, {1}}, {1}, {9}, 0, i != 0});
  write_checkpoint(folder / "ckpt", {w, v});
  auto checkpoint = opened(folder / "ckpt");
  auto result = apply_plan(*checkpoint, plan_of_rows(*checkpoint, false), {folder / "out"});
  REQUIRE(result.has_value());
  for (const TensorCertificate& tensor : certificate_of_copy(folder / "out").tensors)
    CHECK(tensor.kept == 0);
  auto report = verify_repair(folder / "out");
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
}

TEST_CASE("a tile that came along and reaches beyond its tensor leaves the proof undecided") {
  TemporaryFolder folder;
  write_two(folder / "ckpt", 3);
  auto checkpoint = opened(folder / "ckpt");
  auto result = apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {folder / "out"});
  REQUIRE(result.has_value());
  auto report = verify_repair(folder / "out");
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
  CHECK(speaks_of(report->reasons, "v: one of its chunks reaches beyond the tensor"));
}
