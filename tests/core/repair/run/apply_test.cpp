#include "core/repair/run/apply.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "core/dead_process.h"
#include "core/faulty_store.h"
#include "core/repair/broken_down.h"
#include "core/repair/row_plan.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("a plan says what it does with numbers, and comes back from JSON") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Finding shape;
  shape.rule = "shape-mismatch";
  shape.subjects = {"down"};
  Finding other = shape;
  other.rule = "dtype-mismatch";
  other.evidence = {{"expected", std::string("bfloat16")}, {"count", std::int64_t{3}}};
  Plan plan = plan_of(*checkpoint, {axis_moved(), shape, other});
  REQUIRE(plan.operations.size() == 1);
  CHECK(plan.operations[0].text == "relabel 4 chunks: [2, 6, 2] becomes [2, 3, 4]");
  CHECK(plan.operations[0].tiles == 4);
  CHECK(plan.operations[0].bytes_moved == 0);
  CHECK(plan.lossless);
  REQUIRE(plan.undecided.size() == 1);
  CHECK(plan.undecided[0].rule == "dtype-mismatch");

  std::string json = plan_to_json(*checkpoint, plan);
  auto back = plan_from_json(*checkpoint, json, "plan.json");
  REQUIRE(back.has_value());
  CHECK(plan_to_json(*checkpoint, *back) == json);
  CHECK(back->tensors[0].chunks[2].box.offsets == Extents{0, 0, 2});

  write_checkpoint(folder / "other", {{"down", {3}, {{{{0}, {3}}, {3}, kNorm, 0}}}});
  auto refused = plan_from_json(*opened(folder / "other"), json, "plan.json");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUsage);
}

TEST_CASE("a plan that was tampered with is refused, whatever was changed") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  std::string json = plan_to_json(*checkpoint, plan_of(*checkpoint, {axis_moved()}));
  std::size_t tensors = json.find("\"tensors\"");
  int accepted = 0, refused = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    std::string cut = json.substr(0, i);
    if (i + 2 < json.size()) CHECK_FALSE(plan_from_json(*checkpoint, cut, "plan.json").has_value());
    std::string bent = json;
    bent[i] = bent[i] == '1' ? '7' : '1';
    auto plan = plan_from_json(*checkpoint, bent, "plan.json");
    (plan ? accepted : refused)++;
    // Texts and file numbers may change; boxes and chunks may not.
    if (plan && i > tensors) CHECK(plan->tensors[0].shape == Extents{2, 3, 4});
  }
  CHECK(refused > accepted);
  for (const char* text :
       {"", "[]", "{}", "null", "1", "{\"schema\": \"shardwright/2\"}", "[[[[[["})
    CHECK_FALSE(plan_from_json(*checkpoint, text, "plan.json").has_value());
}

TEST_CASE(
    "a clean checkpoint has an empty plan, and a blocked tensor is left alone with a reason") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  CHECK(plan_of(*checkpoint, {}).empty());
  Finding info = axis_moved();
  info.severity = Severity::kInfo;
  CHECK(plan_of(*checkpoint, {info}).empty());

  Finding cut;
  cut.rule = "short-file";
  cut.subjects = {"__2_0.distcp"};
  Plan plan = plan_of(*checkpoint, {cut, axis_moved()});
  CHECK(plan.empty());
  REQUIRE(plan.undecided.size() == 2);
  CHECK(std::get<std::string>(plan.undecided[0].evidence.back().second).find("short-file") !=
        std::string::npos);
  auto applied = apply_plan(*checkpoint, plan, {});
  REQUIRE_FALSE(applied.has_value());
  CHECK(applied.error().kind == ErrorKind::kUsage);
}

TEST_CASE("F1.1 is repaired into a new directory, proved, and the source is as it was") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto before = all_files(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  Progress progress;
  auto repaired = apply_plan(*checkpoint, plan, {}, &progress);
  if (!repaired) FAIL(repaired.error().message);
  CHECK(repaired->lossless);
  CHECK(all_files(folder / "ckpt") == before);
  CHECK(std::filesystem::equivalent(repaired->output, folder / "ckpt-repaired"));
  CHECK(entries_of(folder.path()) == 2);
  auto result = opened(folder / "ckpt-repaired");
  CHECK(copy_of(result->shape(*result->find("down"))) == Extents{2, 3, 4});
  CHECK(values_of(*result, "down") == kDown);
  CHECK(values_of(*result, "norm") == kNorm);
  CHECK(contents(folder / "ckpt-repaired/common.pt") == "what was next to");
  CHECK(verdict(folder / "ckpt-repaired") == VerifyReport::Outcome::kProved);
  CHECK(verdict(folder / "ckpt") == VerifyReport::Outcome::kUndecided);
  auto again = apply_plan(*checkpoint, plan, {});
  REQUIRE(again.has_value());
  CHECK(again->output.ends_with("ckpt-repaired-b"));

  auto certificate = certificate_from_json(contents(repaired->certificate), "certificate.json");
  REQUIRE(certificate.has_value());
  REQUIRE(certificate->tensors.size() == 2);
  CHECK(certificate->tensors[0].fqn == "down");
  CHECK(certificate->tensors[0].kept == 24);
  CHECK(certificate->tensors[0].lost == 0);
  CHECK(certificate->tensors[1].kept == 3);
  CHECK(certificate_to_json(*certificate) == contents(repaired->certificate));
}

