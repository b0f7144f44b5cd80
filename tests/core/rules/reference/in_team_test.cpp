// Findings of several processes with a reference: equal to those of one process, to the byte, with
// all bytes read once by the team.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/facts/reference/comparison_words.h"
#include "core/faulty_store.h"
#include "core/formats/open.h"
#include "core/report/report.h"
#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

// Rows of [rows, columns] in another order: row i is row order(i).
Values in_order(const Values& values, std::int64_t columns,
                const std::function<std::int64_t(std::int64_t)>& order) {
  Values out;
  for (std::int64_t row = 0; row * columns < static_cast<std::int64_t>(values.size()); ++row) {
    auto first = values.begin() + order(row) * columns;
    out.insert(out.end(), first, first + columns);
  }
  return out;
}

Values crossed(const Values& values, std::int64_t side) {
  Values out;
  for (std::int64_t i = 0; i < side; ++i) {
    for (std::int64_t j = 0; j < side; ++j)
      out.push_back(values[static_cast<std::size_t>(j * side + i)]);
  }
  return out;
}

constexpr std::int64_t kLayers = 6, kRows = 256, kSide = 128, kWords = 8192;
constexpr std::uint64_t kHeaderBytes = 64 << 10;  // of all items of a small model

std::string in_layer(std::int64_t layer, const char* rest) {
  return "model.layers." + std::to_string(layer) + "." + rest;
}

// A model with fused rows by halves, squares, an embedding and an untied head; and the same model
// with another fault in every layer.
struct OnDisk {
  TemporaryFolder folder;
  std::vector<MadeTensor> saved, reference;

  void add_both(const std::string& fqn, const Extents& shape, const Values& there,
                const Values& here) {
    reference.push_back(cut_in_rows(fqn, shape, there, 2));
    saved.push_back(cut_in_rows(fqn, shape, here, 2));
  }
  void write() {
    write_checkpoint(folder / "saved", saved);
    write_checkpoint(folder / "reference", reference);
  }
};

