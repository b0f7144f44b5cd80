#include "core/program/program.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

namespace shw {
namespace {

auto key_of(const ProgramSource& source) {
  return std::tuple(source.input, source.file, source.offset, source.length, source.form,
                    source.chunk);
}

// Where a job begins in its output: jobs of one output stand in this order. Jobs have their numbers
// in `of_jobs`.
std::int64_t first_index(const Program& program, ExtentsView of_jobs, const ProgramJob& job) {
  std::int64_t index = 0;
  ExtentsView sizes = program.sizes(program.output(job.output));
  ExtentsView at = of_jobs.subspan(job.numbers, sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) index = index * sizes[d] + at[d];
  return index;
}

// Where a row stands, as far as 16 bytes say it. They stand beside each other while they are
// sorted: asked for at every comparison, those of 3.5 million rows are as many misses of the cache.
struct Place {
  std::uint64_t major = 0, minor = 0;
};

// Rows in the order of their places, and where those are equal of `rest`.
template <class PlaceOf, class Rest>
std::vector<std::uint32_t> order_by(std::size_t rows, PlaceOf place_of, Rest rest) {
  struct Keyed {
    Place place;
    std::uint32_t row = 0;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(rows);
  for (std::uint32_t i = 0; i < rows; ++i) keyed.push_back({place_of(i), i});
  std::sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    if (a.place.major != b.place.major) return a.place.major < b.place.major;
    if (a.place.minor != b.place.minor) return a.place.minor < b.place.minor;
    auto one = rest(a.row), other = rest(b.row);
    return one != other ? one < other : a.row < b.row;
  });
  std::vector<std::uint32_t> order;
  order.reserve(rows);
  for (const Keyed& one : keyed) order.push_back(one.row);
  return order;
}

// Row i becomes what row order[i] was. In place, along the cycles of `order`, which is used up: of
// 3.5 million jobs a second table would be 250 MB.
template <class Row>
void permute(std::vector<Row>& rows, std::vector<std::uint32_t>& order) {
  for (std::uint32_t start = 0; start < rows.size(); ++start) {
    if (order[start] == start) continue;
    Row first = std::move(rows[start]);
    std::uint32_t at = start;
    while (order[at] != start) {
      const std::uint32_t next = order[at];
      rows[at] = std::move(rows[next]);
      order[at] = at;
      at = next;
    }
    rows[at] = std::move(first);
    order[at] = at;
  }
}

std::uint32_t append(std::vector<std::int64_t>& pool, ExtentsView numbers) {
  auto at = static_cast<std::uint32_t>(pool.size());
  pool.insert(pool.end(), numbers.begin(), numbers.end());
  return at;
}

// Names in use, sorted; `moved` maps the old ones to them.
void sort_names(Program& program, std::vector<std::uint32_t>& moved) {
  std::vector<bool> used(program.names.size(), false);
  for (const ProgramSource& source : program.sources) used[source.file] = true;
  for (const ProgramOutput& output : program.outputs)
    used[output.file] = used[output.tensor] = true;
  std::vector<std::string> names;
  moved.assign(program.names.size(), 0);
  for (std::uint32_t i : order_by(
           program.names.size(), [](std::uint32_t) { return Place{}; },
           [&](std::uint32_t n) { return std::string_view(program.names[n]); })) {
    if (!used[i]) continue;
    if (names.empty() || names.back() != program.names[i]) names.push_back(program.names[i]);
    moved[i] = static_cast<std::uint32_t>(names.size() - 1);
  }
  program.names = std::move(names);
}

void sort_sources(Program& program, std::vector<SourceId>& moved) {
  std::vector<ProgramSource>& rows = program.sources;
  std::vector<std::uint32_t> order = order_by(
      rows.size(),
      [&](std::uint32_t s) {
        return Place{std::uint64_t{rows[s].input} << 32 | rows[s].file, rows[s].offset};
      },
      [&](std::uint32_t s) { return key_of(rows[s]); });
  moved.assign(rows.size(), SourceId::kNone);
  std::uint32_t kept = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && key_of(rows[order[i - 1]]) != key_of(rows[order[i]])) ++kept;
    moved[order[i]] = SourceId{kept};
  }
  permute(rows, order);
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const ProgramSource& a, const ProgramSource& b) {
                           return key_of(a) == key_of(b);
                         }),
             rows.end());
}