TEST_CASE("a changed byte, another tile or another count breaks the proof") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  REQUIRE(apply_plan(*checkpoint, plan, {folder / "out"}).has_value());
  std::string data = contents(folder / "out/__2_0.distcp");
  std::string flipped = data;
  flipped[data.size() / 2] = static_cast<char>(flipped[data.size() / 2] ^ 1);
  put(folder / "out/__2_0.distcp", flipped);
  CHECK(verdict(folder / "out") == VerifyReport::Outcome::kBroken);
  put(folder / "out/__2_0.distcp", data.substr(0, data.size() / 2));
  CHECK(verdict(folder / "out") == VerifyReport::Outcome::kBroken);
  put(folder / "out/__2_0.distcp", data);
  CHECK(verdict(folder / "out") == VerifyReport::Outcome::kProved);
  std::string text = contents(folder / "out/certificate.json");
  std::string bent = text;
  bent.replace(bent.find("\"kept\":24"), 9, "\"kept\":23");
  put(folder / "out/certificate.json", bent);
  CHECK(verdict(folder / "out") == VerifyReport::Outcome::kBroken);
  put(folder / "out/certificate.json", text);
  put(folder / "out/.metadata", contents(folder / "ckpt/.metadata"));
  CHECK(verdict(folder / "out") == VerifyReport::Outcome::kBroken);
}

TEST_CASE("the output may be neither the checkpoint, in it, around it, nor there already") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  std::filesystem::create_directory(folder / "taken");
  put(folder / "taken/file", "1");
  for (const std::string& out : {folder / "ckpt", folder / "ckpt/", folder / "ckpt/inside",
                                 folder / "ckpt/../ckpt/inside", folder.path(), folder / "taken"}) {
    CAPTURE(out);
    auto refused = apply_plan(*checkpoint, plan, {out});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == ErrorKind::kUsage);
  }
  CHECK_FALSE(apply_plan(*checkpoint, plan, {folder / "no/such/parent"}).has_value());
  CHECK(entries_of(folder.path()) == 2);
}

TEST_CASE("a repair that fails at any step leaves the source alone, and no more than can be used") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto before = all_files(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  bool finished = false;
  int step = 0, kept = 0;
  for (; !finished && step < 500; ++step) {
    CAPTURE(step);
    int at = 0;
    FaultyStore store(posix_store(), [&](const std::string& name, const std::string& path) {
      bool fails = at++ == step && name != "discard";
      return fails ? std::optional<Error>(Error{ErrorKind::kIo, "no space left", {path}})
                   : std::nullopt;
    });
    auto result = apply_plan(store, *checkpoint, plan, {folder / "out"}, nullptr);
    finished = result.has_value();
    CHECK(all_files(folder / "ckpt") == before);
    const bool is_kept = !finished && entries_of(folder.path()) == 2;
    CHECK(entries_of(folder.path()) == (finished || is_kept ? 2 : 1));
    if (finished) break;
    CHECK((result.error().advice.find("shardwright resume") != std::string::npos) == is_kept);
    if (!is_kept) continue;
    ++kept;
    auto again = apply_plan(*checkpoint, plan, {folder / "out"});
    if (!again) FAIL(again.error().message);
    CHECK(again->files_kept != 0);
    CHECK(verdict(folder / "out") == VerifyReport::Outcome::kProved);
    CHECK(entries_of(folder.path()) == 2);
    std::filesystem::remove_all(folder / "out");
  }
  CHECK(finished);
  CHECK(step > 10);
  CHECK(kept > 3);
}

