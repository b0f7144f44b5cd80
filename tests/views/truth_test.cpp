// The desktop is never more optimistic than a finding: for every checkpoint in tests/data, intact
// and with a data file missing or truncated, the banner, the list, the overview, the plan and
// `check --json` agree on lost elements, tensors and files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/repair/plan/plan.h"
#include "core/report/ci_forms.h"
#include "core/report/text.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"
#include "core/verbs/names/filter.h"
#include "views/digest.h"
#include "views/driver.h"
#include "views/text.h"
#include "views/verdict.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

bool truth_says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

std::shared_ptr<const Snapshot> looked_at(const std::string& path, Depth depth) {
  auto snapshot = std::make_shared<Snapshot>();
  auto opened = open_checkpoint(path);
  if (!opened) return nullptr;
  snapshot->options.checkpoint = path;
  snapshot->checkpoint = *opened;
  CheckOptions options;
  options.depth = depth;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  auto plan = make_plan(**opened, *report, {});
  REQUIRE(plan.has_value());
  snapshot->report = std::make_shared<const CheckReport>(std::move(*report));
  snapshot->plan = std::make_shared<const Plan>(std::move(*plan));
  return snapshot;
}

// Counts by the files on the disk, not by what was opened: elements of chunks whose bytes are not
// there. nullopt where the files are not those of the folder.
std::optional<std::int64_t> elements_without_bytes(const Checkpoint& checkpoint) {
  if (checkpoint.directory() == nullptr) return std::nullopt;
  // An OCDBT database has its items in B-tree nodes, not in files of their names.
  const fs::path folder = checkpoint.directory()->name();
  std::error_code walk_error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, walk_error)) {
    if (entry.path().filename() == "manifest.ocdbt") return std::nullopt;
  }
  std::int64_t elements = 0;
  for (ChunkId chunk : checkpoint.chunks()) {
    const auto item = checkpoint.item(chunk);
    if (!item || item->file == FileId::kNone || item->offset < 0 || item->length < 0) continue;
    const std::string& path = checkpoint.file(item->file).path;
    if (checkpoint.directory()->is_made(path)) return std::nullopt;
    std::error_code error;
    const auto size = fs::file_size(folder / path, error);
    const bool is_there = !error && static_cast<std::uint64_t>(item->offset + item->length) <= size;
    if (!is_there) elements += volume(checkpoint.sizes(chunk)).value_or(0);
  }
  return elements;
}

// Checks which tensors the list, the overview and the filter mark.
void check_marks(const Snapshot& snapshot, const Digest& digest, std::size_t affected) {
  const auto marked = static_cast<std::size_t>(
      std::count_if(digest.marks->begin(), digest.marks->end(), [](auto m) { return m > 1; }));
  CHECK(marked <= affected);
  for (const Finding& finding : snapshot.report->findings) {
    if (finding.severity == Severity::kInfo) continue;
    for (const std::string& subject : finding.subjects) {
      if (auto tensor = snapshot.checkpoint->find(subject))
        CHECK((*digest.marks)[index_of(*tensor)] > 1);
    }
  }
  std::size_t in_overview = 0;
  for (const SizeShare& share : digest.overview->layers) in_overview += share.tensors;
  CHECK(in_overview == marked);
  auto listed = filter_tensors(*snapshot.checkpoint, snapshot.report.get(), "finding:*", nullptr);
  REQUIRE(listed.has_value());
  CHECK(listed->size() == marked);
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  const bool judged =
      std::any_of(snapshot.report->findings.begin(), snapshot.report->findings.end(),
                  [](const Finding& finding) {
                    return finding.severity != Severity::kInfo && has_unreadable_counts(finding);
                  });
  for (ChunkId chunk : checkpoint.chunks()) {
    auto item = checkpoint.item(chunk);
    if (!judged || !item || checkpoint.directory() == nullptr || is_reachable(checkpoint, *item))
      continue;
    CHECK((*digest.marks)[index_of(checkpoint.tensor_of(chunk))] > 1);
    CHECK(digest.about->files[index_of(item->file)] > 1);
  }
}

std::size_t counted_on_disk = 0, lost_on_disk = 0;  // checkpoints

