// Optimizer states that Megatron-core 0.12.3 flattened (torch-2.6/mcore12 in tests/data).
#include "core/formats/dcp/flattened_states.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "core/fixtures.h"
#include "core/formats/dcp/dcp_read.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kFolder = std::string(SHW_TEST_DATA) + "/torch-2.6/mcore12";

std::shared_ptr<const Directory> folder() {
  auto opened = open_directory(kFolder);
  REQUIRE(opened.has_value());
  return *opened;
}

// The states as they are: the formats of DCP without Megatron's marker do not reshape them.
std::shared_ptr<const Checkpoint> as_grids() {
  auto opened = read_dcp(folder(), nullptr);
  REQUIRE(opened.has_value());
  return *opened;
}

Bytes elements_of(const Checkpoint& checkpoint, TensorId tensor) {
  auto read = read_tensor(checkpoint, tensor);
  REQUIRE_MESSAGE(read.has_value(), read.error().message);
  return read->bytes;
}

// Element by element: place `e` of the part at `index` in the grid is the e-th of that part, row by
// row.
Bytes unflattened(const Bytes& grid, const Extents& sizes, const Extents& shape) {
  Extents part;
  for (std::size_t d = 0; d < shape.size(); ++d) part.push_back(shape[d] / sizes[d]);
  Bytes out(grid.size());
  const std::int64_t count = *volume(shape), each = sizes.back();
  for (std::int64_t at = 0; at < count; ++at) {
    std::int64_t index = at / each, inner = at % each, to = 0;
    Extents place(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
      place[d] = index % sizes[d] * part[d] + inner % part[d];
      index /= sizes[d];
      inner /= part[d];
    }
    for (std::size_t d = 0; d < shape.size(); ++d) to = to * shape[d] + place[d];
    std::memcpy(out.data() + 4 * to, grid.data() + 4 * at, 4);
  }
  return out;
}

}  // namespace

TEST_CASE("flattened states: each has the shape and the elements of its parameter") {
  auto truth = read_truth(std::string(SHW_TEST_DATA) + "/torch-2.6/mcore12_truth.safetensors");
  REQUIRE(truth.has_value());
  auto opened = open_checkpoint(kFolder);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const Checkpoint& checkpoint = **opened;
  CHECK(checkpoint.tensor_count() == truth->size());
  std::size_t compared = 0;
  for (TensorId tensor : checkpoint.tensors()) {
    const std::string fqn(checkpoint.fqn(tensor));
    CAPTURE(fqn);
    REQUIRE(truth->contains(fqn));
    CHECK(same(checkpoint.shape(tensor), truth->at(fqn).shape));
    CHECK(elements_of(checkpoint, tensor) == truth->at(fqn).bytes);
    ++compared;
  }
  CHECK(compared == 36);
}

TEST_CASE("flattened states: they equal the grid taken apart element by element") {
  auto opened = open_checkpoint(kFolder);
  REQUIRE(opened.has_value());
  const auto grids = as_grids();
  std::size_t compared = 0;
  for (TensorId tensor : grids->tensors()) {
    const auto whole = (*opened)->find(grids->fqn(tensor));
    REQUIRE(whole.has_value());
    const Extents sizes = copy_of(grids->shape(tensor)), shape = copy_of((*opened)->shape(*whole));
    if (sizes == shape) continue;
    CHECK(elements_of(**opened, *whole) == unflattened(elements_of(*grids, tensor), sizes, shape));
    ++compared;
  }
  CHECK(compared == 27);
}

TEST_CASE("flattened states: a sound checkpoint raises nothing, and knows who wrote each state") {
  auto opened = open_checkpoint(kFolder);
  REQUIRE(opened.has_value());
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    CAPTURE(finding.rule + ": " + finding.cause);
    CHECK(finding.severity == Severity::kInfo);
  }
  const auto state =
      (*opened)->find("optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight");
  REQUIRE(state.has_value());
  for (ChunkId chunk : (*opened)->chunks(*state)) CHECK((*opened)->writer(chunk).has_value());
}

TEST_CASE("flattened states: a changed byte of an item is found in the state that it belongs to") {
  auto entries = folder()->list();
  REQUIRE(entries.has_value());
  std::vector<std::pair<std::string, Bytes>> files;
  for (const Entry& entry : *entries) {
    auto source = folder()->open(entry.path);
    REQUIRE(source.has_value());
    auto bytes = read_bytes(**source, 0, (*source)->size());
    REQUIRE(bytes.has_value());
    files.emplace_back(entry.path, std::move(*bytes));
  }
  auto sound = open_checkpoint(memory_directory("mcore", files));
  REQUIRE(sound.has_value());
  const auto state = (*sound)->find("optimizer.state.exp_avg.output_layer.weight");
  REQUIRE(state.has_value());
  const ChunkId chunk = *(*sound)->chunks(*state).begin();
  auto open = read_item_header(**sound, chunk);
  REQUIRE(open.has_value());
  const std::string path = (*sound)->file((*sound)->item(chunk)->file).path;
  for (auto& [name, bytes] : files) {
    if (name == path) bytes.at(open->payload_offset + 5) ^= std::byte{4};
  }
  auto damaged = open_checkpoint(memory_directory("mcore", files));
  REQUIRE(damaged.has_value());
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**damaged, options);
  REQUIRE(report.has_value());
  bool is_found = false;
  for (const Finding& finding : report->findings)
    is_found = is_found || (finding.severity == Severity::kError &&
                            finding.cause.find("output_layer") != std::string::npos);
  CHECK(is_found);
}
