// Builds programs row by row.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/program/program.h"

namespace shw {

// Builds a program. Equal names and equal sources are merged in take(); a caller that reuses source
// ids keeps the tables small until then.
class ProgramBuilder {
 public:
  // Reserves rows, and numbers for outputs or jobs: tables that grow by doubling end half
  // empty.
  void expect(std::size_t sources, std::size_t outputs, std::size_t numbers);

  SourceId add_stored(std::uint32_t input, std::string_view file, std::uint64_t offset,
                      std::uint64_t length);
  SourceId add_item(std::uint32_t input, std::string_view file, std::uint64_t offset,
                    std::uint64_t length, std::uint32_t chunk);
  // Adds an output for a box of a tensor; its offset in the file is set later.
  OutputId add_output(std::string_view tensor, Dtype dtype, ExtentsView shape, const Box& box);
  void place(OutputId output, std::string_view file, std::uint64_t offset);

  // `box` is relative to the output. Byte strides; `first` is the byte of the first element.
  void add_copy(OutputId output, const Box& box, SourceId source, Dtype from, std::int64_t first,
                ExtentsView strides);
  using Change = JobConversion;
  void add_changed(OutputId output, const Box& box, SourceId source, Dtype from, std::int64_t first,
                   ExtentsView strides, const Change& change);
  void add_zeros(OutputId output, const Box& box);
  void add_constant(OutputId output, const Box& box, const std::array<std::uint64_t, 2>& bits);

  // Returns the canonical program and resets the builder. `moved[i]`: new id of output i.
  Program take(std::vector<OutputId>* moved = nullptr);

 private:
  std::uint32_t name(std::string_view text);
  SourceId add(const ProgramSource& source);
  ProgramJob& add_job(OutputId output, const Box& box, ExtentsView strides);

  Program program_;  // its pool holds the numbers of outputs only
  std::vector<std::int64_t> job_numbers_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
};

// Sorts and merges all rows, so that two programs with the same effect on the same bytes are equal,
// whoever lowered them. `moved[i]`: new id of output i.
Program canonical(Program program, std::vector<OutputId>* moved = nullptr);

}  // namespace shw
