#include "core/compare/compare.h"

#include <doctest/doctest.h>
#include <tbb/global_control.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/compare/compared.h"
#include "core/compare/laid.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/temporary_folder.h"
#include "core/tensor/element_text.h"
#include "core/tensor/fingerprint.h"

using namespace shw;
using namespace shw::test;

namespace {

Extents random_shape(std::mt19937& random) {
  Extents shape(random() % 4);
  for (std::int64_t& size : shape) size = static_cast<std::int64_t>(1 + random() % 17);
  return shape;
}

// The first element that differs, found by a simple loop.
struct SlowFirst {
  std::uint64_t differing = 0;
  std::optional<std::size_t> first;
};
SlowFirst slow_first(const TiledTensor& a, const TiledTensor& b) {
  SlowFirst out;
  std::size_t width = size_of(a.dtype);
  for (std::size_t i = 0; i < a.bytes.size() / width; ++i) {
    if (std::memcmp(a.bytes.data() + i * width, b.bytes.data() + i * width, width) == 0) continue;
    ++out.differing;
    if (!out.first) out.first = i;
  }
  return out;
}

void check_against_slow(const TiledTensor& a, const TiledTensor& b,
                        const CheckpointDifference& told) {
  SlowFirst slow = slow_first(a, b);
  if (slow.differing == 0) {
    CHECK(told.verdict == EqualityVerdict::kSame);
    for (const TensorDifference& tensor : told.tensors)
      CHECK(tensor.kind == DifferenceKind::kRetiled);
    return;
  }
  CHECK(told.verdict == EqualityVerdict::kDifferent);
  const TensorDifference& tensor = only_one(told);
  CHECK(tensor.kind == DifferenceKind::kValues);
  REQUIRE(tensor.values.has_value());
  CHECK(tensor.values->elements.differing == slow.differing);
  CHECK(tensor.values->compared == static_cast<std::uint64_t>(*volume(a.shape)));
  CHECK(tensor.values->unread == 0);
  REQUIRE(tensor.values->first.has_value());
  CHECK(flat(tensor.values->first->index, a.shape) == *slow.first);
  CHECK(tensor.values->first->a == element_text(a.dtype, a.bytes, *slow.first));
  CHECK(tensor.values->first->b == element_text(b.dtype, b.bytes, *slow.first));
  ElementDifference whole_tensor =
      difference_of(a.dtype, a.bytes.data(), b.bytes.data(), a.bytes.size() / size_of(a.dtype));
  CHECK(tensor.values->elements.max_abs == whole_tensor.max_abs);
  CHECK(tensor.values->elements.max_ulp == whole_tensor.max_ulp);
  CHECK(tensor.values->elements.nan == whole_tensor.nan);
  CHECK(tensor.values->elements.bits_only == whole_tensor.bits_only);
  auto cosine = products_of(a.dtype, a.bytes.data(), b.dtype, b.bytes.data(),
                            a.bytes.size() / size_of(a.dtype))
                    .cosine();
  REQUIRE(tensor.values->cosine.has_value() == cosine.has_value());
  if (cosine) CHECK(*tensor.values->cosine == doctest::Approx(*cosine));
}

}  // namespace

TEST_CASE("random tensors in random tiles differ in what a loop over all elements finds") {
  std::mt19937 random(5);
  constexpr Dtype kDtypes[] = {Dtype::kFloat32, Dtype::kBfloat16, Dtype::kInt64, Dtype::kUint8,
                               Dtype::kComplex64};
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    TiledTensor a{"w", kDtypes[random() % 5], random_shape(random), {}};
    // Small numbers, since sums of products of random bits are infinite.
    a.bytes.resize(static_cast<std::size_t>(*volume(a.shape)) * size_of(a.dtype));
    for (std::byte& byte : a.bytes) byte = static_cast<std::byte>(random() % 64);
    TiledTensor b = a;
    for (unsigned changes = random() % 4; changes > 0; --changes)
      b.bytes[random() % b.bytes.size()] = static_cast<std::byte>(random() % 64);
    a.tiles = test::random_tiles(a.shape, random);
    b.tiles = random() % 3 == 0 ? a.tiles : test::random_tiles(b.shape, random);
    check_against_slow(a, b, compared({a}, {b}));
  }
}