void check_truth_of(const std::shared_ptr<const Snapshot>& snapshot) {
  auto digest = make_digest(snapshot);
  CheckContext context;
  context.checkpoint = snapshot->checkpoint.get();
  const Json json = Json::parse(check_to_json(*snapshot->report, context));
  const Json affected = json.value("affected", Json{{"causes", 0}, {"tensors", 0}, {"files", 0}});
  CHECK(affected["causes"] == digest->about->affected.causes);
  CHECK(affected["tensors"] == digest->about->affected.tensors);
  CHECK(affected["files"] == digest->about->affected.files);
  check_marks(*snapshot, *digest, affected["tensors"].get<std::size_t>());
  const Json unreadable = json.value("unreadable", Json{{"elements", 0}, {"tensors", 0}});
  CHECK(unreadable["elements"] == digest->about->unreadable.elements);
  CHECK(unreadable["tensors"] == digest->about->unreadable.tensors);
  CHECK(digest->about->unreadable.tensors <= affected["tensors"].get<std::int64_t>());
  if (const auto without = elements_without_bytes(*snapshot->checkpoint)) {
    CHECK(unreadable["elements"].get<std::int64_t>() >= *without);
    ++counted_on_disk;
    lost_on_disk += *without > 0 ? 1 : 0;
  }

  const VerdictText banner = verdict_of(*snapshot, {}, *digest->about);
  const std::string text = check_to_text(*snapshot->checkpoint, *snapshot->report, {});
  CHECK(truth_says(text, "coverage complete") == digest->facts->complete);
  if (affected["causes"] == 0) {
    CHECK(banner.tone != Tone::kBad);
    return;
  }
  CHECK(truth_says(banner.title, affected_counts_text(digest->about->affected)));
  CHECK(truth_says(text, affected_counts_text(digest->about->affected)));
  bool all_lossless = snapshot->plan->lossless && snapshot->plan->undecided.empty();
  for (const Finding& finding : snapshot->report->findings) {
    if (finding.severity == Severity::kInfo) continue;
    all_lossless = all_lossless && finding.remedy && finding.remedy->lossless;
  }
  if (!all_lossless) CHECK_FALSE(truth_says(banner.detail, "Nothing is lost"));
  if (!snapshot->plan->empty() || digest->about->unreadable.tensors == 0) return;
  CHECK(truth_says(banner.detail, unreadable_text(digest->about->unreadable)));
  CHECK(truth_says(text, unreadable_text(digest->about->unreadable)));
}

// Returns the format; empty if it cannot be opened, so that there is nothing to compare.
std::string check_truth(const std::string& path, Depth depth = Depth::kHeaders) {
  CAPTURE(path);
  const auto snapshot = looked_at(path, depth);
  if (snapshot == nullptr) return {};
  check_truth_of(snapshot);
  return std::string(snapshot->checkpoint->format().title);
}

enum class Damage { kCut, kRemoved, kZeroed, kFlipped, kGrown };

// Damages a file at `at` of its size, 0 to 1.
void damage_file(const fs::path& path, Damage damage, double at) {
  const auto size = static_cast<double>(fs::file_size(path));
  const auto place = static_cast<std::uintmax_t>(size * at);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  switch (damage) {
    case Damage::kCut:
      fs::resize_file(path, place);
      break;
    case Damage::kRemoved:
      fs::remove(path);
      break;
    case Damage::kZeroed:  // a hole in the middle, as after a crash
      file.seekp(static_cast<std::streamoff>(place));
      file << std::string(
          std::min(static_cast<std::size_t>(size / 3), static_cast<std::size_t>(size) - place),
          '\0');
      break;
    case Damage::kFlipped: {
      file.seekg(static_cast<std::streamoff>(place));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(place));
      file.put(static_cast<char>(byte ^ 0x10));
      break;
    }
    case Damage::kGrown:
      file.seekp(0, std::ios::end);
      file << std::string(100, '\7');
      break;
  }
}

// The files of a folder that have 8 bytes, the largest first.
std::vector<fs::path> files_by_size(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.file_size() >= 8) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(fs::file_size(b), a) < std::pair(fs::file_size(a), b);
  });
  return files;
}

// Copies a folder and damages the `which`-th largest file. Returns the format as check_truth().
std::string check_damaged(const std::string& folder, std::size_t which, Damage damage) {
  TemporaryFolder copy;
  std::error_code error;
  fs::copy(folder, copy / "c", fs::copy_options::recursive, error);
  if (error) return {};
  const std::vector<fs::path> files = files_by_size(copy / "c");
  if (which >= files.size()) return {};
  damage_file(files[which], damage, damage == Damage::kCut ? 0.5 : 1.0 / 3);
  if (damage != Damage::kZeroed) check_truth(copy / "c", Depth::kMetadata);
  return check_truth(copy / "c", damage == Damage::kZeroed ? Depth::kData : Depth::kHeaders);
}

}  // namespace

TEST_CASE("truth: every view agrees with check --json on every fixture") {
  std::size_t compared = 0;
  for (const std::string& folder : test::fixture_cases("")) {
    compared += check_truth(folder + "/ckpt").empty() ? 0 : 1;
    check_truth(folder + "/ckpt", Depth::kData);
  }
  CHECK(compared >= 80);
}

