// Long runs of a source's bytes are placed so that a file system may share their blocks; the
// placement is the same whether it does.
#include "core/exec/align_outputs.h"

#include <tbb/task_arena.h>

#include <random>

#include "core/faulty_store.h"
#include "core/io/copy_range.h"
#include "core/rules/check.h"
#include "core/transform/drawn_plan.h"

using namespace shw;
using namespace shw::test;

namespace {

struct LargeTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  std::vector<Box> tiles;
};

// Tensors of about a MiB or more, and some smaller; no size is a multiple of a block. Each tile is
// written by another rank.
std::vector<LargeTensor> large_tensors() {
  return {{"a", Dtype::kFloat32, {700, 501}, {{{0, 0}, {700, 501}}}},
          {"b", Dtype::kBfloat16, {1500, 1001}, {{{0, 0}, {700, 1001}}, {{700, 0}, {800, 1001}}}},
          {"c", Dtype::kFloat32, {3, 5}, {{{0, 0}, {3, 5}}}},
          {"d", Dtype::kFloat16, {601, 999}, {{{0, 0}, {601, 999}}}},
          {"e", Dtype::kFloat32, {300, 300}, {{{0, 0}, {300, 300}}}}};
}

// Writes the checkpoint durably.
void save_large(MemoryStore& durable, const std::vector<LargeTensor>& tensors) {
  std::mt19937_64 random(5);
  MemoryStore store;
  auto folder = store.make_folder("/ck");
  REQUIRE(folder.has_value());
  std::vector<std::unique_ptr<ByteSink>> sinks;
  DcpMetadata metadata;
  for (const LargeTensor& tensor : tensors) {
    DcpTensor out{tensor.fqn, tensor.dtype, false, tensor.shape, {}, {}};
    for (std::size_t rank = 0; rank < tensor.tiles.size(); ++rank) {
      const Box& box = tensor.tiles[rank];
      const std::string file = "__" + std::to_string(rank) + "_0.distcp";
      if (rank == sinks.size()) {
        auto made = (*folder)->create(file);
        REQUIRE(made.has_value());
        sinks.push_back(std::move(*made));
      }
      Bytes bytes(static_cast<std::size_t>(*volume(box.sizes)) * size_of(tensor.dtype));
      // Small numbers like weights, without NaN.
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(random() & 0x3F);
      const std::uint64_t offset = sinks[rank]->position();
      auto length = write_torch_item(*sinks[rank], tensor.dtype, box.sizes, bytes);
      REQUIRE(length.has_value());
      out.chunks.push_back({box.offsets, box.sizes, {file, offset, *length, {}}});
    }
    metadata.tensors.push_back(std::move(out));
  }
  for (auto& sink : sinks) REQUIRE(sink->finish());
  auto sink = (*folder)->create(".metadata");
  REQUIRE(sink.has_value());
  REQUIRE(write_dcp_metadata(metadata, **sink));
  REQUIRE((*sink)->finish());
  for (const std::string& name : store.names("/ck"))
    durable.put("/ck/" + name, *store.get("/ck/" + name));
}

const Format& format_named(std::string_view name) {
  for (const FormatRow& row : formats()) {
    if (row.format->name == name) return *row.format;
  }
  FAIL("there is no " << name);
  return kUnknownFormat;
}

struct LargeRun {
  std::string from = "/ck", out = "/out", format = "dcp";
  std::vector<Step> steps = {};
  int threads = 2;
};

Result<RepairResult> make_of(Store& store, std::shared_ptr<const Checkpoint> source,
                             const LargeRun& wanted) {
  const TargetState all = taken(std::move(source), wanted.steps);
  TargetRun run;
  run.form = {&format_named(wanted.format), 0, wanted.out};
  for (const Step& step : wanted.steps) run.steps.push_back(to_text(step));
  run.steps.push_back("written as " + wanted.format);
  Plan plan;
  plan.steps = wanted.steps;
  plan.format = wanted.format;
  plan.fingerprint = fingerprint(all.source());
  run.plan = encode_stored_plan(plan_to_json(plan));
  tbb::task_arena arena(wanted.threads);
  return arena.execute([&] { return make_target(store, all, run, nullptr); });
}

// Makes the result and compares it with its source. Returns how many of its bytes are shared.
std::uint64_t shared_by(MemoryStore& store, const LargeRun& wanted) {
  const std::uint64_t before = store.shared_bytes();
  auto source = open_in(store, wanted.from);
  auto made = make_of(store, source, wanted);
  if (!made) FAIL(made.error().message << " " << made.error().place.file);
  const std::uint64_t shared = store.shared_bytes() - before;
  auto result = open_in(store, wanted.out);
  auto proof = verify_repair(*result, nullptr, source);
  REQUIRE(proof.has_value());
  if (proof->outcome != VerifyReport::Outcome::kProved) FAIL(proof->reasons.front());
  REQUIRE(proof->against.has_value());
  CHECK(proof->against->compared == proof->kept + proof->lost);
  auto report = check(*result, {}, nullptr);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings)
    CHECK_MESSAGE(finding.severity == Severity::kInfo, finding.cause);
  for (const Finding& finding : report->findings) CHECK(finding.rule != "leftover-data");
  return shared;
}