TEST_CASE("tensors of many blocks are told to the same bits whatever the threads") {
  std::mt19937 random(6);
  TiledTensor a{"w", Dtype::kFloat32, {90, 31, 20}, {}};
  a.bytes.resize(static_cast<std::size_t>(*volume(a.shape)) * 4);
  for (std::size_t at = 0; at < a.bytes.size(); at += 4) {
    float number = static_cast<float>(random() % 1000) * 0.01f;
    std::memcpy(a.bytes.data() + at, &number, 4);
  }
  TiledTensor b = a;
  for (int changes = 0; changes < 50; ++changes) b.bytes[random() % b.bytes.size()] ^= std::byte{1};
  for (bool retiled : {false, true}) {
    a.tiles = test::random_tiles(a.shape, random);
    b.tiles = retiled ? test::random_tiles(b.shape, random) : a.tiles;
    std::optional<double> cosine;
    for (std::size_t threads : {1, 2, 7}) {
      tbb::global_control control(tbb::global_control::max_allowed_parallelism, threads);
      // 64 KiB per thread makes blocks and pieces of 4 KiB.
      CheckpointDifference told = compared({a}, {b}, {true, 0x10000});
      check_against_slow(a, b, told);
      if (cosine) CHECK(*told.tensors.front().values->cosine == *cosine);
      cosine = told.tensors.front().values->cosine;
    }
  }
}

TEST_CASE("without data the values of two equal headers are open and nothing is the same") {
  TiledTensor a = floats_named("w", {1, 2, 3});
  CheckpointDifference told = compared({a}, {a}, {});
  CHECK(told.verdict == EqualityVerdict::kUndecided);
  CHECK(told.tensors.empty());
  CHECK(told.same == 0);
  REQUIRE(told.unjudged.size() == 1);
  CHECK(told.unjudged.front().needs == "--data");
  CHECK(compared({a}, {a}).verdict == EqualityVerdict::kSame);
  CHECK(compared({a}, {a}).unjudged.empty());
  // A tensor without elements is the same.
  TiledTensor none{"w", Dtype::kFloat32, {0, 4}, {}};
  CHECK(compared({none}, {none}, {}).verdict == EqualityVerdict::kSame);
  // A file compared with itself is the same without being read.
  auto checkpoint = laid({a});
  auto self = compare_checkpoints(*checkpoint, *checkpoint, {}, nullptr);
  CHECK(self->verdict == EqualityVerdict::kSame);
}

