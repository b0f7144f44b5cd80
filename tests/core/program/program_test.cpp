#include "core/program/program.h"

#include <doctest/doctest.h>

#include <functional>

#include "core/program/program_builder.h"
#include "core/program/random_program.h"

using namespace shw;
using namespace shw::test;

namespace {

// [2, 4] float32 from two sources, one of them transposed, and a zero column.
ProgramBuilder small_builder(bool other_way_round) {
  ProgramBuilder builder;
  OutputId unused = builder.add_output("empty", Dtype::kFloat32, Extents{0, 3}, {{0, 0}, {0, 3}});
  OutputId output = builder.add_output("w", Dtype::kFloat32, Extents{4, 4}, {{2, 0}, {2, 4}});
  builder.place(unused, "b", 0);
  builder.place(output, "a", 64);
  auto left = [&] {
    SourceId source = builder.add_stored(0, "old", 128, 16);
    builder.add_copy(output, {{0, 0}, {2, 2}}, source, Dtype::kFloat32, 0, Extents{4, 8});
  };
  auto right = [&] {
    SourceId source = builder.add_stored(0, "older", 0, 4);
    builder.add_copy(output, {{0, 2}, {2, 1}}, source, Dtype::kBfloat16, 0, Extents{2, 2});
  };
  auto zeros = [&] { builder.add_zeros(output, {{0, 3}, {2, 1}}); };
  if (other_way_round) zeros();
  if (!other_way_round) left();
  right();
  if (other_way_round) left();
  if (!other_way_round) zeros();
  return builder;
}
Program small_program() {
  return small_builder(false).take();
}

std::string why_not(const Program& program) {
  auto proved = prove(program);
  return proved ? std::string() : proved.error().message;
}

}  // namespace

TEST_CASE("a program is the same in whatever order it was put together") {
  Program one = small_program(), other = small_builder(true).take();
  CHECK(why_not(one) == "");
  CHECK(hash_of(one) == hash_of(other));
  CHECK(one.names == std::vector<std::string>{"a", "b", "empty", "old", "older", "w"});
  REQUIRE(one.jobs.size() == 3);
  CHECK(one.jobs[1].op == ElementOp::kCast);
  CHECK(one.jobs[2].op == ElementOp::kConstant);
  std::vector<OutputId> moved;
  Program again = canonical(one, &moved);
  CHECK(hash_of(again) == hash_of(one));
  CHECK(moved == std::vector<OutputId>{OutputId{0}, OutputId{1}});
  JobRange jobs = jobs_of(one, OutputId{0});
  CHECK(jobs.last - jobs.first == 3);
  CHECK(jobs_of(one, OutputId{1}).first == jobs_of(one, OutputId{1}).last);
}

TEST_CASE("every random program is proved and has a hash of its own") {
  Dice dice(5);
  std::vector<Hash128> seen;
  for (int round = 0; round < 200; ++round) {
    Program program = random_program(dice);
    CHECK(why_not(program) == "");
    seen.push_back(hash_of(program));
  }
  for (std::size_t i = 1; i < seen.size(); ++i) CHECK_FALSE(seen[i] == seen[i - 1]);
}

