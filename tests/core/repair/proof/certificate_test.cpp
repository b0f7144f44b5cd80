// Contents of a certificate: small for any number of tiles, and still sufficient to name the broken
// one.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/proof/digests.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

// Two tensors of rows, with one tile per row, assigned to the ranks in turn.
constexpr std::int64_t kTiles = 300;

void write_tile_rows(const std::string& path, std::uint32_t ranks) {
  std::vector<MadeTensor> tensors;
  for (const char* fqn : {"w", "v"}) {
    MadeTensor tensor{fqn, {kTiles, 2}, {}};
    for (std::int64_t i = 0; i < kTiles; ++i)
      tensor.chunks.push_back(
          {{{i, 0}, {1, 2}}, {1, 2}, {2 * i, 2 * i + 1}, static_cast<std::uint32_t>(i) % ranks});
    tensors.push_back(std::move(tensor));
  }
  write_checkpoint(path, tensors);
}

// Reverses the rows of "w".
Plan turned_round(const Checkpoint& checkpoint) {
  TensorId w = *checkpoint.find("w");
  Finding finding;
  finding.rule = "planted";
  finding.subjects = {"w"};
  WrongBoxes relabelled{w, {kTiles, 2}, {}};
  for (std::int64_t i = 0; i < kTiles; ++i)
    relabelled.boxes.push_back({{kTiles - 1 - i, 0}, {1, 2}});
  finding.diagnoses = {relabelled};
  CheckReport report;
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  return std::move(*plan);
}

VerifyReport verify_alone(const std::string& path) {
  auto report = verify_repair(path);
  if (!report) FAIL(report.error().message);
  return *report;
}

// Flips a bit in the first element of a chunk.
void flip_tile(const std::string& folder, std::string_view fqn, std::uint32_t chunk) {
  auto checkpoint = opened(folder);
  ChunkId id = checkpoint->chunks(*checkpoint->find(fqn))[chunk];
  auto header = read_item_header(*checkpoint, id);
  REQUIRE(header.has_value());
  std::string path = folder + "/" + checkpoint->file(checkpoint->item(id)->file).path;
  std::string data = contents(path);
  data[header->payload_offset] = static_cast<char>(data[header->payload_offset] ^ 1);
  put(path, data);
}

}  // namespace

TEST_CASE("a certificate has one line per tensor, however many tiles it has") {
  TemporaryFolder folder;
  write_tile_rows(folder / "ckpt", 4);
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(apply_plan(*checkpoint, turned_round(*checkpoint), {folder / "out"}).has_value());
  std::string text = contents(folder / "out/certificate.json");
  auto lines_with = [&](const std::string& what) {
    int lines = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++lines;
    return lines;
  };
  CHECK(lines_with("\n  \"w\": {\"kept\":600,") == 1);
  CHECK(lines_with("\n  \"v\": {\"kept\":600,") == 1);
  CHECK(lines_with("\n") < 30);
  auto json = nlohmann::json::parse(text);
  CHECK(json["tensors"]["w"]["items"] == kTiles);
  // A relabel changes no byte: the digests of the items stay equal, those of the tiles differ.
  CHECK(json["tensors"]["w"]["before"] == json["tensors"]["w"]["after"]);
  CHECK(json["tensors"]["w"]["tiles"] != json["tensors"]["v"]["tiles"]);
  CHECK(verify_alone(folder / "out").outcome == VerifyReport::Outcome::kProved);
}

TEST_CASE("a certificate that is written and read says the same, names of any bytes included") {
  Certificate certificate;
  certificate.source = "a \"source\"";
  certificate.lossless = false;
  certificate.steps = {"one", "two"};
  certificate.plan = R"({"b": [1, 2.5], "a": {"z": null, "y": "\u00e4"}})";
  for (const char* fqn : {"z", "a\\b", "\xc3\xa4", "", "a\"b", "\n"}) {
    TensorCertificate entry;
    entry.fqn = fqn;
    entry.kept = 3;
    entry.lost = 1;
    entry.lost_boxes = {{{0, 1}, {1, 1}}};
    entry.items = 2;
    entry.after = "after";
    entry.tiles = "tiles";
    entry.shape = {2, 2};
    entry.dtype = "float32";
    certificate.tensors.push_back(entry);
  }
  certificate.files = {{"z.bin", 7, "rest", "items"}, {"a.txt", 1, "rest", ""}};
  certificate.objects = {{"step", "item"}};
  certificate.entries = {{"step", "other", "item"}};
  std::string text = certificate_to_json(certificate);
  auto back = certificate_from_json(text, "certificate.json");
  if (!back) FAIL(back.error().message);
  CHECK(back->seal == Certificate::Seal::kIntact);
  CHECK(back->tensors.size() == certificate.tensors.size());
  for (TensorCertificate& entry : back->tensors) {
    CHECK(entry.items == 2);
    CHECK(entry.tiles == "tiles");
    CHECK(entry.lost_boxes == certificate.tensors[0].lost_boxes);
  }
  // Keys are sorted by their bytes when read, so writing again gives the same hash.
  auto hash_in = [](const std::string& json) {
    return nlohmann::json::parse(json)["content_hash"].get<std::string>();
  };
  CHECK(hash_in(certificate_to_json(*back)) == hash_in(text));
  auto bare = nlohmann::json::parse(text);
  bare.erase("content_hash");
  std::string canonical = bare.dump();
  CHECK(hash_in(text) == to_hex(hash_of(std::as_bytes(std::span(canonical)))));
}