TEST_CASE("what cannot be taken away is named, and the final name stays free") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  FaultyStore store(posix_store(), [](const std::string& name, const std::string& path) {
    bool fails = name == "copy" || name == "finish" || name == "discard";
    return fails ? std::optional<Error>(Error{ErrorKind::kIo, "gone", {path}}) : std::nullopt;
  });
  auto result = apply_plan(store, *checkpoint, plan, {folder / "out"}, nullptr);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().advice.find("out.shardwright-partial-") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_CASE("a full disk is said before anything is written, a cancel leaves nothing") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  struct FullDisk : ForwardingStore {
    using ForwardingStore::ForwardingStore;
    Result<std::uint64_t> free_bytes(const std::string&) const override { return 1000; }
  } store(posix_store());
  auto result = apply_plan(store, *checkpoint, plan, {folder / "out"}, nullptr);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().message.find("1000 are free") != std::string::npos);
  Progress progress;
  progress.cancel();
  auto cancelled = apply_plan(*checkpoint, plan, {folder / "out"}, &progress);
  REQUIRE_FALSE(cancelled.has_value());
  CHECK(cancelled.error().kind == ErrorKind::kCancelled);
  CHECK(entries_of(folder.path()) == 1);
}

TEST_CASE("a source that changes meanwhile stops the repair") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  FaultyStore store(posix_store(), [&](const std::string& step, const std::string& path) {
    if (step == "create" && path == "certificate.json") put(folder / "ckpt/common.pt", "new");
    return std::optional<Error>();
  });
  auto result = apply_plan(store, *checkpoint, plan, {folder / "out"}, nullptr);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().place.file == "common.pt");
  CHECK(entries_of(folder.path()) == 1);
}

TEST_CASE("a source that is cut short meanwhile is said to have changed, not to be damaged") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  FaultyStore store(posix_store(), [&](const std::string& step, const std::string&) {
    if (step == "make directory") {
      for (const auto& entry : std::filesystem::directory_iterator(folder / "ckpt")) {
        if (entry.path().extension() == ".distcp") std::filesystem::resize_file(entry.path(), 10);
      }
    }
    return std::optional<Error>();
  });
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  auto result = apply_plan(store, *checkpoint, plan, {folder / "out"}, nullptr);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().kind == ErrorKind::kIo);
  CHECK(result.error().message.find("changed while it was being read") != std::string::npos);
  CHECK(entries_of(folder.path()) == 1);
}

TEST_CASE("survivors are kept, losses are counted, filled and certified") {
  TemporaryFolder folder;
  MadeTensor state{"state", {4}, {{{{0}, {4}}, {4}, {10, 11, 12, 13}, 3}}};
  MadeTensor weight{"weight", {8}, {}};
  weight.chunks.push_back({{{0}, {4}}, {4}, {0, 1, 2, 3}, 0});
  weight.chunks.push_back({{{4}, {4}}, {4}, {4, 5, 6, 7}, 1});
  write_checkpoint(folder / "ckpt", {state, weight});
  auto checkpoint = opened(folder / "ckpt");
  for (bool refill : {false, true}) {
    CAPTURE(refill);
    Finding finding;
    finding.rule = "local-saved-as-global";
    finding.subjects = {"state"};
    PartlyLost lost{TensorId{0}, {8}, {}, refill ? "weight" : ""};
    lost.retained_chunks.push_back({ChunkId{0}, {{0}, {3}}, {4}});
    finding.diagnoses = {lost};
    Plan plan = plan_of(*checkpoint, {finding});
    CHECK_FALSE(plan.lossless);
    CHECK(plan.operations.size() == 3);
    std::string json = plan_to_json(*checkpoint, plan);
    auto back = plan_from_json(*checkpoint, json, "plan.json");
    REQUIRE(back.has_value());
    CHECK(plan_to_json(*checkpoint, *back) == json);
    std::string out = folder / (refill ? "cast" : "zero");
    auto repaired = apply_plan(*checkpoint, *back, {out});
    if (!repaired) FAIL(repaired.error().message);
    CHECK_FALSE(repaired->lossless);
    Values expected =
        refill ? Values{0, 1, 2, 3, 10, 11, 12, 7} : Values{0, 0, 0, 0, 10, 11, 12, 0};
    CHECK(values_of(*opened(out), "state") == expected);
    // The file of rank 3 has nothing else: it is replaced, not copied.
    CHECK_FALSE(std::filesystem::exists(out + "/__3_0.distcp"));
    CHECK(std::filesystem::exists(out + "/__3_1.distcp"));
    CHECK(verdict(out) == VerifyReport::Outcome::kProved);
    auto certificate = certificate_from_json(contents(repaired->certificate), "certificate.json");
    REQUIRE(certificate.has_value());
    CHECK_FALSE(certificate->lossless);
    CHECK(certificate->tensors[0].kept == 3);
    CHECK(certificate->tensors[0].lost == 5);
    ApplyOptions in_place;
    in_place.in_place = true;
    CHECK_FALSE(apply_plan(*checkpoint, plan, in_place).has_value());
  }
}