void sort_outputs(Program& program, std::vector<OutputId>& moved) {
  const std::vector<ProgramOutput>& rows = program.outputs;
  std::vector<std::uint32_t> order = order_by(
      rows.size(),
      [&](std::uint32_t o) {
        return Place{rows[o].file, rows[o].offset};
      },
      [&](std::uint32_t o) { return std::pair(rows[o].length, rows[o].tensor); });
  moved.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) moved[order[i]] = OutputId{i};
  permute(program.outputs, order);
}

// Where they begin is worked out once a job, not once a comparison.
void sort_jobs(Program& program, ExtentsView of_jobs) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;  // negative numbers stand first
  const std::vector<ProgramJob>& rows = program.jobs;
  std::vector<std::uint32_t> order = order_by(
      rows.size(),
      [&](std::uint32_t j) {
        auto begin = static_cast<std::uint64_t>(first_index(program, of_jobs, rows[j]));
        return Place{static_cast<std::uint64_t>(rows[j].output), begin ^ kSign};
      },
      [](std::uint32_t j) { return j; });
  permute(program.jobs, order);
}

// The numbers of every output, then those of every job, and no others. What has been copied goes:
// of 3.5 million jobs there is never more than half of it twice.
void sort_pool(Program& program, std::vector<std::int64_t> of_jobs) {
  std::size_t count = 0;
  for (const ProgramOutput& row : program.outputs) count += std::size_t{3} * row.ndim;
  for (const ProgramJob& job : program.jobs)
    count += std::size_t{3} * program.output(job.output).ndim;
  std::vector<std::int64_t> pool;
  pool.reserve(count);
  for (ProgramOutput& row : program.outputs)
    row.numbers = append(pool, program.numbers(row.numbers, 3 * row.ndim));
  program.pool = {};
  for (ProgramJob& job : program.jobs) {
    const std::size_t ndim = program.output(job.output).ndim;
    job.numbers = append(pool, ExtentsView(of_jobs).subspan(job.numbers, 3 * ndim));
  }
  program.pool = std::move(pool);
}

// `of_jobs`: the numbers that jobs have, where those in the program's pool are of outputs.
Program in_order(Program program, std::vector<std::int64_t> of_jobs, std::vector<OutputId>* moved) {
  std::vector<std::uint32_t> names;
  std::vector<SourceId> sources;
  std::vector<OutputId> outputs;
  sort_names(program, names);
  for (ProgramSource& source : program.sources) source.file = names[source.file];
  sort_sources(program, sources);
  for (ProgramOutput& row : program.outputs) {
    row.file = names[row.file];
    row.tensor = names[row.tensor];
  }
  sort_outputs(program, outputs);
  for (ProgramJob& job : program.jobs) {
    job.output = outputs[static_cast<std::size_t>(job.output)];
    if (job.source != SourceId::kNone) job.source = sources[static_cast<std::size_t>(job.source)];
    if (job.factor != SourceId::kNone) job.factor = sources[static_cast<std::size_t>(job.factor)];
  }
  sort_jobs(program, of_jobs);
  sort_pool(program, std::move(of_jobs));
  if (moved != nullptr) *moved = std::move(outputs);
  return program;
}

}  // namespace

Program canonical(Program program, std::vector<OutputId>* moved) {
  std::vector<std::int64_t> of_jobs = program.pool;
  return in_order(std::move(program), std::move(of_jobs), moved);
}