TEST_CASE("a checkpoint and itself are the same unread only as far as that says anything") {
  // A folder whose files exist but cannot be opened.
  struct Closed final : Directory {
    explicit Closed(std::shared_ptr<const Directory> inner) : inner_(std::move(inner)) {}
    const std::string& name() const override { return inner_->name(); }
    Result<std::vector<Entry>> list(std::size_t limit) const override {
      return inner_->list(limit);
    }
    Entry stat(const std::string& path) const override { return inner_->stat(path); }
    Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
      return fail(ErrorKind::kIo, "permission denied", {path});
    }
    std::shared_ptr<const Directory> inner_;
  };
  enum class Made { kPlain, kClosed, kReplica, kOverlap, kObject };
  for (Made how : {Made::kPlain, Made::kClosed, Made::kReplica, Made::kOverlap, Made::kObject}) {
    CAPTURE(static_cast<int>(how));
    CheckpointBuilder builder;
    builder.set_format(test::kLaidFormat);
    auto folder = memory_directory("c", {{"data", bytes_of({1, 2, 3, 4, 1, 2, 3, 5})}});
    if (how == Made::kClosed || how == Made::kObject) folder = std::make_shared<Closed>(folder);
    builder.set_directory(folder);
    FileId file = builder.file("data");
    if (how == Made::kObject) {
      builder.add_object({"step", ItemPlace{file, 0, 16}});
    } else {
      builder.add_tensor("w", Dtype::kFloat32, Extents{4});
      ChunkId chunk = builder.add_chunk(Extents{0}, Extents{4}, {file, 0, 16});
      if (how == Made::kReplica)
        builder.add_replica({chunk, builder.add_storage({file, 16, 16}), 1});
      if (how == Made::kOverlap) builder.add_chunk(Extents{0}, Extents{4}, {file, 16, 16});
    }
    auto checkpoint = builder.finish();
    auto told = compare_checkpoints(*checkpoint, *checkpoint, {}, nullptr);
    REQUIRE(told);
    CHECK(told->verdict ==
          (how == Made::kPlain ? EqualityVerdict::kSame : EqualityVerdict::kUndecided));
    CHECK(told->same == (how == Made::kPlain ? 1 : 0));
    if (how == Made::kClosed) {
      REQUIRE(only_one(*told).error);
      CHECK(only_one(*told).error->place.file == "data");
    }
    if (how == Made::kObject) {
      REQUIRE(told->entries.size() == 1);
      CHECK(told->entries.front().kind == DifferenceKind::kUndecided);
    }
  }
}

TEST_CASE("what may be in a file that did not open is not a difference") {
  TiledTensor w = floats_named("w", {1, 2, 3, 4}), more = floats_named("v", {5, 6});
  Finding closed;
  closed.rule = "bad-record";
  closed.subjects = {"other"};
  // w with this many rows, in a shape that was derived from its tiles or not.
  auto opened = [&](const TiledTensor& tensor, std::int64_t shape, std::int64_t rows, bool hides) {
    CheckpointBuilder builder;
    builder.set_format(test::kLaidFormat);
    builder.set_directory(memory_directory(hides ? "h" : "p", {{"data", tensor.bytes}}));
    builder.add_tensor(tensor.fqn, Dtype::kFloat32, Extents{shape});
    builder.add_chunk(Extents{0}, Extents{rows}, {builder.file("data"), 0, rows * 4});
    if (hides) builder.add_finding(closed);
    return builder.finish();
  };
  auto two = laid({w, more}, "two");
  using enum DifferenceKind;
  for (bool data : {false, true}) {
    CAPTURE(data);
    CompareOptions options{.data = data};
    auto kinds = [&](const std::shared_ptr<const Checkpoint>& a,
                     const std::shared_ptr<const Checkpoint>& b) {
      auto told = compare_checkpoints(*a, *b, options, nullptr);
      REQUIRE(told);
      REQUIRE(told->tensors.size() == 1);
      bool open = told->tensors.front().kind == kUndecided;
      CHECK(told->verdict == (open ? EqualityVerdict::kUndecided : EqualityVerdict::kDifferent));
      CHECK(told->tensors.front().why.empty() != open);
      return told->tensors.front().kind;
    };
    // A name that only the other one has.
    CHECK(kinds(opened(w, 4, 4, false), two) == kAdded);
    CHECK(kinds(opened(w, 4, 4, true), two) == kUndecided);
    CHECK(kinds(two, opened(w, 4, 4, false)) == kMissing);
    CHECK(kinds(two, opened(w, 4, 4, true)) == kUndecided);
    // Missing rows, and a shape that may grow.
    auto whole_one = laid({w}, "one");
    CHECK(kinds(opened(w, 4, 3, false), whole_one) == kIncomplete);
    CHECK(kinds(opened(w, 4, 3, true), whole_one) == kUndecided);
    CHECK(kinds(whole_one, opened(w, 4, 3, true)) == kUndecided);
    CHECK(kinds(opened(w, 3, 3, false), whole_one) == kReshaped);
    CHECK(kinds(opened(w, 3, 3, true), whole_one) == kUndecided);
    // Additional rows are a difference, whatever else is hidden.
    CHECK(kinds(opened(floats_named("w", {1, 2, 3, 4, 5}), 5, 5, true), whole_one) == kReshaped);
  }
  // Under a new name: either checkpoint may have both.
  TiledTensor renamed = w;
  renamed.fqn = "x";
  auto told = compare_checkpoints(*opened(w, 4, 4, true), *laid({renamed}, "r"), kData, nullptr);
  CHECK(told->verdict == EqualityVerdict::kUndecided);
  CHECK(only_one(*told).kind == kUndecided);
  // A different value is a difference even if a shape may grow.
  TiledTensor changed = w;
  changed.bytes = bytes_of({1, 2, 3, 5});
  auto differs = compare_checkpoints(*opened(w, 4, 4, true), *laid({changed}, "d"), kData, nullptr);
  CHECK(differs->verdict == EqualityVerdict::kDifferent);
  // A non-tensor entry.
  CheckpointBuilder builder;
  builder.set_format(test::kLaidFormat);
  builder.add_object({"step", std::nullopt});
  auto entry = builder.finish();
  auto lone = compare_checkpoints(*entry, *opened(w, 4, 4, true), {}, nullptr);
  REQUIRE(lone->entries.size() == 1);
  CHECK(lone->entries.front().kind == kUndecided);
  CHECK_FALSE(lone->entries.front().why.empty());
}

