// Manipulated results with matching forged certificates: with the source none is proved, and the
// changed element is named.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/base/hash.h"
#include "core/formats/common/packed_text.h"
#include "core/repair/against_source.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/stored_plan.h"
#include "core/repair/proof/agreement.h"
#include "core/repair/proof/certify.h"
#include "core/repair/proof/item_hashes.h"
#include "core/repair/proof/mismatch.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

using Outcome = VerifyReport::Outcome;

// "w" of [6, 4] in two row tiles, and "v" of [4], which stays unchanged.
void write_two_tensors(const std::string& path, std::int64_t first = 0) {
  MadeTensor w{"w", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i) {
    Values values;
    for (std::int64_t k = 0; k < 12; ++k) values.push_back(first + 12 * i + k);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
  }
  write_checkpoint(path, {w, {"v", {4}, {{{{0}, {4}}, {4}, {90, 91, 92, 93}, 0}}}});
}

Plan planted_plan(const Checkpoint& checkpoint, Diagnosis diagnosis) {
  Finding finding;
  finding.rule = "planted";
  finding.subjects = {"w"};
  finding.diagnoses = {std::move(diagnosis)};
  CheckReport report;
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  return std::move(*plan);
}

Certificate kept_certificate(const std::string& folder) {
  auto read = certificate_from_json(contents(folder + "/certificate.json"), "certificate.json");
  if (!read) FAIL(read.error().message);
  return std::move(*read);
}

void write_certificate_of(const std::string& folder, const Certificate& certificate) {
  put(folder + "/certificate.json", certificate_to_json(certificate));
}

// Replaces every hash by that of the current bytes.
void forge_hashes(const std::string& folder) {
  auto checkpoint = opened(folder);
  Certificate certificate = kept_certificate(folder);
  auto hashes = hash_all_items(*checkpoint, nullptr);
  REQUIRE(hashes.has_value());
  for (TensorCertificate& entry : certificate.tensors) {
    TensorCertificate now = certify_tensor(*checkpoint, *checkpoint->find(entry.fqn), *hashes);
    entry.after = now.after;
    entry.tiles = now.tiles;
  }
  certificate.objects = certify_objects(*checkpoint, nullptr).value();
  certificate.files = certify_files(*checkpoint, *hashes, nullptr).value();
  write_certificate_of(folder, certificate);
}

// Swaps the first and the last element of a chunk; if they are equal, changes the first.
void swap_elements(const std::string& folder, ChunkId chunk) {
  auto checkpoint = opened(folder);
  auto header = read_item_header(*checkpoint, chunk);
  REQUIRE(header.has_value());
  std::size_t size = size_of(header->dtype), first = header->payload_offset;
  auto count = static_cast<std::size_t>(*volume(checkpoint->sizes(chunk)));
  std::string path = folder + "/" + checkpoint->file(checkpoint->item(chunk)->file).path;
  std::string data = contents(path);
  std::string before = data;
  for (std::size_t i = 0; i < size; ++i)
    std::swap(data[first + i], data[first + (count - 1) * size + i]);
  if (data == before) data[first + size - 1] = 0x40;
  put(path, data);
}

Outcome verdict_alone(const std::string& folder) {
  auto report = verify_repair(folder);
  return report ? report->outcome : Outcome::kUndecided;
}

// Moves any element of `out` and forges the certificate to match: undetectable without the source,
// always detected with it.
void expect_no_lie(const TemporaryFolder& folder, const std::string& out, const Checkpoint& source,
                   std::int64_t lost = 0) {
  auto honest = verified_against(out, source);
  if (!honest) FAIL(honest.error().message);
  if (honest->outcome != Outcome::kProved) FAIL(honest->reasons.front());
  CHECK(honest->lost == lost);
  std::string lie = folder / "lie";
  for (std::uint32_t i = 0; i < opened(out)->chunk_count(); ++i) {
    fs::remove_all(lie);
    fs::copy(out, lie, fs::copy_options::recursive);
    swap_elements(lie, ChunkId{i});
    if (contents(lie + "/certificate.json").empty()) FAIL("no certificate");
    CHECK(verdict_alone(lie) == Outcome::kBroken);
    forge_hashes(lie);
    CHECK(verdict_alone(lie) == Outcome::kProved);
    auto told = verified_against(lie, source);
    REQUIRE(told.has_value());
    CHECK(told->outcome == Outcome::kBroken);
    REQUIRE(told->against.has_value());
    REQUIRE(told->against->differences.size() == 1);
    const Difference& difference = told->against->differences[0];
    auto checkpoint = opened(lie);
    TensorId tensor = checkpoint->tensor_of(ChunkId{i});
    CHECK(difference.tensor == checkpoint->fqn(tensor));
    // Names one of the two; a tile with several parts is read part by part.
    Extents first = copy_of(checkpoint->offsets(ChunkId{i})), last = first;
    for (std::size_t d = 0; d < last.size(); ++d) last[d] += checkpoint->sizes(ChunkId{i})[d] - 1;
    CHECK((difference.index == first || difference.index == last));
    CHECK(difference.file == checkpoint->file(checkpoint->item(ChunkId{i})->file).path);
    CHECK(difference.value != difference.expected);
    const std::string& words = told->reasons.front();
    for (const std::string& part : {difference.tensor, to_text(difference.index), difference.file,
                                    difference.value, difference.expected})
      CHECK_MESSAGE(words.find(part) != std::string::npos, words);
  }
}