TEST_CASE("the broken tile is named where its tensor and its file cross") {
  TemporaryFolder folder;
  write_tile_rows(folder / "ckpt", kTiles);
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(apply_plan(*checkpoint, turned_round(*checkpoint), {folder / "out"}).has_value());
  flip_tile(folder / "out", "v", 17);
  VerifyReport report = verify_alone(folder / "out");
  CHECK(report.outcome == VerifyReport::Outcome::kBroken);
  REQUIRE(report.reasons.size() == 1);
  CHECK(report.reasons[0] ==
        "v: the chunk at [17, 0] in __17_0.distcp differs from the certified one");
}

TEST_CASE("where many tiles share a tensor and a file their number and the file are named") {
  TemporaryFolder folder;
  write_tile_rows(folder / "ckpt", 3);
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(apply_plan(*checkpoint, turned_round(*checkpoint), {folder / "out"}).has_value());
  flip_tile(folder / "out", "w", 4);
  VerifyReport report = verify_alone(folder / "out");
  CHECK(report.outcome == VerifyReport::Outcome::kBroken);
  REQUIRE(report.reasons.size() == 1);
  CHECK(report.reasons[0] ==
        "w: of its 100 chunks in __1_0.distcp one or more differ from the certified ones");
}

TEST_CASE("certificates: one that was written before 0.1.0 is refused as another version") {
  TemporaryFolder folder;
  write_tile_rows(folder / "ckpt", 3);
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(apply_plan(*checkpoint, turned_round(*checkpoint), {folder / "out"}).has_value());
  auto json = nlohmann::json::parse(contents(folder / "out/certificate.json"));
  for (auto& tensor : json["tensors"]) {
    for (const char* key : {"items", "before", "after", "tiles"}) tensor.erase(key);
    tensor["items_after"] = nlohmann::json::array();
    tensor["layout"] = "0";
  }
  auto read = certificate_from_json(json.dump(), "certificate.json");
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().kind == ErrorKind::kUnsupported);
  put(folder / "out/certificate.json", json.dump());
  CHECK(verify_alone(folder / "out").outcome == VerifyReport::Outcome::kUndecided);
}

TEST_CASE("digests see bytes and boxes, and not the order in which they are reported") {
  const Hash128 same{1, 2}, another{0, 9};
  ItemHashes hashes{{3, 1}, {1, ~std::uint64_t{0}}, {1, 7}, kNoHash};
  std::string digest = digest_of_items(hashes);
  std::reverse(hashes.begin(), hashes.end());
  CHECK(digest_of_items(hashes) == digest);
  // As the texts of hashes, sorted, side by side.
  std::vector<std::string> texts;
  for (const Hash128& hash : hashes) texts.push_back(hash == kNoHash ? "" : to_hex(hash));
  std::sort(texts.begin(), texts.end());
  std::string all;
  for (const std::string& text : texts) all += text;
  CHECK(to_hex(hash_of(std::as_bytes(std::span(all)))) == digest);
  hashes[1] = another;
  CHECK(digest_of_items(hashes) != digest);

  TemporaryFolder folder;
  write_tile_rows(folder / "ckpt", 2);
  auto checkpoint = opened(folder / "ckpt");
  ItemHashes of_chunks(checkpoint->chunk_count(), same);
  TensorId w = *checkpoint->find("w"), v = *checkpoint->find("v");
  CHECK(digest_of_tiles(*checkpoint, w, of_chunks) == digest_of_tiles(*checkpoint, v, of_chunks));
  of_chunks[index_of(checkpoint->chunks(w)[5])] = another;
  std::string other = digest_of_tiles(*checkpoint, w, of_chunks);
  CHECK(other != digest_of_tiles(*checkpoint, v, of_chunks));
  // The two items swap boxes.
  std::swap(of_chunks[index_of(checkpoint->chunks(w)[5])],
            of_chunks[index_of(checkpoint->chunks(w)[6])]);
  CHECK(digest_of_tiles(*checkpoint, w, of_chunks) != other);
  CHECK(digests_of_files(*checkpoint, of_chunks).size() == checkpoint->files().size());
}