TEST_CASE("a name, a shape and a dtype that differ are told without data") {
  TiledTensor w = floats_named("w", {1, 2, 3, 4}), gone = floats_named("gone", {1}),
              added = floats_named("new", {1});
  CheckpointDifference names = compared({w, gone}, {added, w}, {});
  CHECK(names.verdict == EqualityVerdict::kDifferent);
  REQUIRE(names.tensors.size() == 2);
  CHECK(names.tensors[0].kind == DifferenceKind::kMissing);
  CHECK(names.tensors[0].fqn == "gone");
  CHECK(names.tensors[1].kind == DifferenceKind::kAdded);
  CHECK_FALSE(names.tensors[1].a.has_value());
  TiledTensor square = w, halves{"w", Dtype::kFloat16, {4}, Bytes(8)};
  square.shape = {2, 2};
  CHECK(only_one(compared({w}, {square}, {})).kind == DifferenceKind::kReshaped);
  CHECK(only_one(compared({w}, {halves}, {})).kind == DifferenceKind::kDtype);
}

TEST_CASE("only equal bytes make a new name of an old tensor") {
  TiledTensor old = floats_named("a.old", {1, 2, 3}), same_bytes = floats_named("a.new", {1, 2, 3}),
              other = floats_named("a.new", {1, 2, 4});
  CheckpointDifference told = compared({old}, {same_bytes});
  CHECK(only_one(told).kind == DifferenceKind::kRenamed);
  CHECK(told.tensors.front().other == "a.new");
  CHECK(told.verdict == EqualityVerdict::kDifferent);
  CHECK(compared({old}, {other}).tensors.size() == 2);
  CHECK(compared({old}, {same_bytes}, {}).tensors.size() == 2);
  // Among several with equal bytes the most similar names are paired, each once.
  std::vector<TiledTensor> a, b;
  for (const char* layer : {"3", "4"}) {
    a.push_back(floats_named(std::string("m.") + layer + ".w", {0, 0}));
    b.push_back(floats_named(std::string("x.m.") + layer + ".w", {0, 0}));
  }
  CheckpointDifference zeros = compared(a, {b[1], b[0]});
  REQUIRE(zeros.tensors.size() == 2);
  for (const TensorDifference& tensor : zeros.tensors) {
    CHECK(tensor.kind == DifferenceKind::kRenamed);
    CHECK(tensor.other == "x." + tensor.fqn);
  }
}