std::string planted_repair(const TemporaryFolder& folder, const Checkpoint& checkpoint,
                           Diagnosis diagnosis) {
  auto result =
      apply_plan(checkpoint, planted_plan(checkpoint, std::move(diagnosis)), {folder / "out"});
  if (!result) FAIL(result.error().message);
  return result->output;
}

std::string taken_steps(const TemporaryFolder& folder, const std::string& name,
                        const std::shared_ptr<const Checkpoint>& checkpoint,
                        std::vector<Step> steps, const std::string& format = "") {
  Plan plan;
  plan.steps = std::move(steps);
  plan.format = format;
  verbs::Opened source{checkpoint, nullptr, nullptr, {}};
  auto made = verbs::repair(source, plan, {folder / name}, nullptr);
  if (!made) FAIL(made.error().message);
  return made->output;
}

}  // namespace

TEST_CASE("a repair of any kind with two elements exchanged is broken next to its source") {
  const Diagnosis kinds[] = {
      WrongBoxes{TensorId{0}, {6, 4}, {{{3, 0}, {3, 4}}, {{0, 0}, {3, 4}}}},
      AxisMoved{TensorId{0}, 0, 1, 2, {3, 8}},
      BlocksPermuted{TensorId{0}, 0, 1, {5, 4, 3, 2, 1, 0}},
      Transposed{TensorId{0}, 0, 1, {4, 6}},
      Renamed{TensorId{0}, "u", {}},
  };
  for (const Diagnosis& kind : kinds) {
    CAPTURE(kind.index());
    TemporaryFolder folder;
    write_two_tensors(folder / "ckpt");
    auto checkpoint = opened(folder / "ckpt");
    expect_no_lie(folder, planted_repair(folder, *checkpoint, kind), *checkpoint);
  }
}

TEST_CASE("what was filled, and what came from a side file, is compared with the source too") {
  {
    TemporaryFolder folder;
    write_two_tensors(folder / "ckpt");
    auto checkpoint = opened(folder / "ckpt");
    PartlyLost lost{TensorId{0}, {8, 4}, {{ChunkId{1}, {{0, 0}, {3, 4}}, {2, 0}}}, ""};
    expect_no_lie(folder, planted_repair(folder, *checkpoint, lost), *checkpoint, 20);
  }
  TemporaryFolder folder;
  write_two_tensors(folder / "ckpt");
  const double masters[] = {1, 2, 3, 4};
  std::string side(64, 'x');
  side.append(reinterpret_cast<const char*>(masters), sizeof masters);
  put(folder / "ckpt/side.pt", side);
  auto checkpoint = opened(folder / "ckpt");
  RestoredFromRankFiles restored{
      TensorId{0}, {4}, {{"side.pt", 64, 32, Dtype::kFloat64, {4}, {0}}}};
  expect_no_lie(folder, planted_repair(folder, *checkpoint, restored), *checkpoint);
}

TEST_CASE("a repair in place is compared with a copy of what was there before") {
  TemporaryFolder folder;
  write_two_tensors(folder / "ckpt");
  fs::copy(folder / "ckpt", folder / "copy", fs::copy_options::recursive);
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = planted_plan(*checkpoint,
                           WrongBoxes{TensorId{0}, {6, 4}, {{{3, 0}, {3, 4}}, {{0, 0}, {3, 4}}}});
  ApplyOptions options;
  options.in_place = true;
  REQUIRE(apply_plan(*checkpoint, plan, options).has_value());
  auto report = verified_against(folder / "ckpt", *opened(folder / "copy"));
  REQUIRE(report.has_value());
  CHECK(report->outcome == Outcome::kProved);
}

