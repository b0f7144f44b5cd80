// Builds a program with millions of rows in parallel. The position of each row is computed before
// the first one is written, so that nothing is sorted, moved or copied. The result equals that of
// ProgramBuilder for the same rows, to the hash, with any number of threads.
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

// A job that is not yet part of a program.
struct NewJob {
  Box box;                            // in the output; not empty
  SourceId source = SourceId::kNone;  // kNone: it is `constant`
  Dtype from = Dtype::kUnknown;       // of the source
  std::int64_t first = 0;             // as in ProgramBuilder::add_changed()
  Extents strides = {};
  JobConversion change = {};
  std::array<std::uint64_t, 2> constant = {0, 0};
};

class ProgramFrame {
 public:
  // `names`: all file and tensor names, in any order, possibly repeated.
  explicit ProgramFrame(std::vector<std::string> names);
  std::uint32_t name(std::string_view text) const;

  // Sets all sources that jobs read, with files given by name(). `moved[i]`: new id of source i;
  // empty if no id changes, as for sources added in order.
  void set_sources(std::vector<ProgramSource> rows, std::vector<SourceId>& moved);

  // An output and the number of its jobs.
  struct Output {
    std::uint32_t file = 0, tensor = 0;  // indices given by name()
    std::uint64_t offset = 0, length = 0;
    Dtype dtype = Dtype::kUnknown;
    std::uint32_t ndim = 0, jobs = 0;
  };
  // Adds `count` outputs; output_of(i) must return equal values on every call and thread. Returns
  // the new id of each output.
  std::vector<OutputId> set_outputs(std::size_t count,
                                    const std::function<Output(std::size_t)>& output_of);

  // Writes the jobs of an output: once per output, from any thread, as many as announced.
  void fill(OutputId output, ExtentsView shape, const Box& box, std::vector<NewJob>& jobs);

  // Outputs that are filled are final while others are still being filled.
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
  std::vector<std::uint32_t> first_job_;  // by output, plus one
};

}  // namespace shw