TEST_CASE("truth: every view agrees with check --json where files are damaged, in every format") {
  std::map<std::string, std::size_t> compared;  // by format
  std::size_t damaged = 0;
  for (const std::string& folder : test::fixture_cases("")) {
    if (!fs::is_directory(folder + "/ckpt")) continue;
    for (std::size_t which : {0u, 1u, 2u}) {
      for (Damage damage : {Damage::kCut, Damage::kRemoved, Damage::kZeroed}) {
        const std::string format = check_damaged(folder + "/ckpt", which, damage);
        if (format.empty()) continue;
        ++compared[format];
        ++damaged;
      }
    }
  }
  for (const auto& [format, count] : compared) MESSAGE(format << ": " << count);
  CHECK(damaged >= 300);
  MESSAGE("counted on the disk: " << counted_on_disk << ", with lost elements " << lost_on_disk);
  CHECK(lost_on_disk >= 100);
  for (const char* format : {"DCP", "DeepSpeed ZeRO", "GGUF", "Hugging Face sharded safetensors"}) {
    CAPTURE(format);
    CHECK(compared[format] > 0);
  }
}

// SHARDWRIGHT_TRUTH_SEED draws other damage.
TEST_CASE("truth: every view agrees with check --json where damage is drawn at random") {
  const char* given = std::getenv("SHARDWRIGHT_TRUTH_SEED");
  const unsigned seed = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto draw = [&](std::size_t end) { return random() % end; };
  const auto share = [&] { return static_cast<double>(random() % 10'000) / 10'000; };
  std::size_t damaged = 0;
  for (const std::string& folder : test::fixture_cases("")) {
    if (!fs::is_directory(folder + "/ckpt")) continue;
    TemporaryFolder copy;
    std::error_code error;
    fs::copy(folder + "/ckpt", copy / "c", fs::copy_options::recursive, error);
    if (error) continue;
    // Damage adds up: the second copy is of a checkpoint that is damaged twice.
    for (int times = 1; times <= 2; ++times) {
      const std::vector<fs::path> files = files_by_size(copy / "c");
      if (files.empty()) break;
      const fs::path& file = files[draw(files.size())];
      const auto damage = static_cast<Damage>(draw(5));
      CAPTURE(file.string());
      CAPTURE(static_cast<int>(damage));
      damage_file(file, damage, share());
      const Depth depth = draw(2) == 0 ? Depth::kHeaders : Depth::kData;
      if (!check_truth(copy / "c", depth).empty()) ++damaged;
    }
  }
  MESSAGE("seed " << seed << ": " << damaged << " damaged checkpoints");
  CHECK(damaged > 0);
}

TEST_CASE("truth: a file that is missing marks its tensors, ranks and elements") {
  TemporaryFolder copy;
  std::size_t looked = 0;
  for (const std::string& folder : test::fixture_cases("healthy_moe_ep")) {
    std::error_code error;
    fs::remove_all(copy / "c", error);
    fs::copy(folder + "/ckpt", copy / "c", fs::copy_options::recursive, error);
    if (error || !fs::remove(fs::path(copy / "c") / "__1_0.distcp")) continue;
    auto snapshot = looked_at(copy / "c", Depth::kMetadata);
    REQUIRE(snapshot != nullptr);
    auto digest = make_digest(snapshot);
    CHECK(digest->about->affected.files == 1);
    CHECK(digest->about->affected.tensors > 1);
    CHECK(digest->mesh->shares.at(1).unreadable_tiles > 0);
    CHECK(digest->mesh->shares.at(0).unreadable_tiles == 0);
    const VerdictText banner = verdict_of(*snapshot, {}, *digest->about);
    CHECK(banner.tone == Tone::kBad);
    CHECK(truth_says(banner.detail, "cannot be read"));
    ++looked;
  }
  CHECK(looked > 0);
}

namespace {

// A model of two files, each with one tensor of 16 bytes.
void put_model_of_two_files(const std::string& folder) {
  for (int file : {1, 2}) {
    const std::string name = "layers." + std::to_string(file) + ".mlp.down_proj.weight";
    std::string header =
        R"({")" + name + R"(":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    std::ofstream out(folder + "/model-0000" + std::to_string(file) + "-of-00002.safetensors",
                      std::ios::binary);
    out << static_cast<char>(header.size()) << std::string(7, '\0') << header
        << std::string(16, '\1');
  }
  std::ofstream(folder + "/config.json") << "{}";
}

}  // namespace

TEST_CASE("truth: a model whose index is gone is not called damaged, and its files have names") {
  TemporaryFolder folder;
  put_model_of_two_files(folder.path());
  auto snapshot = looked_at(folder.path(), Depth::kHeaders);
  REQUIRE(snapshot != nullptr);
  REQUIRE(snapshot->report->findings.size() >= 1);
  CHECK(snapshot->report->findings.front().rule == "bad-record");
  auto digest = make_digest(snapshot);
  CHECK_FALSE(truth_says(verdict_of(*snapshot, {}, *digest->about).detail, "damaged"));
  Driver driver(snapshot, {1280, 720});
  driver.desk.summary_open = true;
  driver.frame();
  driver.frame();
  for (const char* number : {"00001", "00002"}) {
    CAPTURE(number);
    CHECK(std::any_of(driver.marks.texts.begin(), driver.marks.texts.end(), [&](const auto& mark) {
      return mark.text.starts_with("model-") && truth_says(mark.text, number);
    }));
  }
}