TEST_CASE("chunks come back from side files, cast to the dtype of the tensor") {
  TemporaryFolder folder;
  write_checkpoint(folder / "ckpt", {{"w", {2}, {{{{0}, {2}}, {2}, {5, 6}, 0}}}});
  const double masters[] = {1, 2, 3, 4};
  std::string side(64, 'x');
  side.append(reinterpret_cast<const char*>(masters), sizeof masters);
  put(folder / "ckpt/optimizer_rank_0.pt", side);
  put(folder / "ckpt/optimizer_rank_1.pt", side);
  auto checkpoint = opened(folder / "ckpt");
  Finding finding;
  finding.rule = "axis-dropped";
  finding.subjects = {"w"};
  RestoredFromRankFiles restored{TensorId{0}, {4}, {}};
  restored.pieces.push_back({"optimizer_rank_0.pt", 64, 16, Dtype::kFloat64, {2}, {0}});
  restored.pieces.push_back({"optimizer_rank_1.pt", 80, 16, Dtype::kFloat64, {2}, {2}});
  finding.diagnoses = {restored};
  Plan plan = plan_of(*checkpoint, {finding});
  auto repaired = apply_plan(*checkpoint, plan, {folder / "out"});
  if (!repaired) FAIL(repaired.error().message);
  CHECK(repaired->lossless);
  CHECK(values_of(*opened(folder / "out"), "w") == Values{1, 2, 3, 4});
  CHECK(verdict(folder / "out") == VerifyReport::Outcome::kProved);
}

TEST_CASE("blocks that are torn apart are put together again on disk") {
  TemporaryFolder folder;
  // Rows 0 to 5 in blocks of two, on disk in the order 2 0 1, in chunks of three rows.
  MadeTensor w{"w", {6, 2}, {}};
  w.chunks.push_back({{{0, 0}, {3, 2}}, {3, 2}, {4, 5, 6, 7, 8, 9}, 0});
  w.chunks.push_back({{{3, 0}, {3, 2}}, {3, 2}, {10, 11, 0, 1, 2, 3}, 1});
  write_checkpoint(folder / "ckpt", {w});
  auto checkpoint = opened(folder / "ckpt");
  Finding finding;
  finding.rule = "fused-per-rank";
  finding.subjects = {"w"};
  finding.diagnoses = {BlocksPermuted{TensorId{0}, 0, 2, {2, 0, 1}}};
  Plan plan = plan_of(*checkpoint, {finding});
  REQUIRE(plan.operations.size() == 1);
  CHECK(plan.operations[0].kind == OperationKind::kPermuteBlocks);
  auto repaired = apply_plan(*checkpoint, plan, {folder / "out"});
  if (!repaired) FAIL(repaired.error().message);
  CHECK(values_of(*opened(folder / "out"), "w") == counting({6, 2}));
  CHECK(verdict(folder / "out") == VerifyReport::Outcome::kProved);
}

TEST_CASE("a copy that another rank saved of a tile is copied even where it differs") {
  TemporaryFolder folder;
  auto w = [](std::int64_t first, std::uint32_t writer) {
    Values values(24);
    std::iota(values.begin(), values.end(), first);
    return MadeTensor{"w", {6, 4}, {{whole(Extents{6, 4}), {6, 4}, values, writer}}};
  };
  write_checkpoint(folder / "zero", {w(0, 0)});
  write_checkpoint(folder / "one", {w(100, 1)});
  for (auto [rank, from] : {std::pair("0", "zero"), std::pair("1", "one")}) {
    std::filesystem::create_directories(folder / "ckpt");
    std::filesystem::copy_file(folder / from + "/.metadata",
                               folder / "ckpt/__" + rank + ".metadata");
    std::filesystem::copy_file(folder / from + "/__" + rank + "_0.distcp",
                               folder / "ckpt/__" + rank + "_0.distcp");
  }
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(checkpoint->chunk_count() == 1);
  REQUIRE(checkpoint->replicas(ChunkId{0}).size() == 1);
  REQUIRE(apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {folder / "out"}).has_value());
  CHECK(contents(folder / "out/__1_0.distcp") == contents(folder / "ckpt/__1_0.distcp"));
}