std::map<std::string, Bytes> files_of(const Store& store, const MemoryStore& memory,
                                      const std::string& out) {
  std::map<std::string, Bytes> files;
  auto entries = store.read_folder(out).value()->list();
  REQUIRE(entries.has_value());
  for (const Entry& entry : *entries) files[entry.path] = *memory.get(out + "/" + entry.path);
  return files;
}

// Number of tiles that are long enough, and their bytes.
struct LongTiles {
  std::uint64_t count = 0, bytes = 0;
};
LongTiles long_tiles(const Checkpoint& checkpoint) {
  LongTiles tiles;
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i) {
    const ChunkId chunk{i};
    const auto bytes = static_cast<std::uint64_t>(*volume(checkpoint.sizes(chunk))) *
                       size_of(checkpoint.dtype(checkpoint.tensor_of(chunk)));
    if (bytes < kMinShared) continue;
    ++tiles.count;
    tiles.bytes += bytes;
  }
  return tiles;
}

void check_all_long_tiles_are_shared(const Checkpoint& result, std::uint64_t shared) {
  const LongTiles tiles = long_tiles(result);
  REQUIRE(tiles.count >= 3);
  CHECK(shared <= tiles.bytes + tiles.count * 2 * kShareBlock);
  CHECK(shared + tiles.count * 2 * kShareBlock > tiles.bytes);
}

// Number of bytes outside items in all files.
std::uint64_t bytes_between_items(const Checkpoint& checkpoint) {
  std::uint64_t items = 0, files = 0;
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i)
    items += static_cast<std::uint64_t>(checkpoint.item(ChunkId{i})->length);
  for (const FileRow& file : checkpoint.files()) {
    if (file.path.ends_with(".distcp")) files += file.size;
  }
  REQUIRE(files >= items);
  return files - items;
}

}  // namespace

TEST_CASE("what is kept in new files is shared where it is long and gaps are less than a block") {
  MemoryStore store;
  store.share_blocks();
  save_large(store, large_tensors());
  const LargeRun run{.steps = {RenameStep{"a", "x.a"}, DropStep{{"e"}}, DropStep{{"c"}}}};
  const std::uint64_t shared = shared_by(store, run);
  auto result = open_in(store, "/out");
  check_all_long_tiles_are_shared(*result, shared);
  const std::uint64_t between = bytes_between_items(*result);
  CHECK(between > 0);
  CHECK(between < long_tiles(*result).count * kShareBlock);
}

TEST_CASE("items that keep their neighbours need no gaps") {
  MemoryStore store;
  store.share_blocks();
  save_large(store, large_tensors());
  const std::uint64_t shared = shared_by(store, {.steps = {RenameStep{"a", "a2"}}});
  auto source = open_in(store, "/ck"), result = open_in(store, "/out");
  CHECK(bytes_between_items(*result) == 0);
  // Short items between long ones are shared with them.
  CHECK(shared > long_tiles(*result).bytes + 300 * 300 * 4 - 4 * kShareBlock);
}

TEST_CASE("tiles that are made of one long run each are shared too") {
  MemoryStore store;
  store.share_blocks();
  save_large(store, large_tensors());
  RetileStep halves{{"d"}, {}};
  halves.tiles = {{{{0, 0}, {10, 999}}, 0}, {{{10, 0}, {591, 999}}, 1}};
  RetileStep two{{"b"}, {}};
  two.tiles = {
      {{{0, 0}, {30, 1001}}, 0}, {{{30, 0}, {670, 1001}}, 2}, {{{700, 0}, {800, 1001}}, 1}};
  const std::uint64_t shared = shared_by(store, {.steps = {halves, two}});
  check_all_long_tiles_are_shared(*open_in(store, "/out"), shared);
}

TEST_CASE("safetensors files get a header that lets them share what they can") {
  MemoryStore store;
  store.share_blocks();
  // All sizes but one are multiples of a block, which shifts what follows.
  std::vector<LargeTensor> tensors;
  for (int i = 0; i < 4; ++i)
    tensors.push_back(
        {"w" + std::to_string(i), Dtype::kFloat32, {512, 1024}, {{{0, 0}, {512, 1024}}}});
  save_large(store, tensors);
  shared_by(store, {.out = "/hf", .format = "safetensors"});
  auto hf = open_in(store, "/hf");
  for (const char* format : {"safetensors", "dcp"}) {
    const std::uint64_t shared =
        shared_by(store, {.from = "/hf",
                          .out = std::string("/of_hf_") + format,
                          .format = format,
                          .steps = {RenameStep{"w1", "a.much.longer.name.of.it"}}});
    check_all_long_tiles_are_shared(*open_in(store, std::string("/of_hf_") + format), shared);
  }
}

