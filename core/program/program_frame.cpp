#include "core/program/program_frame.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/base/parallel.h"
#include "core/program/job_rows.h"
#include "core/program/program_order.h"

namespace shw {
namespace {

auto place_of(const ProgramFrame::Output& output) {
  return std::tuple(output.offset, output.length, output.tensor);
}

// Copies two or three numbers: a call of memmove would take longer.
std::int64_t* put(std::int64_t* at, ExtentsView numbers) {
  for (std::int64_t number : numbers) *at++ = number;
  return at;
}

}  // namespace

ProgramFrame::ProgramFrame(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  program_.names = std::move(names);
}

std::uint32_t ProgramFrame::name(std::string_view text) const {
  auto found = std::lower_bound(program_.names.begin(), program_.names.end(), text);
  assert(found != program_.names.end() && *found == text);
  return static_cast<std::uint32_t>(found - program_.names.begin());
}

void ProgramFrame::set_sources(std::vector<ProgramSource> rows, std::vector<SourceId>& moved) {
  put_in_order(rows, moved);
  program_.sources = std::move(rows);
}

// Counting sort by file: most formats store tensors in sequence, so nothing is left to sort.
// Otherwise each file is sorted separately.
std::vector<OutputId> ProgramFrame::in_order(
    std::size_t count, const std::function<Output(std::size_t)>& output_of) const {
  using OutputPlace = decltype(place_of({}));
  std::vector<std::uint32_t> next(program_.names.size() + 1, 0);
  std::vector<OutputPlace> last(program_.names.size());
  bool rises = true;
  for (std::size_t i = 0; i < count; ++i) {
    const Output output = output_of(i);
    const OutputPlace place = place_of(output);
    rises = rises && last[output.file] <= place;
    last[output.file] = place;
    ++next[output.file + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  const std::vector<std::uint32_t> begin = next;
  std::vector<OutputId> moved(count);
  for (std::size_t i = 0; i < count; ++i) moved[i] = OutputId{next[output_of(i).file]++};
  if (rises) return moved;
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t i = 0; i < count; ++i) order[static_cast<std::size_t>(moved[i])] = i;
  auto before = [&](std::uint32_t a, std::uint32_t b) {
    auto one = place_of(output_of(a)), other = place_of(output_of(b));
    return one != other ? one < other : a < b;
  };
  auto sort_file = [&](std::size_t file) -> Status {
    std::sort(order.begin() + begin[file], order.begin() + begin[file + 1], before);
    return {};
  };
  static_cast<void>(parallel_for(program_.names.size(), sort_file));
  for (std::uint32_t o = 0; o < count; ++o) moved[order[o]] = OutputId{o};
  return moved;
}

// Allocates the final tables. Page faults of new memory take as long as filling it, so several
// threads touch it.
void ProgramFrame::make_room(std::size_t count,
                             const std::function<Output(std::size_t)>& output_of) {
  std::size_t jobs = 0, numbers = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Output output = output_of(i);
    jobs += output.jobs;
    numbers += std::size_t{3} * output.ndim * (1 + output.jobs);
  }
  static_cast<void>(parallel_for(3, [&](std::size_t table) -> Status {
    if (table == 0) program_.pool.resize(numbers);
    if (table == 1) program_.jobs.resize(jobs);
    if (table == 2) program_.outputs.resize(count);
    return {};
  }));
}

std::vector<OutputId> ProgramFrame::set_outputs(
    std::size_t count, const std::function<Output(std::size_t)>& output_of) {
  std::vector<OutputId> moved = in_order(count, output_of);
  make_room(count, output_of);
  first_job_.assign(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const Output output = output_of(i);
    const auto o = static_cast<std::size_t>(moved[i]);
    program_.outputs[o] = {
        output.file, output.tensor, output.offset, output.length, output.dtype, output.ndim, 0};
    first_job_[o + 1] = output.jobs;
  }
  std::partial_sum(first_job_.begin(), first_job_.end(), first_job_.begin());
  std::uint32_t numbers = 0;
  for (ProgramOutput& row : program_.outputs) {
    row.numbers = numbers;
    numbers += 3 * row.ndim;
  }
  for (std::size_t o = 0; o < count; ++o) {
    for (std::uint32_t j = first_job_[o]; j < first_job_[o + 1]; ++j) {
      program_.jobs[j].numbers = numbers;
      numbers += 3 * program_.outputs[o].ndim;
    }
  }
  return moved;
}

void ProgramFrame::fill(OutputId output, ExtentsView shape, const Box& box,
                        std::vector<NewJob>& jobs) {
  // Row-major order of their begins is lexicographic order.
  if (jobs.size() > 1)
    std::sort(jobs.begin(), jobs.end(),
              [](const NewJob& a, const NewJob& b) { return a.box.offsets < b.box.offsets; });
  const auto o = static_cast<std::size_t>(output);
  const ProgramOutput& row = program_.outputs[o];
  assert(first_job_[o + 1] - first_job_[o] == jobs.size());
  put(put(put(program_.pool.data() + row.numbers, shape), box.offsets), box.sizes);
  ProgramJob* job = program_.jobs.data() + first_job_[o];
  for (const NewJob& said : jobs) {
    assert(said.box.sizes.size() == row.ndim && said.strides.size() == row.ndim);
    job->output = output;
    job->from = job->to = row.dtype;
    put(put(put(program_.pool.data() + job->numbers, said.box.offsets), said.box.sizes),
        said.strides);
    if (said.source == SourceId::kNone) {
      set_constant(*job, said.constant);
    } else {
      read_from(*job, said.source, said.from, said.first);
      change(*job, said.change);
    }
    ++job;
  }
}

Program ProgramFrame::take() {
  return std::move(program_);
}

}  // namespace shw
