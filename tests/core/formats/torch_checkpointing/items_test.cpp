// Checkpoints of torch_checkpointing 0.1 (tests/data/torch-checkpointing-0.1), which the real
// library wrote on gloo.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/torch_checkpointing/items_metadata.h"
#include "core/model/state_path.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string items_case(const std::string& name) {
  return std::string(SHW_TEST_DATA) + "/torch-checkpointing-0.1/" + name;
}

using ItemFilesRead = std::vector<std::pair<std::string, Bytes>>;

ItemFilesRead files_of_items(const std::string& name) {
  ItemFilesRead files;
  const std::filesystem::path top = items_case(name) + "/ckpt";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto bytes = std::as_bytes(std::span(text));
    files.emplace_back(std::filesystem::relative(entry.path(), top).string(),
                       Bytes(bytes.begin(), bytes.end()));
  }
  return files;
}

// Causes above info, and questions left open.
std::string causes_of_items(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  std::string causes;
  for (const Finding& finding : report->findings) {
    if (finding.severity != Severity::kInfo || finding.rule == "not-looked-at")
      causes += finding.cause + "\n";
  }
  return causes;
}

std::string causes_of_items(ItemFilesRead files) {
  auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
  return opened ? causes_of_items(**opened) : opened.error().message;
}

}  // namespace

TEST_CASE("torch_checkpointing: every tensor reads as the ranks held it together") {
  for (const char* name : {"healthy_fsdp2_tp", "healthy_safetensors", "healthy_no_metadata"}) {
    CAPTURE(name);
    auto opened = open_checkpoint(items_case(name) + "/ckpt");
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    auto truth = read_truth(items_case(name) + "/truth.safetensors");
    REQUIRE(truth.has_value());
    std::size_t compared = 0;
    for (const auto& [fqn, expected] : *truth) {
      CAPTURE(fqn);
      auto tensor = (*opened)->find(fqn);
      REQUIRE(tensor.has_value());
      auto values = read_tensor(**opened, *tensor);
      REQUIRE_MESSAGE(values.has_value(), values.error().message);
      CHECK(values->uncovered == 0);
      CHECK(values->bytes == expected.bytes);
      ++compared;
    }
    CHECK(compared == truth->size());
    CHECK(causes_of_items(**opened).empty());
  }
}

TEST_CASE("torch_checkpointing: what a save or a person spoiled is recognised by its cause") {
  const std::pair<const char*, const char*> cases[] = {
      {"broken_stale_file", "not written by the same process"},
      {"broken_files_swapped", "was written by rank"},
      {"broken_metadata_dtype", "in metadata.pkl"},
      {"broken_pipeline_plain_lost", "not in metadata.pkl"},
      {"broken_names_collide", "overwrites the first"},
  };
  for (const auto& [name, part] : cases) {
    CAPTURE(name);
    const std::string causes = causes_of_items(files_of_items(name));
    CAPTURE(causes);
    CHECK(causes.find(part) != std::string::npos);
  }
}

TEST_CASE("torch_checkpointing: a metadata.pkl that imports anything is refused by the name") {
  auto refused = open_checkpoint(items_case("broken_hostile_metadata") + "/ckpt");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("never imports") != std::string::npos);
  CHECK(refused.error().place.offset.has_value());
}

TEST_CASE("torch_checkpointing: a rank's file that is missing is named") {
  const ItemFilesRead all = files_of_items("healthy_fsdp2_tp");
  for (std::size_t lost = 0; lost < all.size(); ++lost) {
    ItemFilesRead files = all;
    const std::string path = files[lost].first;
    // For an item without a resharder the number of ranks is unknown.
    if (!path.starts_with("model_")) continue;
    CAPTURE(path);
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(lost));
    auto opened = open_checkpoint(memory_directory("ckpt", std::move(files)));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    auto report = check(**opened, {});
    REQUIRE(report.has_value());
    CHECK(std::any_of(report->findings.begin(), report->findings.end(), [&](const auto& finding) {
      return finding.rule == "missing-file" && finding.subjects.front() == path;
    }));
  }
}

TEST_CASE("torch_checkpointing: a file cut off or bent is never read wrongly in silence") {
  for (const char* name : {"healthy_fsdp2_tp", "healthy_safetensors"}) {
    const ItemFilesRead all = files_of_items(name);
    for (std::size_t file = 0; file < std::min<std::size_t>(all.size(), 6); ++file) {
      const std::size_t step = std::max<std::size_t>(1, all[file].second.size() / 4);
      for (std::size_t at = 0; at < all[file].second.size(); at += step) {
        CAPTURE(all[file].first);
        CAPTURE(at);
        ItemFilesRead cut = all;
        cut[file].second.resize(at);
        CHECK_FALSE(causes_of_items(std::move(cut)).empty());
        // Any result but a crash is fine.
        ItemFilesRead bent = all;
        bent[file].second[at] ^= std::byte{0x41};
        (void)causes_of_items(std::move(bent));
      }
    }
  }
}

TEST_CASE("torch_checkpointing: names of files give item and rank") {
  CHECK(parse_item_file("step_1_0.pt")->item == "step_1");
  CHECK(parse_item_file("model_12.safetensors")->rank == 12);
  for (const char* name : {"model.pt", "_0.pt", "model_x.pt", "model_0.bin", "model_.pt"})
    CHECK_FALSE(parse_item_file(name).has_value());
  CHECK(dotted_path(std::vector<PathPart>{std::string("state"), std::int64_t{0},
                                          std::string("a.b")}) == "state.0.a.b");
}

TEST_CASE("torch_checkpointing: a save under way is not the newest step, and is said to be one") {
  std::vector<std::pair<std::string, Bytes>> run;
  for (const char* step : {"step-10/", "step-20/", "tmp_step-30/"}) {
    for (auto& [path, bytes] : files_of_items("healthy_safetensors"))
      run.emplace_back(step + path, std::move(bytes));
  }
  auto opened = open_checkpoint(memory_directory("run", run));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(causes_of_items(**opened).empty());
  CHECK((*opened)->opening_findings().back().cause.find("step-20") != std::string::npos);
  std::erase_if(run, [](const auto& file) { return !file.first.starts_with("tmp_"); });
  auto alone = open_checkpoint(memory_directory("run", run));
  REQUIRE_MESSAGE(alone.has_value(), alone.error().message);
  CHECK(causes_of_items(**alone).find("unfinished save") != std::string::npos);
}
