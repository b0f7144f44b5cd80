// Plans, certificates and results edited by hand: none is mistaken for a genuine one, and an open
// question is called undecided.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/formats/common/packed_text.h"
#include "core/repair/against_source.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/stored_plan.h"
#include "core/repair/proof/agreement.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"
#include "core/verbs/verbs.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

using Outcome = VerifyReport::Outcome;

// "w" of [6, 4] in two tiles of rows.
MadeTensor two_tiles() {
  MadeTensor w{"w", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i) {
    Values values;
    for (std::int64_t k = 0; k < 12; ++k) values.push_back(12 * i + k);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
  }
  return w;
}

void write_rows(const std::string& path, const std::string& entry = {}) {
  write_checkpoint(path, {two_tiles()}, entry);
}

// The last row of "w" is lost.
Plan plan_of_losses(const Checkpoint& checkpoint) {
  Finding finding;
  finding.rule = "planted";
  finding.subjects = {"w"};
  finding.diagnoses = {
      PartlyLost{TensorId{0},
                 {6, 4},
                 {{ChunkId{0}, {{0, 0}, {3, 4}}, {0, 0}}, {ChunkId{1}, {{0, 0}, {2, 4}}, {3, 0}}},
                 ""}};
  CheckReport report;
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  REQUIRE(plan->tensors[0].lost_elements == 4);
  return std::move(*plan);
}

std::string repaired(const TemporaryFolder& folder, const Checkpoint& checkpoint,
                     const Plan& plan) {
  auto result = apply_plan(checkpoint, plan, {folder / "out"});
  if (!result) FAIL(result.error().message);
  return result->output;
}

Certificate certificate_in(const std::string& folder) {
  auto read = certificate_from_json(contents(folder + "/certificate.json"), "certificate.json");
  if (!read) FAIL(read.error().message);
  return std::move(*read);
}