TEST_CASE("renamed: other elements with the same fingerprint are another tensor") {
  // Two tensors with equal fingerprints: the weights are public, so a lattice finds such pairs.
  const std::vector<std::uint32_t> x = {0x20000000, 0x20003039, 0x20006072, 0x200090ab,
                                        0x2000c0e4, 0x2000f11d, 0x20012156, 0x2001518f},
                                   y = {0x1fffffbf, 0x20002fb4, 0x20006033, 0x2000909a,
                                        0x2000c126, 0x2000f221, 0x20012132, 0x20015127};
  auto named = [](const std::string& fqn, const std::vector<std::uint32_t>& words) {
    TiledTensor tensor{fqn, Dtype::kFloat32, {8}, Bytes(32)};
    std::memcpy(tensor.bytes.data(), words.data(), 32);
    return tensor;
  };
  Fingerprint of_x, of_y;
  add_run(of_x, reinterpret_cast<const std::byte*>(x.data()), 4, 0, 8);
  add_run(of_y, reinterpret_cast<const std::byte*>(y.data()), 4, 0, 8);
  REQUIRE(of_x == of_y);
  CheckpointDifference told = compared({named("x", x)}, {named("y", y)});
  REQUIRE(told.tensors.size() == 2);
  CHECK(told.tensors[0].kind == DifferenceKind::kMissing);
  CHECK(told.tensors[1].kind == DifferenceKind::kAdded);
  CHECK(only_one(compared({named("x", x)}, {named("y", x)})).kind == DifferenceKind::kRenamed);
}