void make_mixed_up(OnDisk& disk) {
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    Values fused = numbers_from(layer << 16, kRows * 64);
    auto take_turns = [](std::int64_t row) { return row / 2 + row % 2 * (kRows / 2); };
    disk.add_both(in_layer(layer, "fc1.weight"), {kRows, 64}, fused,
                  layer % 2 == 0 ? in_order(fused, 64, take_turns) : fused);
    Values square = numbers_from((layer << 16) + 7, kSide * kSide);
    disk.add_both(in_layer(layer, "attn.weight"), {kSide, kSide}, square,
                  layer % 3 == 0 ? crossed(square, kSide) : square);
    Values other = numbers_from((layer << 16) + 11, kRows * 64);
    disk.add_both(in_layer(layer, "experts.weight"), {kRows, 64}, other,
                  layer % 3 == 1 ? numbers_from(-9'000, kRows * 64) : other);
  }
  Values words = numbers_from(1 << 22, kRows * 64);
  disk.add_both("model.embed_tokens.weight", {kRows, 64}, words, words);
  disk.reference.push_back(
      cut_in_rows("lm_head.weight", {kRows, 64}, numbers_from(1 << 23, kRows * 64), 2));
}

// A stage that counts its layers from 0, and lost those of another stage.
void make_renumbered(OnDisk& disk) {
  for (std::int64_t layer = 0; layer < 2 * kLayers; ++layer) {
    for (const char* matrix : {"fc1.weight", "fc2.weight"}) {
      Values values = numbers_from((layer << 16) + (matrix[2] == '1' ? 0 : 1 << 24), kRows * 64);
      disk.reference.push_back(cut_in_rows(in_layer(layer, matrix), {kRows, 64}, values, 2));
      if (layer >= kLayers)
        disk.saved.push_back(
            cut_in_rows(in_layer(layer - kLayers, matrix), {kRows, 64}, values, 2));
    }
  }
}

// Unused rows at the end of the vocabulary.
void make_padded(OnDisk& disk) {
  Values rows = numbers_from(5, kWords * 64);
  Values padded = rows;
  padded.resize(padded.size() + 64 * 64, 0);
  disk.reference.push_back(cut_in_rows("model.embed_tokens.weight", {kWords, 64}, rows, 2));
  disk.saved.push_back(cut_in_rows("model.embed_tokens.weight", {kWords + 64, 64}, padded, 4));
  disk.add_both("model.norm.weight", {kRows, 2}, numbers_from(3, kRows * 2),
                numbers_from(3, kRows * 2));
}

std::shared_ptr<const Checkpoint> counting(const std::string& path,
                                           std::atomic<std::uint64_t>& bytes) {
  auto folder = posix_store().read_folder(path);
  REQUIRE(folder.has_value());
  auto opened = open_checkpoint(faulty_directory(
      *folder, [&bytes](const std::string& file, std::uint64_t, std::size_t length) {
        if (file.ends_with(".distcp")) bytes += length;
        return std::nullopt;
      }));
  REQUIRE(opened.has_value());
  return *opened;
}

struct Told {
  std::vector<std::string> by_worker;  // the report of each, as JSON
  std::uint64_t bytes = 0;
};
Told told_by(const OnDisk& disk, int workers, Depth depth) {
  std::atomic<std::uint64_t> bytes{0};
  Told told;
  told.by_worker.resize(static_cast<std::size_t>(workers));
  auto checkpoint = counting(disk.folder / "saved", bytes);
  auto reference = counting(disk.folder / "reference", bytes);
  bytes = 0;
  auto ended = run_on_threads(workers, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(60));
    CheckOptions options;
    options.depth = depth;
    options.reference = reference;
    if (workers > 1) options.team = &team;
    Progress progress;
    SHW_TRY(CheckReport report, check(*checkpoint, options, &progress));
    told.by_worker[static_cast<std::size_t>(transport.rank())] = check_to_json(report);
    return {};
  });
  for (const Status& one : ended) {
    if (!one) FAIL(one.error().message);
  }
  told.bytes = bytes;
  return told;
}

}  // namespace

TEST_CASE("workers find next to a reference what one finds and read as much together") {
  struct Case {
    const char* rule;
    void (*make)(OnDisk&);
  };
  for (const Case& one :
       {Case{"blocks-permuted", make_mixed_up}, Case{"transposed", make_mixed_up},
        Case{"tied-weights", make_mixed_up}, Case{"layers-renumbered", make_renumbered},
        Case{"vocabulary-padding", make_padded}}) {
    CAPTURE(one.rule);
    OnDisk disk;
    one.make(disk);
    disk.write();
    for (Depth depth : {Depth::kHeaders, Depth::kData}) {
      const Told alone = told_by(disk, 1, depth);
      CHECK(alone.by_worker[0].find("\"rule\": \"" + std::string(one.rule)) != std::string::npos);
      for (int workers : {2, 4}) {
        const Told together = told_by(disk, workers, depth);
        for (const std::string& report : together.by_worker) CHECK(report == alone.by_worker[0]);
        // Each worker reads the headers itself, a few KiB per item, and nothing else.
        CAPTURE(alone.bytes);
        CHECK(together.bytes <
              alone.bytes + alone.bytes / 2 + static_cast<std::uint64_t>(workers) * kHeaderBytes);
      }
    }
  }
}

TEST_CASE("of an embedding that is padded only the rows at its end are read") {
  OnDisk disk;
  make_padded(disk);
  disk.write();
  std::atomic<std::uint64_t> bytes{0};
  auto checkpoint = counting(disk.folder / "saved", bytes);
  auto embedding = checkpoint->find("model.embed_tokens.weight");
  REQUIRE(embedding.has_value());
  bytes = 0;
  CheckOptions options;
  options.depth = Depth::kHeaders;
  options.reference = opened(disk.folder / "reference");
  auto report = check(*checkpoint, options);
  REQUIRE(report.has_value());
  REQUIRE(first_of(*report, "vocabulary-padding") != nullptr);
  CHECK(first_of(*report, "vocabulary-padding")->subjects ==
        std::vector<std::string>{"model.embed_tokens.weight"});
  // Out of 2 MB; headers are read together with the bytes after them.
  CHECK(bytes < kWords * 64 * 4 / 4);
}