bool says(const std::vector<std::string>& reasons, const std::string& what) {
  for (const std::string& reason : reasons) {
    if (reason.find(what) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("what is filled from another tensor of the checkpoint is never filled from its hole") {
  TemporaryFolder folder;
  // The last row of "half" was never saved.
  MadeTensor half{"half", {6, 4}, {{{{0, 0}, {5, 4}}, {5, 4}, Values(20, 7), 0}}};
  write_checkpoint(folder / "ckpt", {two_tiles(), half});
  auto checkpoint = opened(folder / "ckpt");
  Plan honest = plan_of_losses(*checkpoint), forged = honest;
  forged.tensors[0].fill = Fill::kCast;
  forged.tensors[0].fill_from = "half";
  auto refused = apply_plan(*checkpoint, forged, {folder / "filled"});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("missing elements") != std::string::npos);

  // The last row is zero, as "half" never saved it, so nothing proves it.
  std::string out = repaired(folder, *checkpoint, honest);
  auto told = verified_against(out, *checkpoint);
  REQUIRE(told.has_value());
  CHECK_FALSE(says(told->reasons, "w: "));
  auto text = plan_to_json(*checkpoint, forged);
  Certificate lie = certificate_in(out);
  lie.plan = text;
  for (TensorCertificate& entry : lie.tensors) {
    if (entry.fqn == "w") entry.fill = "cast", entry.fill_from = "half";
  }
  put(out + "/certificate.json", certificate_to_json(lie));
  told = verified_against(out, *checkpoint);
  REQUIRE(told.has_value());
  CHECK(says(told->reasons, "w: "));
}

TEST_CASE("a plan that loses nothing and takes elements twice is refused") {
  TemporaryFolder folder;
  write_rows(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  std::string text = plan_to_json(*checkpoint, plan_of_rows(*checkpoint, true));
  REQUIRE(plan_from_json(*checkpoint, text, "plan").has_value());
  auto json = nlohmann::json::parse(text);
  auto& tensor = json["target"]["tensors"][0];
  REQUIRE(tensor["lost_elements"] == 0);
  std::size_t moved = 0;
  for (auto& chunk : tensor["chunks"]) {
    for (auto& piece : chunk["pieces"]) {
      moved += piece["chunk"] == 1;
      piece["chunk"] = 0;
    }
  }
  REQUIRE(moved > 0);
  CHECK_FALSE(plan_from_json(*checkpoint, json.dump(), "plan").has_value());
}

namespace {

// The first four rows of "w" in tiles of three.
Plan plan_of_cut(const Checkpoint& checkpoint) {
  Finding finding;
  finding.rule = "planted";
  finding.subjects = {"w"};
  finding.diagnoses = {
      PartlyLost{TensorId{0},
                 {4, 4},
                 {{ChunkId{0}, {{0, 0}, {3, 4}}, {0, 0}}, {ChunkId{1}, {{0, 0}, {1, 4}}, {3, 0}}},
                 ""}};
  CheckReport report;
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  REQUIRE(plan->tensors[0].lost_elements == 0);
  return std::move(*plan);
}

std::string error_of_plan(const Checkpoint& checkpoint, const std::string& text) {
  auto read = plan_from_json(checkpoint, text, "plan");
  return read ? "" : read.error().message;
}

}  // namespace

TEST_CASE("padding is cut off by a plan that comes back, and by none that takes an element twice") {
  TemporaryFolder folder;
  MadeTensor w = two_tiles();
  for (std::size_t k = 4; k < 12; ++k) w.chunks[1].values[k] = 9;
  write_checkpoint(folder / "ckpt", {w});
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of_cut(*checkpoint);
  std::string text = plan_to_json(*checkpoint, plan);
  CHECK(error_of_plan(*checkpoint, text).empty());
  std::string out = repaired(folder, *checkpoint, plan);
  CHECK(verified_against(out, *checkpoint)->outcome == Outcome::kProved);
  // The omitted padding is stated, and a wrong number of elements is detected.
  Certificate certificate = certificate_in(out);
  CHECK(certificate.lossless);
  CHECK(certificate.tensors[0].kept == 16);
  CHECK(certificate.tensors[0].padding == 8);
  certificate.tensors[0].padding = 4;
  put(out + "/certificate.json", certificate_to_json(certificate));
  auto told = verified_against(out, *checkpoint);
  REQUIRE(told.has_value());
  CHECK(told->outcome == Outcome::kBroken);
  CHECK(says(told->reasons, "padding"));
  auto json = nlohmann::json::parse(text);
  for (auto& chunk : json["target"]["tensors"][0]["chunks"]) {
    for (auto& piece : chunk["pieces"]) piece["chunk"] = 0;
  }
  CHECK_FALSE(error_of_plan(*checkpoint, json.dump()).empty());
}

TEST_CASE("a plan that cuts off rows that are not padding does not lose nothing") {
  TemporaryFolder folder;
  write_rows(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  std::string text = plan_to_json(*checkpoint, plan_of_cut(*checkpoint));
  CHECK(error_of_plan(*checkpoint, text).find("not padding") != std::string::npos);
  // Rows from the middle are removed, and the last ones are moved up.
  auto json = nlohmann::json::parse(text);
  std::size_t moved = 0;
  for (auto& chunk : json["target"]["tensors"][0]["chunks"]) {
    for (auto& piece : chunk["pieces"]) {
      if (piece["chunk"] != 1) continue;
      piece["offsets"][0] = 2;
      ++moved;
    }
  }
  REQUIRE(moved > 0);
  CHECK(error_of_plan(*checkpoint, json.dump()).find("other than the last ones") !=
        std::string::npos);
}

TEST_CASE("entries that a record gives another's value are not hidden by the certificate") {
  Certificate certificate;
  certificate.lossless = false;
  certificate.entries = {{"step", "other", "item"}};
  FilledRecord record;
  record.entries = {{"step", "other"}};
  std::vector<std::string> broken;
  compare_loss_record(certificate, "lost.json", record, true, broken);
  CHECK(broken.empty());
  certificate.entries.clear();
  compare_loss_record(certificate, "lost.json", record, true, broken);
  CHECK(broken.size() == 1);
  certificate.entries = {{"step", "other", "item"}};
  certificate.lossless = true;
  broken.clear();
  compare_loss_record(certificate, "lost.json", record, true, broken);
  CHECK(broken.size() == 1);
}

TEST_CASE("a packed plan is one text, and no longer than plans of its size are") {
  std::string bomb = packed_text(std::string(64 << 20, ' '));
  CHECK_FALSE(decode_stored_plan(bomb).has_value());
  std::string text = "a plan";
  while (packed_text(text).back() == '=') text += 'x';
  REQUIRE(unpacked_text(packed_text(text), 1000).value() == text);
  // A skippable frame after the data, and the same data in a second frame.
  CHECK_FALSE(unpacked_text(packed_text(text) + "UCpNGAQAAAAAAAAA", 1000).has_value());
  CHECK_FALSE(unpacked_text(packed_text(text) + packed_text(text), 1000).has_value());
}

TEST_CASE("nothing is compared with itself") {
  TemporaryFolder folder;
  write_rows(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  std::string out = repaired(folder, *checkpoint, plan_of_rows(*checkpoint, true));
  fs::create_directory_symlink(out, folder / "link");
  for (const std::string& same : {out, out + "/.", folder / "link"}) {
    auto report = verbs::verify(out, nullptr, same);
    REQUIRE_FALSE(report.has_value());
    CHECK(report.error().kind == ErrorKind::kUsage);
  }
  REQUIRE(verbs::verify(out, nullptr, folder / "ckpt").has_value());
}

TEST_CASE("a result next to a source that changed since is told so") {
  TemporaryFolder folder;
  write_rows(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  std::string out = repaired(folder, *checkpoint, plan_of_rows(*checkpoint, true));
  std::string data = contents(folder / "ckpt/__1_0.distcp");
  auto header = read_item_header(*checkpoint, ChunkId{1});
  REQUIRE(header.has_value());
  data[header->payload_offset] = static_cast<char>(data[header->payload_offset] ^ 1);
  put(folder / "ckpt/__1_0.distcp", data);
  auto report = verified_against(out, *opened(folder / "ckpt"));
  REQUIRE(report.has_value());
  CHECK(report->outcome == Outcome::kBroken);
  CHECK(says(report->reasons, "has every certified byte"));
}

TEST_CASE("a source whose entries cannot be read leaves a result undecided") {
  TemporaryFolder folder;
  write_rows(folder / "ckpt", "step");
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(checkpoint->objects().size() == 1);
  Plan steps;
  steps.format = "dcp";
  verbs::Opened source{checkpoint, nullptr, nullptr, {}};
  auto made = verbs::repair(source, steps, {folder / "stepped"}, nullptr);
  REQUIRE(made.has_value());
  std::string out = repaired(folder, *checkpoint, plan_of_rows(*checkpoint, true));
  REQUIRE(verified_against(out, *checkpoint)->outcome == Outcome::kProved);
  REQUIRE(verified_against(made->output, *checkpoint)->outcome == Outcome::kProved);
  fs::remove(folder / "ckpt/entry.distcp");
  auto again = opened(folder / "ckpt");
  for (const std::string& result : {out, made->output}) {
    auto report = verified_against(result, *again);
    REQUIRE(report.has_value());
    CHECK(report->outcome == Outcome::kUndecided);
  }
}

TEST_CASE("metadata that a list of hashes names are not changed in place") {
  TemporaryFolder folder;
  write_rows(folder / "ckpt");
  put(folder / "ckpt/integrity.json", R"({"algorithm": "sha256", "files": {}})");
  auto checkpoint = opened(folder / "ckpt");
  ApplyOptions options;
  options.in_place = true;
  auto refused = apply_plan(*checkpoint, plan_of_rows(*checkpoint, false), options);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().place.file == "integrity.json");
  fs::remove(folder / "ckpt/integrity.json");
  CHECK(apply_plan(*checkpoint, plan_of_rows(*checkpoint, false), options).has_value());
}

TEST_CASE("files whose names are not UTF-8 are copied, and are certified under their names") {
  TemporaryFolder folder;
  write_rows(folder / "ckpt");
  const std::string name = "n\xff\\x.txt";
  put(folder / "ckpt/" + name, "what was next to");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of_rows(*checkpoint, true);
  std::string out = repaired(folder, *checkpoint, plan);
  CHECK(contents(out + "/" + name) == "what was next to");
  CHECK(verify_repair(out)->outcome == Outcome::kProved);
  bool certified = false;
  for (const FileCertificate& file : certificate_in(out).files) certified |= file.path == name;
  CHECK(certified);
  // A similar name is a different file.
  fs::rename(out + "/" + name, out + "/n\xef\xbf\xbd\\x.txt");
  CHECK(verify_repair(out)->outcome == Outcome::kBroken);

  ApplyOptions options{folder / "listed"};
  options.integrity = true;
  auto refused = apply_plan(*checkpoint, plan, options);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUnsupported);
}