TEST_CASE("compare: two copies with the same damage are not called the same") {
  TemporaryFolder folder;
  const std::string healthy = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";
  for (const char* copy : {"a", "b"}) std::filesystem::copy(healthy, folder / copy);
  auto compared_copies = [&] {
    auto a = open_checkpoint(folder / "a"), b = open_checkpoint(folder / "b");
    REQUIRE((a && b));
    auto told = compare_checkpoints(**a, **b, kData, nullptr);
    REQUIRE(told.has_value());
    return std::move(*told);
  };
  CHECK(compared_copies().verdict == EqualityVerdict::kSame);
  auto sound = open_checkpoint(folder / "a");
  REQUIRE(sound.has_value());
  const TensorId tensor{0};
  const ChunkId chunk = (*sound)->chunks(tensor)[0];
  auto runs = ranges(**sound, chunk, whole((*sound)->sizes(chunk)));
  REQUIRE((runs && *runs));
  for (const char* copy : {"a", "b"}) {
    std::fstream file(folder / copy + "/" + (*sound)->file((*runs)->front().file).path,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>((*runs)->front().offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>((*runs)->front().offset));
    file.put(static_cast<char>(byte ^ 1));
  }
  CheckpointDifference told = compared_copies();
  CHECK(told.verdict == EqualityVerdict::kUndecided);
  CHECK(only_one(told).fqn == (*sound)->fqn(tensor));
  CHECK(only_one(told).kind == DifferenceKind::kUndecided);
}

TEST_CASE("a reshape says whether the elements stayed as they were") {
  TiledTensor flat_one = floats_named("w", {1, 2, 3, 4, 5, 6}), square = flat_one,
              turned = flat_one;
  square.shape = {2, 3};
  turned.shape = {3, 2};
  turned.bytes = bytes_of({1, 4, 2, 5, 3, 6});
  CHECK(only_one(compared({flat_one}, {square})).same_elements == true);
  CHECK(only_one(compared({square}, {turned})).same_elements == false);
  CHECK_FALSE(only_one(compared({square}, {turned}, {})).same_elements.has_value());
  // Holes in one of two shapes are not reported for both.
  square.tiles = {{Box{{0, 0}, {1, 3}}}};
  CHECK(only_one(compared({square}, {turned})).why.empty());
}

TEST_CASE("another dtype is compared by value") {
  TiledTensor wide = floats_named("w", {1, 2, 3}), narrow{"w", Dtype::kBfloat16, {3}, Bytes(6)};
  const std::uint16_t codes[] = {0x3F80, 0x4000, 0x4080};  // 1, 2, 4
  std::memcpy(narrow.bytes.data(), codes, 6);
  CheckpointDifference told = compared({wide}, {narrow});
  const TensorDifference& tensor = only_one(told);
  CHECK(tensor.kind == DifferenceKind::kDtype);
  REQUIRE(tensor.values.has_value());
  CHECK(tensor.values->by_value);
  CHECK(tensor.values->elements.differing == 1);
  CHECK(tensor.values->elements.max_abs == 1);
  CHECK(tensor.values->first->index == Extents{2});
  CHECK(tensor.values->first->b == "4");
}

TEST_CASE("elements that one of them has in no tile are a difference and those of both are open") {
  TiledTensor all = floats_named("w", {1, 2, 3, 4}), holed = all, other_hole = all;
  holed.tiles = {{Box{{0}, {3}}}};
  other_hole.tiles = {{Box{{1}, {3}}}};
  CheckpointDifference one = compared({all}, {holed});
  CHECK(one.verdict == EqualityVerdict::kDifferent);
  CHECK(only_one(one).kind == DifferenceKind::kIncomplete);
  CHECK(only_one(one).b->missing == 1);
  CHECK(only_one(one).values->compared == 3);
  CHECK(only_one(compared({all}, {holed}, {})).kind == DifferenceKind::kIncomplete);
  CHECK(only_one(compared({holed}, {other_hole})).kind == DifferenceKind::kIncomplete);
  CheckpointDifference both = compared({holed}, {holed});
  CHECK(both.verdict == EqualityVerdict::kUndecided);
  CHECK(only_one(both).kind == DifferenceKind::kUndecided);
  CHECK_FALSE(only_one(both).why.empty());
  TiledTensor changed = holed;
  changed.bytes = bytes_of({1, 9, 3, 4});
  CHECK(only_one(compared({holed}, {changed})).kind == DifferenceKind::kValues);
}

TEST_CASE("tiles that hold an element twice must agree before anything is compared with them") {
  TiledTensor all = floats_named("w", {1, 2, 3, 4}), twice = all;
  twice.tiles = {{Box{{0}, {3}}}, {Box{{1}, {3}}}};
  CheckpointDifference told = compared({all}, {twice});
  CHECK(told.verdict == EqualityVerdict::kSame);
  CHECK(only_one(told).kind == DifferenceKind::kRetiled);
  TiledTensor changed = twice;
  changed.bytes = bytes_of({1, 2, 7, 4});
  CheckpointDifference differs = compared({all}, {changed});
  CHECK(only_one(differs).kind == DifferenceKind::kValues);
  CHECK(only_one(differs).values->elements.differing == 1);
  // Two copies of one tile, the second of which has the bytes of another tensor.
  CheckpointBuilder builder;
  builder.set_format(test::kLaidFormat);
  builder.set_directory(memory_directory("c", {{"data", bytes_of({1, 2, 3, 4, 1, 9, 3, 4})}}));
  builder.add_tensor("w", Dtype::kFloat32, Extents{4});
  builder.add_chunk(Extents{0}, Extents{4}, {builder.file("data"), 0, 16});
  builder.add_chunk(Extents{0}, Extents{4}, {builder.file("data"), 16, 16});
  auto torn = compare_checkpoints(*laid({all}, "a"), *builder.finish(), kData, nullptr);
  CHECK(torn->verdict == EqualityVerdict::kUndecided);
  CHECK(only_one(*torn).kind == DifferenceKind::kUndecided);
}