TEST_CASE("a worker that is stopped next to a reference ends the others who are reported of it") {
  OnDisk disk;
  make_mixed_up(disk);
  disk.write();
  auto checkpoint = opened(disk.folder / "saved"), reference = opened(disk.folder / "reference");
  std::vector<std::string> said(3);
  auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(60));
    CheckOptions options;
    options.depth = Depth::kHeaders;
    options.reference = reference;
    options.team = &team;
    Progress progress;
    if (transport.rank() == 1) progress.cancel();
    auto report = check(*checkpoint, options, &progress);
    REQUIRE_FALSE(report.has_value());
    // The program does the same.
    team.stop(report.error());
    said[static_cast<std::size_t>(transport.rank())] = report.error().message;
    return {};
  });
  CHECK(said[1] == "stopped on request");
  for (std::size_t other : {0u, 2u})
    CHECK(said[other].find("worker 1 stopped: stopped on request") != std::string::npos);
}

TEST_CASE("what was compared comes out of a message as it went in and cut messages are refused") {
  TilePlaces places;
  places.answer = PlacesAnswer::kPartly;
  places.rounded = true;
  places.boxes = {{{0, 1}, {2, 3}}, {{}, {}}};
  places.moves = {{{{4}, {5}}, {{6}, {7}}}};
  places.tiles = 12;
  places.doubled = -1;
  places.likeness = 0.625;
  places.right = {0, 3};
  places.strange = {{5, "what it holds", ""}};
  BlockOrder order{3, 64, {2, 0, 1}};
  OrientationFound found{Orientation::kMixed, true, 0.375, 99, true, 8, 3};
  Encoder payload;
  add(payload, places);
  add(payload, order);
  add(payload, found);
  const Bytes bytes = payload.take();
  auto read = [](BytesView from) -> Result<OrientationFound> {
    Decoder in(from);
    SHW_TRY(TilePlaces back, decode_tile_places(in));
    CHECK(back.answer == PlacesAnswer::kPartly);
    CHECK((back.rounded && !back.sampled && !back.telling));
    CHECK((back.boxes.size() == 2 && back.boxes[0] == Box{{0, 1}, {2, 3}}));
    CHECK((back.moves.size() == 1 && back.moves[0].found == Box{{6}, {7}}));
    CHECK((back.tiles == 12 && back.doubled == -1 && back.nowhere == 0));
    CHECK(back.likeness == 0.625);
    CHECK(back.right == std::vector<std::size_t>{0, 3});
    CHECK((back.strange.size() == 1 && back.strange[0].chunk == 5));
    CHECK((back.strange[0].holds == "what it holds" && back.strange[0].wanted.empty()));
    SHW_TRY(BlockOrder blocks, decode_block_order(in));
    CHECK((blocks.dim == 3 && blocks.block == 64));
    CHECK(blocks.order == std::vector<std::int64_t>{2, 0, 1});
    return decode_orientation(in);
  };
  auto back = read(bytes);
  REQUIRE(back.has_value());
  CHECK(back->orientation == Orientation::kMixed);
  CHECK((back->exact && back->sampled && back->margin == 0.375));
  CHECK((back->compared == 99 && back->matrices == 8 && back->transposed == 3));
  for (std::size_t length = bytes.size(); length-- > 0;) {
    Decoder in(BytesView(bytes).first(length));
    bool whole = decode_tile_places(in) && decode_block_order(in) && decode_orientation(in);
    CHECK_FALSE(whole);
  }
}
