#include "core/program/program.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

namespace shw {

bool reads_contiguous_rows(const Program& program, const ProgramJob& job) {
  ExtentsView sizes = program.sizes(job), strides = program.source_strides(job);
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1) return strides[d] == static_cast<std::int64_t>(size_of(job.from));
  }
  return true;
}

JobRange jobs_of(const Program& program, OutputId output) {
  // Outputs have similar numbers of jobs, so the search starts at the expected position. A binary
  // search over millions of jobs costs twenty cache misses.
  const std::vector<ProgramJob>& jobs = program.jobs;
  const std::size_t outputs = std::max<std::size_t>(program.outputs.size(), 1);
  const std::size_t guess =
      std::min(static_cast<std::size_t>(output), outputs) * jobs.size() / outputs;
  std::size_t low = guess, high = guess;
  for (std::size_t step = 1; low > 0 && jobs[low - 1].output >= output; step *= 4)
    low -= std::min(step, low);
  for (std::size_t step = 1; high < jobs.size() && jobs[high].output <= output; step *= 4)
    high += std::min(step, jobs.size() - high);
  auto [first, last] = std::equal_range(
      jobs.begin() + static_cast<std::ptrdiff_t>(low),
      jobs.begin() + static_cast<std::ptrdiff_t>(high), ProgramJob{.output = output},
      [](const ProgramJob& a, const ProgramJob& b) { return a.output < b.output; });
  return {static_cast<std::size_t>(first - jobs.begin()),
          static_cast<std::size_t>(last - jobs.begin())};
}

namespace {

// Hashes numbers as eight bytes and texts with their length, so that the compiler's row layout does
// not matter. Hashes some hundred rows per call, because calls per row would take longer than the
// hashing.
class Columns {
 public:
  template <class... Number>
  void add(Number... numbers) {
    if (count_ + sizeof...(numbers) > row_.size()) flush();
    ((row_[count_++] = static_cast<std::uint64_t>(numbers)), ...);
  }
  void add(ExtentsView numbers) {
    add(numbers.size());
    flush();
    hash_.add(std::as_bytes(numbers));
  }
  void add(std::string_view text) {
    add(text.size());
    flush();
    hash_.add(std::as_bytes(std::span(text)));
  }
  void add(const CastChain& hops) {
    static_assert(std::tuple_size_v<CastChain> == 6);
    add(hops[0], hops[1], hops[2], hops[3], hops[4], hops[5]);
  }
  Hash128 value() {
    flush();
    return hash_.value();
  }

 private:
  void flush() {
    hash_.add(std::as_bytes(std::span(row_).first(count_)));
    count_ = 0;
  }

  RunningHash hash_;
  std::array<std::uint64_t, 2048> row_{};
  std::size_t count_ = 0;
};

}  // namespace

Hash128 hash_of(const Program& program) {
  Columns columns;
  columns.add(program.names.size());
  for (const std::string& name : program.names) columns.add(std::string_view(name));
  columns.add(ExtentsView(program.pool));
  columns.add(program.sources.size());
  for (const ProgramSource& source : program.sources)
    columns.add(source.input, source.file, source.offset, source.length, source.form, source.chunk);
  columns.add(program.outputs.size());
  for (const ProgramOutput& out : program.outputs)
    columns.add(out.file, out.tensor, out.offset, out.length, out.dtype, out.ndim, out.numbers);
  columns.add(program.jobs.size());
  for (const ProgramJob& job : program.jobs) {
    columns.add(job.output, job.source, job.op, job.from, job.to, job.numbers, job.first,
                job.constant[0], job.constant[1], job.factor);
    columns.add(job.via);
  }
  return columns.value();
}

}  // namespace shw
