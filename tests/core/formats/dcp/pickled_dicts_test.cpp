// A state dict saved by torch 2.15 with DefaultSavePlanner(flatten_state_dict=False): a Linear
// ("model"), its AdamW ("optim"), a number ("step") and a tensor ("ema") (tests/data).
#include "core/formats/dcp/pickled_dicts.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/io/read_whole.h"
#include "core/read_all.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kPickledDicts = std::string(SHW_TEST_DATA) + "/torch-2.15/pickled_dicts";
constexpr const char* kPickledData = "__0_0.distcp";

Bytes bytes_of_pickled(const std::string& name) {
  return whole_file(kPickledDicts + "/ckpt/" + name);
}

OpenedCheckpoint open_with_data(Bytes data) {
  return open_checkpoint(memory_directory(
      "pickled", {{".metadata", bytes_of_pickled(".metadata")}, {kPickledData, std::move(data)}}));
}

// 0 if there is nothing above info.
std::size_t count_of_problems(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options, nullptr);
  REQUIRE_MESSAGE(report.has_value(), report.error().message);
  return static_cast<std::size_t>(
      std::ranges::count_if(report->findings, [](const Finding& finding) {
        return finding.severity != Severity::kInfo || finding.rule == "not-looked-at";
      }));
}

}  // namespace

TEST_CASE("pickled dicts in DCP: their tensors are read from the pickles") {
  auto opened = open_checkpoint(kPickledDicts + "/ckpt");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const Checkpoint& c = **opened;
  auto truth = read_truth(kPickledDicts + "/truth.safetensors");
  REQUIRE(truth.has_value());
  CHECK(c.tensor_count() == truth->size());
  check_elements(c, *truth);
  CHECK(count_of_problems(c) == 0);
  REQUIRE(c.opening_findings().size() == 1);
  CHECK(c.opening_findings()[0].severity == Severity::kInfo);
  std::vector<std::string> entries;
  for (const NonTensorEntry& object : c.objects()) entries.push_back(object.fqn);
  CHECK(std::ranges::find(entries, "step") != entries.end());
  CHECK(std::ranges::find(entries, "model") == entries.end());
  CHECK(std::ranges::find(entries, "optim.param_groups.0.lr") != entries.end());
  const TensorId weight = *c.find("model.weight");
  CHECK(c.writer(*c.chunks(weight).begin()) == std::optional<std::uint32_t>(0));
  CHECK(c.format().writer == nullptr);
}

TEST_CASE("pickled dicts in DCP: a changed byte of any tensor is reported") {
  auto sound = open_checkpoint(kPickledDicts + "/ckpt");
  REQUIRE(sound.has_value());
  for (TensorId tensor : (*sound)->tensors()) {
    const ChunkId chunk = *(*sound)->chunks(tensor).begin();
    if (!(*sound)->view(chunk)) continue;  // .metadata names it
    Bytes data = bytes_of_pickled(kPickledData);
    data.at(static_cast<std::size_t>((*sound)->place((*sound)->storage(chunk)).offset)) ^=
        std::byte{4};
    auto changed = open_with_data(std::move(data));
    REQUIRE(changed.has_value());
    CAPTURE((*sound)->fqn(tensor));
    CHECK(count_of_problems(**changed) > 0);
  }
}

TEST_CASE("pickled dicts in DCP: a pickle that cannot be read is not a clean checkpoint") {
  const Bytes whole = bytes_of_pickled(kPickledData);
  for (std::size_t length : {std::size_t{0}, std::size_t{100}, whole.size() / 2}) {
    auto opened =
        open_with_data(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    if (opened) CHECK(count_of_problems(**opened) > 0);
  }
  for (std::size_t at = 0; at < whole.size(); at += 13) {
    Bytes bent = whole;
    bent[at] ^= std::byte{0xFF};
    auto opened = open_with_data(std::move(bent));
    if (opened) CHECK((*opened)->tensor_count() > 0);
  }
}
