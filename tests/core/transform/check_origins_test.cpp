// A program that reads elements from other places than its plan is refused before it runs.
#include "core/transform/check_origins.h"
#include "core/program/program_builder.h"

#include <doctest/doctest.h>

#include "core/tensor/strided_copy.h"

using namespace shw;

namespace {

// A [4, 3] float32 box from columns 1 to 4 of a [4, 5] tensor at byte 100 of its file.
struct Lowered {
  Part part{{{0, 0}, {4, 3}}, FromChunk{0, ChunkId{7}}, {0, 1}, {0, 1}, Dtype::kFloat32};
  PartStorage storage{0, "data", {}, 7};
  Program program;
  OutputId output{};

  Lowered(std::int64_t first, const Extents& strides) {
    storage.lies.offset = 100;
    storage.lies.length = 80;
    storage.lies.strides = {20, 4};
    ProgramBuilder builder;
    Box box{{0, 0}, {4, 3}};
    OutputId made = builder.add_output("t", Dtype::kFloat32, box.sizes, box);
    builder.place(made, "out", 0);
    builder.add_copy(made, box, builder.add_stored(0, "data", 100, 80), Dtype::kFloat32, first,
                     strides);
    std::vector<OutputId> moved;
    program = builder.take(&moved);
    output = moved[0];
    REQUIRE(prove(program));
  }
  bool agrees() const {
    return check_origins(program, output, part, {{0, 0}, {4, 3}}, &storage, "t").has_value();
  }
};

}  // namespace

TEST_CASE("a program that follows its plan agrees with it") {
  CHECK(Lowered(4, {20, 4}).agrees());
}

TEST_CASE("another first byte, stride, file or dtype than the plan's is found") {
  CHECK_FALSE(Lowered(0, {20, 4}).agrees());
  CHECK_FALSE(Lowered(4, {16, 4}).agrees());
  CHECK_FALSE(Lowered(0, {20, 8}).agrees());
  CHECK_FALSE(Lowered(4, {4, 20}).agrees());
  Lowered elsewhere(4, {20, 4});
  elsewhere.storage.file = "other";
  CHECK_FALSE(elsewhere.agrees());
  Lowered cast(4, {20, 4});
  cast.part.saved = Dtype::kInt32;
  CHECK_FALSE(cast.agrees());
  Lowered shifted(4, {20, 4});
  shifted.part.first = {1, 1};
  CHECK_FALSE(shifted.agrees());
}
