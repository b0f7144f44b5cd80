#include "core/program/program_builder.h"

#include <cassert>
#include <utility>

#include "core/program/job_rows.h"
#include "core/program/program_order.h"

namespace shw {

Program canonical(Program program, std::vector<OutputId>* moved) {
  std::vector<std::int64_t> of_jobs = program.pool;
  return in_order(std::move(program), std::move(of_jobs), moved);
}

void ProgramBuilder::expect(std::size_t sources, std::size_t outputs, std::size_t numbers) {
  program_.sources.reserve(sources);
  program_.outputs.reserve(outputs);
  program_.jobs.reserve(outputs);  // nearly every output has one job
  program_.pool.reserve(numbers);
  job_numbers_.reserve(numbers);
}

std::uint32_t ProgramBuilder::name(std::string_view text) {
  auto found = by_name_.find(text);
  if (found != by_name_.end()) return found->second;
  auto id = static_cast<std::uint32_t>(program_.names.size());
  program_.names.emplace_back(text);
  by_name_.emplace(text, id);
  return id;
}

SourceId ProgramBuilder::add(const ProgramSource& source) {
  program_.sources.push_back(source);
  return SourceId{static_cast<std::uint32_t>(program_.sources.size() - 1)};
}

SourceId ProgramBuilder::add_stored(std::uint32_t input, std::string_view file,
                                    std::uint64_t offset, std::uint64_t length) {
  return add({input, name(file), offset, length, SourceForm::kStored, 0});
}

SourceId ProgramBuilder::add_item(std::uint32_t input, std::string_view file, std::uint64_t offset,
                                  std::uint64_t length, std::uint32_t chunk) {
  return add({input, name(file), offset, length, SourceForm::kItem, chunk});
}

OutputId ProgramBuilder::add_output(std::string_view tensor, Dtype dtype, ExtentsView shape,
                                    const Box& box) {
  ProgramOutput row;
  row.tensor = row.file = name(tensor);
  row.dtype = dtype;
  row.length = static_cast<std::uint64_t>(volume(box.sizes).value_or(0)) * size_of(dtype);
  row.ndim = static_cast<std::uint32_t>(shape.size());
  row.numbers = append(program_.pool, shape);
  append(program_.pool, box.offsets);
  append(program_.pool, box.sizes);
  program_.outputs.push_back(row);
  return OutputId{static_cast<std::uint32_t>(program_.outputs.size() - 1)};
}

void ProgramBuilder::place(OutputId output, std::string_view file, std::uint64_t offset) {
  ProgramOutput& row = program_.outputs[static_cast<std::size_t>(output)];
  row.file = name(file);
  row.offset = offset;
}

ProgramJob& ProgramBuilder::add_job(OutputId output, const Box& box, ExtentsView strides) {
  const ProgramOutput& out = program_.output(output);
  assert(box.sizes.size() == out.ndim && strides.size() == out.ndim);
  ProgramJob job;
  job.output = output;
  job.to = job.from = out.dtype;
  job.numbers = append(job_numbers_, box.offsets);
  append(job_numbers_, box.sizes);
  append(job_numbers_, strides);
  program_.jobs.push_back(job);
  return program_.jobs.back();
}

void ProgramBuilder::add_copy(OutputId output, const Box& box, SourceId source, Dtype from,
                              std::int64_t first, ExtentsView strides) {
  if (is_empty(box)) return;
  read_from(add_job(output, box, strides), source, from, first);
}

void ProgramBuilder::add_changed(OutputId output, const Box& box, SourceId source, Dtype from,
                                 std::int64_t first, ExtentsView strides, const Change& change) {
  if (is_empty(box)) return;
  add_copy(output, box, source, from, first, strides);
  shw::change(program_.jobs.back(), change);
}

void ProgramBuilder::add_zeros(OutputId output, const Box& box) {
  add_constant(output, box, {0, 0});
}

void ProgramBuilder::add_constant(OutputId output, const Box& box,
                                  const std::array<std::uint64_t, 2>& bits) {
  if (is_empty(box)) return;
  set_constant(add_job(output, box, Extents(box.sizes.size(), 0)), bits);
}

Program ProgramBuilder::take(std::vector<OutputId>* moved) {
  by_name_.clear();
  return in_order(std::move(program_), std::move(job_numbers_), moved);
}

}  // namespace shw
