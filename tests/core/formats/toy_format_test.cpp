// Proves that a format is only its folder, its row and its tests: no other code knows this one.
#include "core/formats/toy_format.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/formats/items/item_cursor.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/repair/plan/plan.h"
#include "core/report/listing.h"
#include "core/report/map_text.h"
#include "core/report/report.h"

using namespace shw;
using namespace shw::test;

namespace {

std::shared_ptr<const Checkpoint> toy_checkpoint(
    const std::vector<std::pair<std::string, Bytes>>& files = toy_files()) {
  auto rows = with_toy();
  auto opened = open_checkpoint(memory_directory("toy", files), nullptr, rows);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

std::vector<float> floats(const Bytes& bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

TEST_CASE("a format of the test alone is recognised by its first bytes and opens") {
  auto checkpoint = toy_checkpoint();
  CHECK(checkpoint->format().name == "toy");
  CHECK(checkpoint->tensor_count() == 2);
  CHECK(checkpoint->rank_count() == 2);
  auto refused = open_checkpoint(memory_directory("toy", toy_files()));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUnsupported);
}

TEST_CASE("tensors of different codecs and a transposed view read back from one checkpoint") {
  auto checkpoint = toy_checkpoint();
  auto w = read_tensor(*checkpoint, *checkpoint->find("w"));
  REQUIRE_MESSAGE(w.has_value(), w.error().message);
  std::vector<float> wanted(24);
  for (std::size_t i = 0; i < 24; ++i) wanted[i] = static_cast<float>(i);
  CHECK(floats(w->bytes) == wanted);
  auto t = read_tensor(*checkpoint, *checkpoint->find("t"));
  REQUIRE_MESSAGE(t.has_value(), t.error().message);
  CHECK(floats(t->bytes) == std::vector<float>{1, 7, 2, 8, 3, 9});
  CHECK(checkpoint->codec(ChunkId{0}).name == "raw");
  CHECK(checkpoint->codec(ChunkId{1}).name == "flipped");
}

TEST_CASE("a box of a transposed view is cut out of it and has no byte runs") {
  auto checkpoint = toy_checkpoint();
  ChunkId view = checkpoint->chunks(*checkpoint->find("t"))[0];
  Box box{{1, 0}, {2, 1}};
  auto part = ItemCursor(*checkpoint).read(view, box);
  REQUIRE_MESSAGE(part.has_value(), part.error().message);
  CHECK(floats(*part) == std::vector<float>{2, 3});
  auto runs = ranges(*checkpoint, view, box);
  REQUIRE(runs.has_value());
  CHECK_FALSE(runs->has_value());
  auto plain = ranges(*checkpoint, ChunkId{0}, {{1, 2}, {1, 3}});
  REQUIRE(plain.has_value());
  REQUIRE(plain->has_value());
  CHECK(plain->value() == std::vector<ByteRun>{{checkpoint->item(ChunkId{0})->file, 32, 12}});
  auto decoded = ranges(*checkpoint, ChunkId{1}, {{0, 0}, {1, 1}});
  REQUIRE(decoded.has_value());
  CHECK_FALSE(decoded->has_value());
}

TEST_CASE("writers and copies are what the opener said") {
  auto checkpoint = toy_checkpoint();
  CHECK(checkpoint->writer(ChunkId{0}) == 0u);
  CHECK(checkpoint->writer(ChunkId{1}) == 1u);
  CHECK(checkpoint->replicas(ChunkId{0}).empty());
  auto copies = checkpoint->replicas(ChunkId{1});
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].writer == 2u);
  CHECK(checkpoint->file(checkpoint->place(copies[0].storage).file).path == "c.bin");
}

TEST_CASE("a view that reaches beyond its storage is damage") {
  auto files = toy_files();
  std::string index(reinterpret_cast<const char*>(files[0].second.data()), files[0].second.size());
  index.replace(index.find("48 1 1,6"), 8, "48 1 1,9");
  auto text = std::as_bytes(std::span(index));
  files[0].second = {text.begin(), text.end()};
  auto checkpoint = toy_checkpoint(files);
  auto read = read_tensor(*checkpoint, *checkpoint->find("t"));
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().kind == ErrorKind::kDamaged);
  CHECK(read.error().place.tensor == "t");
}

TEST_CASE("a format of the test alone is checked, shown, mapped and planned") {
  auto checkpoint = toy_checkpoint();
  auto report = check(*checkpoint, CheckOptions{Depth::kData, nullptr, std::nullopt});
  REQUIRE_MESSAGE(report.has_value(), report.error().message);
  for (const Finding& finding : report->findings) CHECK_MESSAGE(false, finding.cause);
  CHECK(info_to_json(*checkpoint).find("\"format\": \"toy\"") != std::string::npos);
  TensorId w = *checkpoint->find("w");
  CHECK(tensor_to_json(*checkpoint, w, nullptr, 0).find("b.bin") != std::string::npos);
  CHECK(tensor_map_to_json("w", saved_tiling(*checkpoint, w), nullptr).find("\"writer\": 1") !=
        std::string::npos);
  auto plan = make_plan(*checkpoint, *report, {});
  REQUIRE(plan.has_value());
  CHECK(plan->empty());
}

TEST_CASE("a tile that is not there is found in a format of the test alone") {
  auto files = toy_files();
  files[1].second.resize(40);
  auto report =
      check(*toy_checkpoint(files), CheckOptions{Depth::kMetadata, nullptr, std::nullopt});
  REQUIRE(report.has_value());
  REQUIRE_FALSE(report->findings.empty());
  CHECK(report->findings[0].rule == "short-file");
}
