#include "core/program/program_frame.h"
#include "core/program/program_builder.h"

#include <doctest/doctest.h>

#include <string>

#include "core/program/random_program.h"

using namespace shw;
using namespace shw::test;

namespace {

// The content of a program, for both builders.
struct DrawnOutput {
  std::string tensor, file;
  std::uint64_t offset = 0;
  Dtype dtype = Dtype::kFloat32;
  Extents shape;
  Box box;
  std::vector<NewJob> jobs = {};  // with sources by index in Drawn::sources
};
struct Drawn {
  std::vector<std::string> files;      // of sources
  std::vector<ProgramSource> sources;  // `file`: in files
  std::vector<DrawnOutput> outputs;
};

NewJob draw_job(const Box& box, Dtype to, Drawn& drawn, Dice& dice) {
  NewJob job{box};
  job.strides = Extents(box.sizes.size(), 0);
  if (dice.one_in(4)) {
    job.constant = {static_cast<std::uint64_t>(dice.pick(0, 9)), 0};
    return job;
  }
  job.from = dice.one_in(3) ? Dtype::kFloat64 : to;
  RandomStrides strides = random_strides(box.sizes, size_of(job.from), dice);
  job.strides = strides.strides;
  job.first = strides.first;
  job.source = SourceId{static_cast<std::uint32_t>(drawn.sources.size())};
  const auto offset = static_cast<std::uint64_t>(dice.pick(0, 3));
  // Sources with the same bytes are one source in the program.
  drawn.sources.push_back({static_cast<std::uint32_t>(dice.pick(0, 1)),
                           static_cast<std::uint32_t>(dice.pick(0, 2)), offset,
                           static_cast<std::uint64_t>(strides.reach), SourceForm::kStored, 0});
  if (dice.one_in(3)) drawn.sources.back().form = SourceForm::kItem;
  if (job.from == Dtype::kFloat64 && dice.one_in(2)) job.change.via[0] = Dtype::kFloat16;
  if (!dice.one_in(4)) return job;
  job.change.is_scaled = true;
  if (dice.one_in(2)) {
    job.change.factor_bits = 0x40000000;
  } else {
    job.change.factor = job.source;
    job.change.factor_at = dice.pick(0, 4);
  }
  return job;
}

Drawn draw(Dice& dice) {
  Drawn drawn{{"one", "other", "zzz"}, {}, {}};
  const std::int64_t count = dice.pick(0, 40);
  for (std::int64_t o = 0; o < count; ++o) {
    DrawnOutput out;
    out.tensor = "t" + std::to_string(dice.pick(0, 5));
    out.file = "f" + std::to_string(dice.pick(0, 3));
    // The drawn outputs need not be in order.
    out.offset = static_cast<std::uint64_t>(dice.pick(0, 1'000'000)) * 10'000;
    if (dice.one_in(2)) out.dtype = Dtype::kBfloat16;
    Extents sizes(static_cast<std::size_t>(dice.pick(0, 4)));
    for (auto& size : sizes) size = dice.pick(dice.one_in(6) ? 0 : 1, 5);
    out.box = {Extents(sizes.size(), 1), sizes};
    for (std::int64_t size : sizes) out.shape.push_back(size + 2);
    std::vector<Box> boxes = random_boxes(sizes, dice);
    dice.shuffle(boxes);
    for (const Box& box : boxes) {
      if (!is_empty(box)) out.jobs.push_back(draw_job(box, out.dtype, drawn, dice));
    }
    drawn.outputs.push_back(std::move(out));
  }
  return drawn;
}

Program built(const Drawn& drawn, std::vector<OutputId>& moved) {
  ProgramBuilder builder;
  std::vector<SourceId> sources;
  for (const ProgramSource& source : drawn.sources) {
    const std::string& file = drawn.files[source.file];
    sources.push_back(source.form == SourceForm::kStored
                          ? builder.add_stored(source.input, file, source.offset, source.length)
                          : builder.add_item(source.input, file, source.offset, source.length, 0));
  }
  for (const DrawnOutput& out : drawn.outputs) {
    OutputId output = builder.add_output(out.tensor, out.dtype, out.shape, out.box);
    builder.place(output, out.file, out.offset);
    for (const NewJob& job : out.jobs) {
      if (job.source == SourceId::kNone) {
        builder.add_constant(output, job.box, job.constant);
        continue;
      }
      ProgramBuilder::Change change = job.change;
      if (change.factor != SourceId::kNone)
        change.factor = sources[static_cast<std::size_t>(change.factor)];
      builder.add_changed(output, job.box, sources[static_cast<std::size_t>(job.source)], job.from,
                          job.first, job.strides, change);
    }
  }
  return builder.take(&moved);
}

Program framed(const Drawn& drawn, std::vector<OutputId>& moved) {
  std::vector<std::string> names;
  for (const ProgramSource& source : drawn.sources) names.push_back(drawn.files[source.file]);
  for (const DrawnOutput& out : drawn.outputs) {
    names.push_back(out.file);
    names.push_back(out.tensor);
  }
  ProgramFrame frame(names);
  std::vector<ProgramSource> rows = drawn.sources;
  for (ProgramSource& row : rows) row.file = frame.name(drawn.files[row.file]);
  std::vector<SourceId> sources;
  frame.set_sources(std::move(rows), sources);
  auto in_frame = [&](SourceId id) {
    bool stays = id == SourceId::kNone || sources.empty();
    return stays ? id : sources[static_cast<std::size_t>(id)];
  };
  moved = frame.set_outputs(drawn.outputs.size(), [&](std::size_t i) {
    const DrawnOutput& out = drawn.outputs[i];
    const auto length = static_cast<std::uint64_t>(*volume(out.box.sizes)) * size_of(out.dtype);
    return ProgramFrame::Output{frame.name(out.file),
                                frame.name(out.tensor),
                                out.offset,
                                length,
                                out.dtype,
                                static_cast<std::uint32_t>(out.shape.size()),
                                static_cast<std::uint32_t>(out.jobs.size())};
  });
  // In another order than they were announced in.
  for (std::size_t i = drawn.outputs.size(); i-- > 0;) {
    std::vector<NewJob> jobs = drawn.outputs[i].jobs;
    for (NewJob& job : jobs) {
      job.source = in_frame(job.source);
      job.change.factor = in_frame(job.change.factor);
    }
    frame.fill(moved[i], drawn.outputs[i].shape, drawn.outputs[i].box, jobs);
  }
  return frame.take();
}

}  // namespace

TEST_CASE("a program that is filled in where it is is the one that is put in order") {
  Dice dice(11);
  std::size_t in_order = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const Drawn drawn = draw(dice);
    std::vector<OutputId> moved, placed;
    const Program slow = built(drawn, moved), fast = framed(drawn, placed);
    CHECK(hash_of(fast) == hash_of(slow));
    CHECK(fast.names == slow.names);
    CHECK(fast.pool == slow.pool);
    CHECK(fast.jobs.size() == slow.jobs.size());
    CHECK(moved == placed);
    for (std::uint32_t o = 0; o < slow.outputs.size(); ++o) {
      JobRange jobs = jobs_of(fast, OutputId{o});
      for (std::size_t j = 0; j < fast.jobs.size(); ++j)
        CHECK((fast.jobs[j].output == OutputId{o}) == (j >= jobs.first && j < jobs.last));
    }
    in_order += drawn.outputs.size() > 1 && moved.front() == OutputId{0};
  }
  CHECK(in_order > 0);
}