void ProgramBuilder::expect(std::size_t sources, std::size_t outputs, std::size_t numbers) {
  program_.sources.reserve(sources);
  program_.outputs.reserve(outputs);
  program_.jobs.reserve(outputs);  // nearly every output is one job
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
  ExtentsView shape = program_.shape(out), offsets = program_.offsets(out);
  for (std::size_t d = 0; d < out.ndim; ++d)
    job.logical = job.logical * shape[d] + offsets[d] + box.offsets[d];
  job.numbers = append(job_numbers_, box.offsets);
  append(job_numbers_, box.sizes);
  append(job_numbers_, strides);
  program_.jobs.push_back(job);
  return program_.jobs.back();
}

void ProgramBuilder::add_copy(OutputId output, const Box& box, SourceId source, Dtype from,
                              std::int64_t first, ExtentsView strides) {
  if (is_empty(box)) return;
  ProgramJob& job = add_job(output, box, strides);
  job.source = source;
  job.from = from;
  job.op = job.from == job.to ? ElementOp::kCopy : ElementOp::kCast;
  job.first = first;
}

void ProgramBuilder::add_changed(OutputId output, const Box& box, SourceId source, Dtype from,
                                 std::int64_t first, ExtentsView strides, const Change& change) {
  if (is_empty(box)) return;
  add_copy(output, box, source, from, first, strides);
  ProgramJob& job = program_.jobs.back();
  job.via = change.via;
  if (change.via[0] != Dtype::kUnknown) job.op = ElementOp::kCast;
  if (!change.is_scaled) return;
  job.op = ElementOp::kScale;
  job.factor = change.factor;
  job.factor_at = change.factor_at;
  job.constant[0] = change.factor_bits;
}

void ProgramBuilder::add_zeros(OutputId output, const Box& box) {
  add_constant(output, box, {0, 0});
}

void ProgramBuilder::add_constant(OutputId output, const Box& box,
                                  const std::array<std::uint64_t, 2>& bits) {
  if (is_empty(box)) return;
  ProgramJob& job = add_job(output, box, Extents(box.sizes.size(), 0));
  job.op = ElementOp::kConstant;
  job.constant[0] = bits[0];
  job.constant[1] = bits[1];
}

Program ProgramBuilder::take(std::vector<OutputId>* moved) {
  by_name_.clear();
  return in_order(std::move(program_), std::move(job_numbers_), moved);
}

bool reads_in_rows(const Program& program, const ProgramJob& job) {
  ExtentsView sizes = program.sizes(job), strides = program.source_strides(job);
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1) return strides[d] == static_cast<std::int64_t>(size_of(job.from));
  }
  return true;
}

JobRange jobs_of(const Program& program, OutputId output) {
  auto begin = program.jobs.begin();
  auto [first, last] = std::equal_range(
      begin, program.jobs.end(), ProgramJob{.output = output},
      [](const ProgramJob& a, const ProgramJob& b) { return a.output < b.output; });
  return {static_cast<std::size_t>(first - begin), static_cast<std::size_t>(last - begin)};
}

namespace {

// Numbers as eight bytes each, texts with their length before them: nothing of how a compiler lays
// a row out gets into the hash.
class Columns {
 public:
  template <class... Number>
  void add(Number... numbers) {
    const std::uint64_t row[] = {static_cast<std::uint64_t>(numbers)...};
    hash_.add(std::as_bytes(std::span(row)));
  }
  void add(ExtentsView numbers) {
    add(numbers.size());
    hash_.add(std::as_bytes(numbers));
  }
  void add(std::string_view text) {
    add(text.size());
    hash_.add(std::as_bytes(std::span(text)));
  }
  void add(const Hops& hops) {
    std::array<std::uint64_t, std::tuple_size_v<Hops>> row{};
    std::transform(hops.begin(), hops.end(), row.begin(),
                   [](Dtype hop) { return static_cast<std::uint64_t>(hop); });
    hash_.add(std::as_bytes(std::span(row)));
  }
  Hash128 value() const { return hash_.value(); }

 private:
  RunningHash hash_;
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
                job.constant[0], job.constant[1], job.factor, job.factor_at, job.logical);
    columns.add(job.via);
  }
  return columns.value();
}

}  // namespace shw
