// A program of millions of rows, filled in by all threads at once. Where each row stands is known
// before the first one is written: nothing is sorted, moved or held twice. What comes out is what a
// ProgramBuilder makes of the same rows, to the hash, on any number of threads.
//
//   names, then sources, then outputs with the number of their jobs, then the jobs of each output
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/program/program.h"

namespace shw {

// A job of an output that has no place in a program yet.
struct NewJob {
  Box box;                            // in the output; not empty
  SourceId source = SourceId::kNone;  // none: it is `constant`
  Dtype from = Dtype::kUnknown;       // of the source
  std::int64_t first = 0;             // as ProgramBuilder::add_changed() takes them
  Extents strides = {};
  ProgramBuilder::Change change = {};
  std::array<std::uint64_t, 2> constant = {0, 0};
};

class ProgramFrame {
 public:
  // Of files and tensors that will be in it, in any order, as often as they come.
  explicit ProgramFrame(std::vector<std::string> names);
  std::uint32_t name(std::string_view text) const;

  // All that jobs read, with files by name(). `moved[i]` becomes where source i went; where all
  // stay where they are, which is the case where they come in order, it becomes empty.
  void set_sources(std::vector<ProgramSource> rows, std::vector<SourceId>& moved);

  // An output and how many jobs fill it.
  struct Output {
    std::uint32_t file = 0, tensor = 0;  // by name()
    std::uint64_t offset = 0, length = 0;
    Dtype dtype = Dtype::kUnknown;
    std::uint32_t ndim = 0, jobs = 0;
  };
  // Where output i went, which output_of(i) says the same of whenever, and in whatever thread, it
  // is asked.
  std::vector<OutputId> set_outputs(std::size_t count,
                                    const std::function<Output(std::size_t)>& output_of);

  // Once an output, from any thread. As many jobs as were said, which meet nowhere.
  void fill(OutputId output, ExtentsView shape, const Box& box, std::vector<NewJob>& jobs);

  // An output that is filled stands there as it will, while others are still being filled.
  const Program& program() const { return program_; }
  JobRange jobs_of(OutputId output) const {
    const auto o = static_cast<std::size_t>(output);
    return {first_job_[o], first_job_[o + 1]};
  }

  Program take();

 private:
  std::vector<OutputId> in_order(std::size_t count,
                                 const std::function<Output(std::size_t)>& output_of) const;
  void make_room(std::size_t count, const std::function<Output(std::size_t)>& output_of);

  Program program_;
  std::vector<std::uint32_t> first_job_;  // by output, and one more
};

}  // namespace shw
