// N8 repaired: every chunk's box and elements are transposed, whatever the element's width.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>

#include "core/formats/dcp/dcp_formats.h"
#include "core/repair/against_source.h"
#include "core/repair/lower/lower.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

Extents exchanged(Extents shape, std::size_t a, std::size_t b) {
  std::swap(shape[a], shape[b]);
  return shape;
}

// Transposes element by element: (.., i, .., j, ..) goes to (.., j, .., i, ..).
Bytes transposed(const Bytes& bytes, const Extents& shape, std::size_t a, std::size_t b,
                 std::size_t width) {
  Extents other = exchanged(shape, a, b);
  Bytes out(bytes.size());
  each(shape, [&](const Extents& at) {
    std::size_t from = flat(at, shape), to = flat(exchanged(at, a, b), other);
    std::copy_n(&bytes[from * width], width, &out[to * width]);
  });
  return out;
}

Bytes cut_out_of(const Bytes& bytes, const Extents& shape, const Box& box, std::size_t width) {
  Bytes out;
  each(box.sizes, [&](const Extents& at) {
    const std::byte* from = &bytes[flat(plus(box.offsets, at), shape) * width];
    out.insert(out.end(), from, from + width);
  });
  return out;
}

// One tensor "w" in the boxes given, box i by rank i.
void write_raw(const std::string& path, Dtype dtype, const Extents& shape, const Bytes& bytes,
               const std::vector<Box>& boxes) {
  auto directory = posix_store().make_folder(path);
  REQUIRE(directory.has_value());
  DcpMetadata metadata;
  metadata.checkpoint_id = path;
  DcpTensor out{"w", dtype, false, shape, {}, {}};
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    std::string file = "__" + std::to_string(i) + "_0.distcp";
    auto sink = (*directory)->create(file);
    REQUIRE(sink.has_value());
    Bytes part = cut_out_of(bytes, shape, boxes[i], size_of(dtype));
    auto length = write_torch_item(**sink, dtype, boxes[i].sizes, part);
    REQUIRE(length.has_value());
    REQUIRE((*sink)->finish());
    out.chunks.push_back({boxes[i].offsets, boxes[i].sizes, {file, 0, *length, {}}});
  }
  metadata.tensors.push_back(std::move(out));
  auto sink = (*directory)->create(".metadata");
  REQUIRE(sink.has_value());
  REQUIRE(write_dcp_metadata(metadata, **sink));
  REQUIRE((*sink)->finish());
}

// Cuts along every dim at random: a grid of boxes of uneven sizes.
std::vector<Box> uneven_grid(const Extents& shape, std::mt19937& dice) {
  std::vector<Box> boxes{whole(shape)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<Box> finer;
    std::int64_t cut = shape[d] < 2 ? 0 : 1 + static_cast<std::int64_t>(dice() % (shape[d] - 1));
    for (const Box& box : boxes) {
      Box low = box, high = box;
      low.sizes[d] = cut;
      high.offsets[d] = cut;
      high.sizes[d] = shape[d] - cut;
      if (cut > 0) finer.push_back(low);
      finer.push_back(high);
    }
    boxes = std::move(finer);
  }
  return boxes;
}

Plan plan_to_turn(const Checkpoint& checkpoint, const Diagnosis& diagnosis) {
  CheckReport report;
  Finding finding;
  finding.rule = "transposed";
  finding.subjects = {"w"};
  finding.diagnoses = {diagnosis};
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  return *plan;
}

Bytes random_bytes(std::size_t count, std::mt19937& dice) {
  Bytes bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(dice() & 0xff);
  return bytes;
}

}  // namespace