TEST_CASE("a conversion, a reshard and steps with an element exchanged are broken next to theirs") {
  TemporaryFolder folder;
  write_two_tensors(folder / "ckpt");
  auto source = opened(folder / "ckpt");
  Mesh mesh{{{"dp", 3}}};
  auto rows = *parse_placement("Shard(0)");
  expect_no_lie(folder,
                taken_steps(folder, "resharded", source, {ReshardStep{{"w"}, mesh, {rows}}}),
                *source);
  expect_no_lie(folder, taken_steps(folder, "hf", source, {}, "safetensors"), *source);
  expect_no_lie(folder,
                taken_steps(folder, "cast", source,
                            {CastStep{{"*"}, Dtype::kBfloat16}, PermuteDimsStep{{"w"}, {1, 0}},
                             SplitStep{"w", 1, {2, 4}, {"left", "right"}}}),
                *source);
  expect_no_lie(folder,
                taken_steps(folder, "masked", source,
                            {MaskStep{{"w"}, {{{0, 0}, {2, 2}}}, 1}, TrimStep{{"v"}, {{1}, {3}}}}),
                *source, 4);
}

TEST_CASE(
    "another checkpoint is not a source: of another layout undecided, of other values broken") {
  TemporaryFolder folder;
  write_two_tensors(folder / "ckpt");
  write_two_tensors(folder / "later", 100);
  write_checkpoint(folder / "other", {{"w", {2}, {{{{0}, {2}}, {2}, {1, 2}, 0}}}});
  auto checkpoint = opened(folder / "ckpt");
  std::string out =
      planted_repair(folder, *checkpoint, BlocksPermuted{TensorId{0}, 0, 1, {5, 4, 3, 2, 1, 0}});
  auto later = verified_against(out, *opened(folder / "later"));
  REQUIRE(later.has_value());
  CHECK(later->outcome == Outcome::kBroken);
  CHECK(later->against->differences[0].value == "20");
  CHECK(later->against->differences[0].expected == "120");
  auto other = verified_against(out, *opened(folder / "other"));
  REQUIRE(other.has_value());
  CHECK(other->outcome == Outcome::kUndecided);
  CHECK(other->reasons.front().find("not the source of the result") != std::string::npos);
  CHECK(other->against->compared == 0);
}

TEST_CASE("where elements come from another checkpoint too that one is named among the suspects") {
  TemporaryFolder folder;
  write_two_tensors(folder / "ckpt");
  write_two_tensors(folder / "other", 100);
  auto source = opened(folder / "ckpt");
  Plan plan;
  plan.inputs = {{folder / "other", ""}};
  FillStep fill{{"w"}};
  fill.boxes = {{{0, 0}, {1, 4}}};
  fill.from_checkpoint = folder / "other";
  plan.steps = {fill};
  verbs::Opened with_source{source, nullptr, nullptr, {}};
  auto made = verbs::repair(with_source, plan, {folder / "out"}, nullptr);
  if (!made) FAIL(made.error().message);
  auto honest = verified_against(folder / "out", *source);
  REQUIRE(honest.has_value());
  CHECK(honest->outcome == Outcome::kProved);
  swap_elements(folder / "other", ChunkId{0});
  auto told = verified_against(folder / "out", *source);
  REQUIRE(told.has_value());
  CHECK(told->outcome == Outcome::kBroken);
  CHECK(std::any_of(told->reasons.begin(), told->reasons.end(), [&](const std::string& reason) {
    return reason.find(" or " + (folder / "other") + " is not its source or has changed") !=
           std::string::npos;
  }));
  // With another layout, it is not the checkpoint that the plan was made for.
  fs::remove_all(folder / "other");
  write_checkpoint(folder / "other",
                   {{"w", {6, 4}, {{{{0, 0}, {6, 4}}, {6, 4}, Values(24, 1), 0}}}});
  auto other = verified_against(folder / "out", *source);
  REQUIRE(other.has_value());
  CHECK(other->outcome == Outcome::kUndecided);
}