TEST_CASE("a program that was tampered with is refused and says why") {
  struct Case {
    const char* expected;  // a part of the message
    std::function<void(Program&)> tamper;
  };
  constexpr auto kMany = std::uint32_t{0x7fffffff};
  constexpr auto kHuge = std::int64_t{1} << 62;
  const std::vector<Case> cases = {
      {"exactly once", [](Program& p) { p.jobs.pop_back(); }},
      {"canonical order", [](Program& p) { p.jobs.push_back(p.jobs.back()); }},
      {"exactly once", [](Program& p) { p.pool[p.jobs[2].numbers + 2] = 1; }},
      {"canonical order", [](Program& p) { p.pool[p.jobs[2].numbers + 1] = 2; }},
      {"fills no box", [](Program& p) { p.pool[p.jobs[2].numbers + 3] = 2; }},
      {"fills no box", [](Program& p) { p.pool[p.jobs[2].numbers + 3] = 0; }},
      {"fills no box", [](Program& p) { p.pool[p.jobs[0].numbers] = -1; }},
      {"fills no box", [](Program& p) { p.pool[p.jobs[0].numbers + 2] = kHuge; }},
      {"reads outside", [](Program& p) { p.sources[0].length = 15; }},
      {"reads outside", [](Program& p) { p.jobs[0].first = 1; }},
      {"reads outside", [](Program& p) { p.jobs[0].first = -1; }},
      {"reads outside", [](Program& p) { p.jobs[0].first = kHuge; }},
      {"reads outside", [](Program& p) { p.pool[p.jobs[0].numbers + 4] = -4; }},
      {"reads outside", [](Program& p) { p.pool[p.jobs[0].numbers + 4] = 1 + kHuge; }},
      {"reads outside", [](Program& p) { p.pool[p.jobs[0].numbers + 5] = INT64_MAX; }},
      {"reads outside", [](Program& p) { p.pool[p.jobs[0].numbers + 5] = INT64_MIN; }},
      {"has no source", [](Program& p) { p.jobs[0].source = SourceId::kNone; }},
      {"has no source", [](Program& p) { p.jobs[0].source = SourceId{2}; }},
      {"fills no output", [](Program& p) { p.jobs[0].output = OutputId{2}; }},
      {"has no box", [](Program& p) { p.jobs[0].numbers = kMany; }},
      {"another dtype", [](Program& p) { p.jobs[0].to = Dtype::kInt32; }},
      {"another dtype", [](Program& p) { p.jobs[0].from = Dtype::kInt32; }},
      {"another dtype", [](Program& p) { p.jobs[0].from = Dtype::kCount; }},
      {"no cast", [](Program& p) { p.jobs[0].op = ElementOp::kCast; }},
      {"no cast", [](Program& p) { p.jobs[1].from = Dtype::kInt16; }},
      {"something unknown", [](Program& p) { p.jobs[0].op = ElementOp{9}; }},
      {"fills with a constant", [](Program& p) { p.jobs[0].op = ElementOp::kConstant; }},
      {"and a constant", [](Program& p) { p.jobs[0].constant[1] = 1; }},
      {"without a name", [](Program& p) { p.sources[0].file = kMany; }},
      {"without a name", [](Program& p) { p.outputs[0].file = kMany; }},
      {"unknown codec", [](Program& p) { p.sources[0].form = SourceForm{7}; }},
      {"file can hold", [](Program& p) { p.sources[0].offset = UINT64_MAX; }},
      {"file can hold", [](Program& p) { p.outputs[0].offset = UINT64_MAX - 8; }},
      {"unknown dtype", [](Program& p) { p.outputs[0].dtype = Dtype::kUnknown; }},
      {"has no shape", [](Program& p) { p.outputs[0].ndim = kMany; }},
      {"has no shape", [](Program& p) { p.outputs[0].numbers = kMany; }},
      {"is not a box", [](Program& p) { p.pool[p.outputs[0].numbers + 2] = 3; }},
      {"is not a box", [](Program& p) { p.pool[p.outputs[0].numbers] = -1; }},
      {"another number of bytes", [](Program& p) { p.outputs[0].length = 31; }},
      {"in the middle",
       [](Program& p) {
         p.outputs[1].file = p.outputs[0].file;
         p.outputs[1].offset = 65;
       }},
      {"canonical order", [](Program& p) { std::swap(p.outputs[0], p.outputs[1]); }},
      {"canonical order", [](Program& p) { std::swap(p.jobs[0], p.jobs[1]); }},
      {"canonical order",
       [](Program& p) {
         std::swap(p.sources[0], p.sources[1]);
         std::swap(p.jobs[0].source, p.jobs[1].source);
       }},
      {"canonical order", [](Program& p) { p.pool.push_back(1); }},
      {"canonical order", [](Program& p) { p.names.emplace_back("zzz"); }},
  };
  REQUIRE(why_not(small_program()) == "");
  Hash128 hash = hash_of(small_program());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    Program program = small_program();
    cases[i].tamper(program);
    CHECK_FALSE(hash_of(program) == hash);
    std::string why = why_not(program);
    CHECK_MESSAGE(why.find(cases[i].expected) != std::string::npos, why);
  }
}

TEST_CASE("a number changed anywhere in a program changes its hash and does no harm") {
  Dice dice(9);
  for (int round = 0; round < 2000; ++round) {
    Program program = small_program();
    Hash128 before = hash_of(program);
    std::int64_t value = std::int64_t{1} << dice.pick(0, 62);
    if (dice.one_in(2)) value = -value;
    auto row = [&](auto& rows) -> auto& {
      return rows[static_cast<std::size_t>(
          dice.pick(0, static_cast<std::int64_t>(rows.size()) - 1))];
    };
    auto set = [&](auto& field) {
      using Field = std::decay_t<decltype(field)>;
      field =
          static_cast<Field>(static_cast<std::uint64_t>(field) ^ static_cast<std::uint64_t>(value));
    };
    switch (dice.pick(0, 8)) {
      case 0:
        set(row(program.pool));
        break;
      case 1:
        set(row(program.sources).offset);
        break;
      case 2:
        set(row(program.sources).length);
        break;
      case 3:
        set(row(program.outputs).ndim);
        break;
      case 4:
        set(row(program.outputs).numbers);
        break;
      case 5:
        set(row(program.jobs).first);
        break;
      case 6:
        set(row(program.jobs).numbers);
        break;
      case 7:
        set(row(program.jobs).constant[0]);
        break;
      default:
        set(row(program.outputs).length);
        break;
    }
    bool changed = hash_of(program) != before;
    // A flipped bit outside a narrow field changes nothing, so the program is still proved.
    // Otherwise it is refused, or moves a source within its file, which only the hash detects.
    auto proved = prove(program);
    CHECK((changed || proved.has_value()));
  }
}