TEST_CASE("a transposed tensor is written back, every dtype, every number of dims and chunks") {
  std::mt19937 dice(5);
  struct Case {
    Extents shape;
    std::size_t first, second;
  };
  const Case cases[] = {{{7, 7}, 0, 1}, {{6, 9}, 0, 1},       {{3, 5, 8}, 1, 2},
                        {{1, 8}, 0, 1}, {{2, 2, 3, 5}, 2, 3}, {{4, 3, 5}, 0, 2}};
  for (Dtype dtype : {Dtype::kUint8, Dtype::kFloat8E4m3fn, Dtype::kBfloat16, Dtype::kFloat16,
                      Dtype::kFloat32, Dtype::kInt64, Dtype::kFloat64, Dtype::kComplex128}) {
    for (const Case& one : cases) {
      CAPTURE(name(dtype));
      CAPTURE(to_text(one.shape));
      TemporaryFolder folder;
      std::size_t width = size_of(dtype);
      Bytes saved = random_bytes(static_cast<std::size_t>(*volume(one.shape)) * width, dice);
      write_raw(folder / "ckpt", dtype, one.shape, saved, uneven_grid(one.shape, dice));
      auto checkpoint = opened(folder / "ckpt");
      Extents expected = exchanged(one.shape, one.first, one.second);
      Plan plan =
          plan_to_turn(*checkpoint, Transposed{TensorId{0}, one.first, one.second, expected});
      REQUIRE(plan.tensors.size() == 1);
      REQUIRE(plan.operations.size() == 1);
      CHECK(plan.operations[0].kind == OperationKind::kTranspose);
      CHECK(plan.operations[0].bytes_moved == saved.size());
      CHECK(plan.lossless);
      // A plan that went through its JSON is the same plan.
      auto read = plan_from_json(*checkpoint, plan_to_json(*checkpoint, plan), "plan.json");
      REQUIRE(read.has_value());
      CHECK(plan_to_json(*checkpoint, *read) == plan_to_json(*checkpoint, plan));
      auto result = apply_plan(*checkpoint, *read, {folder / "out"});
      if (!result) FAIL(result.error().message);
      CHECK(result->lossless);
      auto repaired = opened(folder / "out");
      auto values = read_tensor(*repaired, TensorId{0});
      REQUIRE(values.has_value());
      CHECK(values->shape == expected);
      CHECK(values->bytes == transposed(saved, one.shape, one.first, one.second, width));
      CHECK(repaired->chunk_count() == checkpoint->chunk_count());
      auto verified = verified_against(folder / "out", *checkpoint);
      REQUIRE(verified.has_value());
      CHECK(verified->outcome == VerifyReport::Outcome::kProved);
      CHECK(verified->lost == 0);
    }
  }
}

TEST_CASE("a transpose moves bytes: in place it is refused") {
  TemporaryFolder folder;
  std::mt19937 dice(3);
  write_raw(folder / "ckpt", Dtype::kBfloat16, {4, 4}, random_bytes(32, dice),
            {whole(Extents{4, 4})});
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_to_turn(*checkpoint, Transposed{TensorId{0}, 0, 1, {4, 4}});
  ApplyOptions options;
  options.in_place = true;
  auto refused = apply_plan(*checkpoint, plan, options);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUnsupported);
}

TEST_CASE("what cannot be transposed is refused with its reason") {
  auto refusal = [](Dtype dtype, const Extents& shape, const Transposed& diagnosis) {
    CheckpointBuilder builder;
    builder.set_format(kDcpFormat);
    builder.add_tensor("w", dtype, shape);
    builder.add_chunk(Extents(shape.size(), 0), shape, {builder.file("__0_0.distcp"), 0, 100});
    auto planned = lower(*builder.finish(), diagnosis);
    REQUIRE_FALSE(planned.has_value());
    return planned.error().message;
  };
  for (Dtype packed : {Dtype::kFloat4E2m1fnX2, Dtype::kBits2x4, Dtype::kQuint4x2}) {
    std::string why = refusal(packed, {4, 6}, {TensorId{0}, 0, 1, {6, 4}});
    CHECK(why.find("several per byte") != std::string::npos);
  }
  refusal(Dtype::kFloat32, {4, 6}, {TensorId{0}, 0, 1, {4, 6}});
  refusal(Dtype::kFloat32, {4, 6}, {TensorId{0}, 0, 0, {4, 6}});
  refusal(Dtype::kFloat32, {4, 6}, {TensorId{0}, 0, 2, {6, 4}});
  refusal(Dtype::kFloat32, {4}, {TensorId{0}, 0, 1, {4}});
}

TEST_CASE("a plan whose order of dims is none is refused") {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.add_tensor("w", Dtype::kFloat32, Extents{4, 6});
  builder.add_chunk(Extents{0, 0}, Extents{4, 6}, {builder.file("__0_0.distcp"), 0, 100});
  auto checkpoint = builder.finish();
  auto planned = lower(*checkpoint, Transposed{TensorId{0}, 0, 1, {6, 4}});
  REQUIRE(planned.has_value());
  CHECK(prove_planned(*checkpoint, *planned).has_value());
  for (const Extents& order : {Extents{0, 0}, Extents{1}, Extents{0, 2}, Extents{-1, 0},
                               Extents{0, 1}, Extents{0, 1, 2}}) {
    PlannedTensor bent = *planned;
    PlannedChunk chunk = planned->chunks[0];
    chunk.pieces[0].permutation = order;
    bent.chunks = {chunk};
    CHECK_FALSE(prove_planned(*checkpoint, bent).has_value());
  }
}
