#include "core/program/program_order.h"

#include <string_view>

#include "core/program/job_rows.h"

namespace shw {
namespace {

// Row-major index of a job's first element in its output, the sort key of an output's jobs.
// `of_jobs` is the pool with the jobs' offsets.
std::int64_t first_index(const Program& program, ExtentsView of_jobs, const ProgramJob& job) {
  std::int64_t index = 0;
  ExtentsView sizes = program.sizes(program.output(job.output));
  ExtentsView at = of_jobs.subspan(job.numbers, sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) index = index * sizes[d] + at[d];
  return index;
}

// A 16-byte sort key stored next to the row index: comparisons through the rows themselves would
// cost a cache miss each, for 3.5 million rows.
struct RowPlace {
  std::uint64_t major = 0, minor = 0;
};

// Row indices sorted by key, then by `rest`.
template <class PlaceOf, class Rest>
std::vector<std::uint32_t> order_by(std::size_t rows, PlaceOf place_of, Rest rest) {
  struct Keyed {
    RowPlace place;
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

// Permutes rows in place: row i becomes old row order[i]. Follows the cycles of `order`, which is
// consumed; a copy of 3.5 million jobs would need 250 MB.
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

// Sorts the names in use; `moved` maps old to new indices.
void sort_names(Program& program, std::vector<std::uint32_t>& moved) {
  std::vector<bool> used(program.names.size(), false);
  for (const ProgramSource& source : program.sources) used[source.file] = true;
  for (const ProgramOutput& output : program.outputs)
    used[output.file] = used[output.tensor] = true;
  std::vector<std::string> names;
  moved.assign(program.names.size(), 0);
  for (std::uint32_t i : order_by(
           program.names.size(), [](std::uint32_t) { return RowPlace{}; },
           [&](std::uint32_t n) { return std::string_view(program.names[n]); })) {
    if (!used[i]) continue;
    if (names.empty() || names.back() != program.names[i]) names.push_back(program.names[i]);
    moved[i] = static_cast<std::uint32_t>(names.size() - 1);
  }
  program.names = std::move(names);
}

void sort_outputs(Program& program, std::vector<OutputId>& moved) {
  const std::vector<ProgramOutput>& rows = program.outputs;
  std::vector<std::uint32_t> order = order_by(
      rows.size(),
      [&](std::uint32_t o) {
        return RowPlace{rows[o].file, rows[o].offset};
      },
      [&](std::uint32_t o) { return std::pair(rows[o].length, rows[o].tensor); });
  moved.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) moved[order[i]] = OutputId{i};
  permute(program.outputs, order);
}

// The keys are computed once per job, not per comparison.
void sort_jobs(Program& program, ExtentsView of_jobs) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;  // negative numbers first
  const std::vector<ProgramJob>& rows = program.jobs;
  std::vector<std::uint32_t> order = order_by(
      rows.size(),
      [&](std::uint32_t j) {
        auto begin = static_cast<std::uint64_t>(first_index(program, of_jobs, rows[j]));
        return RowPlace{static_cast<std::uint64_t>(rows[j].output), begin ^ kSign};
      },
      [](std::uint32_t j) { return j; });
  permute(program.jobs, order);
}

// Rebuilds the pool: the numbers of the outputs, then those of the jobs. Copied parts are freed on
// the way, so that at most half of 3.5 million jobs exist twice.
void rebuild_index_pool(Program& program, std::vector<std::int64_t> of_jobs) {
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

}  // namespace

void put_in_order(std::vector<ProgramSource>& rows, std::vector<SourceId>& moved) {
  moved.clear();
  auto rises = [](const ProgramSource& a, const ProgramSource& b) { return key_of(a) < key_of(b); };
  auto stays = [&](const ProgramSource& a, const ProgramSource& b) { return !rises(a, b); };
  if (std::adjacent_find(rows.begin(), rows.end(), stays) == rows.end()) return;
  std::vector<std::uint32_t> order = order_by(
      rows.size(),
      [&](std::uint32_t s) {
        return RowPlace{std::uint64_t{rows[s].input} << 32 | rows[s].file, rows[s].offset};
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

Program in_order(Program program, std::vector<std::int64_t> of_jobs, std::vector<OutputId>* moved) {
  std::vector<std::uint32_t> names;
  std::vector<SourceId> sources;
  std::vector<OutputId> outputs;
  sort_names(program, names);
  for (ProgramSource& source : program.sources) source.file = names[source.file];
  put_in_order(program.sources, sources);
  for (ProgramOutput& row : program.outputs) {
    row.file = names[row.file];
    row.tensor = names[row.tensor];
  }
  sort_outputs(program, outputs);
  auto moved_source = [&](SourceId id) {
    return id == SourceId::kNone || sources.empty() ? id : sources[static_cast<std::size_t>(id)];
  };
  for (ProgramJob& job : program.jobs) {
    job.output = outputs[static_cast<std::size_t>(job.output)];
    job.source = moved_source(job.source);
    job.factor = moved_source(job.factor);
  }
  sort_jobs(program, of_jobs);
  rebuild_index_pool(program, std::move(of_jobs));
  if (moved != nullptr) *moved = std::move(outputs);
  return program;
}

}  // namespace shw
