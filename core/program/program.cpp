#include "core/program/program.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace shw {
namespace {

auto key_of(const ProgramSource& source) {
  return std::tuple(source.input, source.file, source.offset, source.length, source.form,
                    source.chunk);
}

// Where a job begins in its output: jobs of one output stand in this order.
std::int64_t first_index(const Program& program, const ProgramJob& job) {
  std::int64_t index = 0;
  ExtentsView sizes = program.sizes(program.output(job.output)), at = program.at(job);
  for (std::size_t d = 0; d < sizes.size(); ++d) index = index * sizes[d] + at[d];
  return index;
}

// The rows in the order of `key`.
template <class Key>
std::vector<std::uint32_t> order_by(std::size_t rows, Key key) {
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return order;
}

std::uint32_t append(std::vector<std::int64_t>& pool, ExtentsView numbers) {
  auto at = static_cast<std::uint32_t>(pool.size());
  pool.insert(pool.end(), numbers.begin(), numbers.end());
  return at;
}

// Names in use, sorted; `moved` maps the old ones to them.
void sort_names(const Program& program, Program& out, std::vector<std::uint32_t>& moved) {
  std::vector<bool> used(program.names.size(), false);
  for (const ProgramSource& source : program.sources) used[source.file] = true;
  for (const ProgramOutput& output : program.outputs)
    used[output.file] = used[output.tensor] = true;
  moved.assign(program.names.size(), 0);
  for (std::uint32_t i : order_by(program.names.size(), [&](std::uint32_t n) {
         return std::string_view(program.names[n]);
       })) {
    if (!used[i]) continue;
    if (out.names.empty() || out.names.back() != program.names[i])
      out.names.push_back(program.names[i]);
    moved[i] = static_cast<std::uint32_t>(out.names.size() - 1);
  }
}

void sort_sources(const Program& program, const std::vector<std::uint32_t>& names, Program& out,
                  std::vector<SourceId>& moved) {
  std::vector<ProgramSource> sources = program.sources;
  for (ProgramSource& source : sources) source.file = names[source.file];
  moved.assign(sources.size(), SourceId::kNone);
  for (std::uint32_t i :
       order_by(sources.size(), [&](std::uint32_t s) { return key_of(sources[s]); })) {
    if (out.sources.empty() || key_of(out.sources.back()) != key_of(sources[i]))
      out.sources.push_back(sources[i]);
    moved[i] = SourceId{static_cast<std::uint32_t>(out.sources.size() - 1)};
  }
}

}  // namespace

Program canonical(const Program& program, std::vector<OutputId>* moved) {
  Program out;
  std::vector<std::uint32_t> names;
  std::vector<SourceId> sources;
  sort_names(program, out, names);
  sort_sources(program, names, out, sources);
  std::vector<OutputId> outputs(program.outputs.size());
  for (std::uint32_t i : order_by(program.outputs.size(), [&](std::uint32_t o) {
         const ProgramOutput& row = program.outputs[o];
         return std::tuple(names[row.file], row.offset, row.length, names[row.tensor]);
       })) {
    ProgramOutput row = program.outputs[i];
    row.numbers = append(out.pool, program.numbers(row.numbers, 3 * row.ndim));
    row.file = names[row.file];
    row.tensor = names[row.tensor];
    outputs[i] = OutputId{static_cast<std::uint32_t>(out.outputs.size())};
    out.outputs.push_back(row);
  }
  for (std::uint32_t i : order_by(program.jobs.size(), [&](std::uint32_t j) {
         const ProgramJob& job = program.jobs[j];
         return std::tuple(outputs[static_cast<std::size_t>(job.output)],
                           first_index(program, job));
       })) {
    ProgramJob job = program.jobs[i];
    job.numbers =
        append(out.pool, program.numbers(job.numbers, 3 * program.output(job.output).ndim));
    job.output = outputs[static_cast<std::size_t>(job.output)];
    if (job.source != SourceId::kNone) job.source = sources[static_cast<std::size_t>(job.source)];
    if (job.factor != SourceId::kNone) job.factor = sources[static_cast<std::size_t>(job.factor)];
    out.jobs.push_back(job);
  }
  if (moved != nullptr) *moved = std::move(outputs);
  return out;
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
  SourceId next{static_cast<std::uint32_t>(program_.sources.size())};
  auto [found, is_new] = by_source_.emplace(key_of(source), next);
  if (is_new) program_.sources.push_back(source);
  return found->second;
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
  job.numbers = append(program_.pool, box.offsets);
  append(program_.pool, box.sizes);
  append(program_.pool, strides);
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
  return canonical(program_, moved);
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
  template <class Number>
  void add(Number number) {
    auto value = static_cast<std::uint64_t>(number);
    hash_.add(std::as_bytes(std::span(&value, 1)));
  }
  void add(ExtentsView numbers) {
    add(numbers.size());
    hash_.add(std::as_bytes(numbers));
  }
  void add(std::string_view text) {
    add(text.size());
    hash_.add(std::as_bytes(std::span(text)));
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
  for (const ProgramSource& source : program.sources) {
    for (std::uint64_t number :
         {std::uint64_t{source.input}, std::uint64_t{source.file}, source.offset, source.length,
          static_cast<std::uint64_t>(source.form), std::uint64_t{source.chunk}})
      columns.add(number);
  }
  columns.add(program.outputs.size());
  for (const ProgramOutput& out : program.outputs) {
    for (std::uint64_t number : {std::uint64_t{out.file}, std::uint64_t{out.tensor}, out.offset,
                                 out.length, static_cast<std::uint64_t>(out.dtype),
                                 std::uint64_t{out.ndim}, std::uint64_t{out.numbers}})
      columns.add(number);
  }
  columns.add(program.jobs.size());
  for (const ProgramJob& job : program.jobs) {
    for (std::uint64_t number :
         {static_cast<std::uint64_t>(job.output), static_cast<std::uint64_t>(job.source),
          static_cast<std::uint64_t>(job.op), static_cast<std::uint64_t>(job.from),
          static_cast<std::uint64_t>(job.to), std::uint64_t{job.numbers},
          static_cast<std::uint64_t>(job.first), job.constant[0], job.constant[1],
          static_cast<std::uint64_t>(job.factor), static_cast<std::uint64_t>(job.factor_at),
          static_cast<std::uint64_t>(job.logical)})
      columns.add(number);
    for (Dtype hop : job.via) columns.add(static_cast<std::uint64_t>(hop));
  }
  return columns.value();
}

}  // namespace shw