TEST_CASE("without its plan, or with one that is none, a result is undecided next to its source") {
  TemporaryFolder folder;
  write_two_tensors(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  std::string out =
      planted_repair(folder, *checkpoint, BlocksPermuted{TensorId{0}, 0, 1, {5, 4, 3, 2, 1, 0}});
  Certificate honest = kept_certificate(out);
  std::string fingerprint = honest.plan.substr(honest.plan.find("\"fingerprint\""), 48);
  for (std::string plan :
       {std::string(), std::string("{}"), "{" + fingerprint + "}", std::string("????"),
        std::string("AAAA"), "{" + fingerprint + ", \"plan\": 1, \"schema\": \"shardwright/1\"}",
        "{" + fingerprint + ", \"steps\": [{\"step\": \"no\"}]}"}) {
    CAPTURE(plan);
    Certificate other = honest;
    other.plan = plan;
    write_certificate_of(out, other);
    CHECK(verdict_alone(out) == Outcome::kProved);
    auto report = verified_against(out, *checkpoint);
    REQUIRE(report.has_value());
    CHECK(report->outcome == Outcome::kUndecided);
    CHECK(report->reasons.front().find("was not compared with") != std::string::npos);
  }
}

TEST_CASE("a certificate that claims more than its plan does is broken next to the source") {
  TemporaryFolder folder;
  write_two_tensors(folder / "ckpt");
  auto source = opened(folder / "ckpt");
  std::string out =
      taken_steps(folder, "out", source, {CastStep{{"w"}, Dtype::kFloat16}, DropStep{{"v"}}});
  Certificate honest = kept_certificate(out);
  auto broken_as = [&](auto change) {
    Certificate lie = honest;
    change(lie);
    write_certificate_of(out, lie);
    auto report = verified_against(out, *source);
    REQUIRE(report.has_value());
    return report->outcome == Outcome::kBroken;
  };
  CHECK_FALSE(broken_as([](Certificate&) {}));
  CHECK(broken_as([](Certificate& lie) { lie.tensors[0].is_cast = false; }));
  CHECK(broken_as([](Certificate& lie) { lie.dropped.clear(); }));
  CHECK(broken_as([](Certificate& lie) { lie.trimmed = 1; }));
  CHECK(broken_as([](Certificate& lie) { lie.steps = {"nothing was done"}; }));
  CHECK(broken_as([](Certificate& lie) {
    lie.tensors[0].kept = 23;
    lie.tensors[0].lost = 1;
    lie.tensors[0].lost_boxes = {{{0, 0}, {1, 1}}};
    lie.tensors[0].fill = "zero";
  }));
  CHECK(broken_as([](Certificate& lie) {
    lie.lossless = false;
    lie.tensors[0].kept = 0;
    lie.tensors[0].lost = 24;
    lie.tensors[0].lost_boxes = {{{0, 0}, {6, 4}}};
  }));
  // The certificate has another plan for the same source, which does not give this result.
  Plan plan = plan_from_json(honest.plan, "plan").value();
  plan.steps.emplace_back(PermuteBlocksStep{{"w"}, 0, {3, 3}, {1, 0}});
  CHECK(broken_as([&](Certificate& lie) {
    lie.plan = plan_to_json(plan);
    lie.steps.push_back(to_text(plan.steps.back()));
  }));
}

TEST_CASE("a long plan is kept packed, and comes back") {
  std::string plan = "{";
  for (int i = 0; i < 5000; ++i) {
    plan += "{\"offsets\":[" + std::to_string(64 * i) +
            ",128],\"sizes\":[64,64],\"writer\":" + std::to_string(i % 8) +
            ",\"item\":" + std::to_string(i) + "},";
  }
  std::string kept = encode_stored_plan(plan);
  CHECK(kept.size() * 5 < plan.size());
  CHECK(decode_stored_plan(kept).value() == plan);
  CHECK(encode_stored_plan("{}") == "{}");
  CHECK(decode_stored_plan("{}").value() == "{}");
  for (std::size_t length = 0; length < 70; ++length) {
    std::string text(length, static_cast<char>('a' + length % 7));
    CHECK(unpacked_text(packed_text(text), 1000).value() == text);
  }
  CHECK_FALSE(unpacked_text(packed_text(plan), plan.size() - 1).has_value());
  for (const char* wrong : {"A", "=AAA", "A=AA", "AA=A", "!!!!", "AAAA", "===="})
    CHECK_FALSE(unpacked_text(wrong, 1000).has_value());
  for (std::size_t i = 0; i < kept.size(); i += 7) {
    std::string bent = kept;
    bent[i] = bent[i] == 'A' ? 'B' : 'A';
    auto back = decode_stored_plan(bent);
    if (back) CHECK(back->size() <= 1000 * bent.size() + 1000);
  }
}

TEST_CASE("elements with one text and other bytes are distinguished by their bytes") {
  const float zeros[] = {1.0F, 0.0F, 2.0F}, minus[] = {1.0F, 0.0F, 3.0F};
  auto bytes = [](const float* values) { return std::as_bytes(std::span(values, 3)); };
  Mismatch plain = first_mismatch(Dtype::kFloat32, {{4, 1}, {3, 1}}, bytes(zeros), bytes(minus));
  CHECK(plain.index == Extents{6, 1});
  CHECK(plain.value == "2");
  CHECK(plain.expected == "3");
  const std::uint32_t nan = 0x7fc00000, other = 0x7fc00001;
  Mismatch same = first_mismatch(Dtype::kFloat32, {{}, {}}, std::as_bytes(std::span(&nan, 1)),
                                 std::as_bytes(std::span(&other, 1)));
  CHECK(same.index.empty());
  CHECK(same.value == "NaN (bytes 00 00 c0 7f)");
  CHECK(same.expected == "NaN (bytes 01 00 c0 7f)");
}