TEST_CASE("the same bytes come out of any number of threads whether a file system shares or not") {
  RetileStep halves{{"d"}, {}};
  halves.tiles = {{{{0, 0}, {10, 999}}, 0}, {{{10, 0}, {591, 999}}, 1}};
  std::map<std::string, Bytes> first;
  for (bool shares : {false, true}) {
    for (int threads : {1, 2, 7}) {
      MemoryStore store;
      if (shares) store.share_blocks();
      save_large(store, large_tensors());
      const std::uint64_t shared = shared_by(
          store, {.steps = {RenameStep{"a", "x.a"}, DropStep{{"c"}}, halves}, .threads = threads});
      CHECK((shared != 0) == shares);
      auto files = files_of(store, store, "/out");
      if (first.empty()) first = files;
      CHECK(files == first);
    }
  }
}

TEST_CASE("a folder with shared bytes is whole or not there wherever the power is cut") {
  std::vector<LargeTensor> tensors = large_tensors();
  tensors.resize(3);
  bool finished = false;
  int step = 0, shares = 0;
  for (; !finished && step < 200; ++step) {
    CAPTURE(step);
    MemoryStore memory;
    memory.share_blocks();
    save_large(memory, tensors);
    auto source = open_in(memory, "/ck");
    int at = 0;
    FaultyStore store(memory, [&](const std::string& doing, const std::string& path) {
      const bool is_dead = at++ >= step;
      if (doing == "share" && at - 1 == step) ++shares;
      return is_dead ? std::optional(Error{ErrorKind::kIo, "gone", {path}}) : std::nullopt;
    });
    finished = make_of(store, source, {.steps = {DropStep{{"c"}}}, .threads = 1}).has_value();
    memory.cut_power(MemoryStore::Survives::kOnlySynced);
    CHECK(open_in(memory, "/ck")->chunk_count() == source->chunk_count());
    CHECK((!finished || memory.exists("/out")));
    if (!memory.exists("/out")) continue;
    auto proof = verify_repair(*open_in(memory, "/out"), nullptr, source);
    REQUIRE(proof.has_value());
    CHECK(proof->outcome == VerifyReport::Outcome::kProved);
  }
  CHECK(finished);
  CHECK(shares >= 2);  // it was also killed while sharing
}

namespace {

struct NearlyFull : ForwardingStore {
  NearlyFull(Store& inner, std::uint64_t free) : ForwardingStore(inner), free_(free) {}
  Result<std::uint64_t> free_bytes(const std::string&) const override { return free_; }
  std::uint64_t free_;
};

// The space that a run requests on a full disk.
std::uint64_t needed_by(Store& store, const LargeRun& wanted) {
  NearlyFull full(store, 0);
  auto made = make_of(full, open_in(store, wanted.from), wanted);
  REQUIRE_FALSE(made.has_value());
  const std::string& said = made.error().message;
  CHECK(said.ends_with(" bytes are needed there, but 0 are free"));
  return std::strtoull(said.c_str(), nullptr, 10);
}

}  // namespace

TEST_CASE("what a file system shares with the source needs no room there") {
  RetileStep halves{{"d"}, {}};
  halves.tiles = {{{{0, 0}, {10, 999}}, 0}, {{{10, 0}, {591, 999}}, 1}};
  const std::vector<LargeRun> runs = {
      {.steps = {RenameStep{"a", "x.a"}, DropStep{{"c"}}, halves}},  // made, and copied in parts
      {.steps = {RenameStep{"a", "x.a"}}},                           // copied as they are
      {.format = "safetensors"}};
  for (const LargeRun& wanted : runs) {
    CAPTURE(wanted.format);
    MemoryStore copies, shares;
    shares.share_blocks();
    save_large(copies, large_tensors());
    save_large(shares, large_tensors());
    const std::uint64_t all = needed_by(copies, wanted), without = needed_by(shares, wanted);
    const std::uint64_t shared = shared_by(shares, wanted);
    CHECK(shared != 0);
    // Files that are copied whole share all bytes; copied parts may not share their ends.
    CHECK(all - without <= shared + shared / 50 + (wanted.format == "dcp" ? 1'000'000 : 0));
    CHECK(all - without + shared / 50 >= shared);
    NearlyFull enough(shares, without);
    LargeRun again = wanted;
    again.out = "/again";
    CHECK(make_of(enough, open_in(shares, "/ck"), again).has_value());
    NearlyFull less(shares, without - 1);
    again.out = "/less";
    CHECK_FALSE(make_of(less, open_in(shares, "/ck"), again).has_value());
  }
}
