#include "core/exec/forecast.h"

#include <doctest/doctest.h>

#include "core/program/program_builder.h"
#include "core/tensor/strided_copy.h"

using namespace shw;

TEST_CASE("a forecast grows with the bytes and shrinks with the threads") {
  const StageRates rates{1e-9, 3e-9, 2e-9};
  Forecast one = predict_run(rates, 4, {1'000'000'000, 1'000'000'000}, 1);
  CHECK(one.seconds[0] == doctest::Approx(1));
  CHECK(one.seconds[1] == doctest::Approx(4));
  CHECK(one.seconds[2] == doctest::Approx(3));
  CHECK(one.seconds[3] == doctest::Approx(2));
  CHECK(one.total == doctest::Approx(10));
  CHECK(one.longest == Stage::kMake);
  Forecast two = predict_run(rates, 4, {1'000'000'000, 1'000'000'000}, 2);
  CHECK(two.total == doctest::Approx(5));
  Forecast twice = predict_run(rates, 8, {2'000'000'000, 2'000'000'000}, 1);
  CHECK(twice.total == doctest::Approx(20));
}

TEST_CASE("what is copied as it is costs reading, writing and reading back") {
  const StageRates rates{1e-9, 3e-9, 2e-9};
  Forecast copied = predict_run(rates, 0, {0, 0, 1'000'000'000}, 1);
  CHECK(copied.seconds[1] == 0);
  CHECK(copied.total == doctest::Approx(6));
  CHECK(copied.longest == Stage::kWrite);
}

TEST_CASE("millions of small tiles take longer than their bytes") {
  const StageRates rates{1e-9, 3e-9, 2e-9};
  ForecastWork work{100'000'000, 100'000'000};
  const double bytes = predict_run(rates, 0, work, 2).total;
  work.jobs = work.tiles = 3'500'000;
  const Forecast tiles = predict_run(rates, 0, work, 2);
  CHECK(tiles.total > 20 * bytes);
  CHECK(tiles.total < 60);
  CHECK(tiles.seconds[1] == 0);
}

TEST_CASE("every kind of job has a time, and memory stays below what a run may take") {
  ProgramBuilder builder;
  const Extents shape{64, 64};
  auto add = [&](const char* name, Dtype dtype) {
    OutputId output = builder.add_output(name, dtype, shape, whole(shape));
    builder.place(output, name, 0);
    return output;
  };
  SourceId source = builder.add_stored(0, "f", 0, 64 * 64 * 4);
  const Extents rows = byte_strides(shape, 4), columns{4, 256};
  builder.add_copy(add("copied", Dtype::kFloat32), whole(shape), source, Dtype::kFloat32, 0, rows);
  builder.add_copy(add("turned", Dtype::kFloat32), whole(shape), source, Dtype::kFloat32, 0,
                   columns);
  builder.add_copy(add("cast", Dtype::kBfloat16), whole(shape), source, Dtype::kFloat32, 0, rows);
  ProgramBuilder::Change scaled;
  scaled.is_scaled = true;
  builder.add_changed(add("scaled", Dtype::kFloat32), whole(shape), source, Dtype::kFloat32, 0,
                      rows, scaled);
  builder.add_zeros(add("zeros", Dtype::kFloat32), whole(shape));
  Program program = builder.take();
  REQUIRE(prove(program).has_value());
  program.sources.clear();  // without sources only the threads' work is measured
  for (std::uint64_t memory : {std::uint64_t{64} << 20, std::uint64_t{4} << 30}) {
    Program unread = program;
    auto made = forecast(unread, {}, 0, memory);
    REQUIRE(made.has_value());
    CHECK(made->seconds[static_cast<std::size_t>(Stage::kMake)] > 0);
    CHECK(made->memory > 0);
    CHECK(made->memory <= memory);
  }
}
