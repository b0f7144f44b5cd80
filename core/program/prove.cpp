// The proof of a program before execution. Every number is checked before use.
#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/program/program.h"
#include "core/tensor/cast.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// No real coordinate, extent or file offset exceeds this; sums of two fit in int64.
constexpr std::int64_t kMaxCoordinate = std::int64_t{1} << 62;

struct Prover {
  const Program& program;

  tl::unexpected<Error> refuse(const std::string& row, std::size_t index,
                               const std::string& why) const {
    return fail(ErrorKind::kDamaged, fmt::format("{} {} of the program {}", row, index, why));
  }

  bool has_numbers(std::uint32_t at, std::uint64_t count) const {
    return at <= program.pool.size() && count <= program.pool.size() - at;
  }
  static bool known(Dtype dtype) { return dtype < Dtype::kCount && size_of(dtype) != 0; }

  Status check_source(std::size_t s) const {
    const ProgramSource& source = program.sources[s];
    if (source.file >= program.names.size())
      return refuse("source", s, "is in a file without a name");
    if (source.form != SourceForm::kStored && source.form != SourceForm::kItem)
      return refuse("source", s, "has an unknown codec");
    auto end = checked_add(source.offset, source.length);
    if (!end || *end > static_cast<std::uint64_t>(kMaxCoordinate))
      return refuse("source", s, "ends beyond what a file can hold");
    return {};
  }

  Status check_output(std::size_t o) const {
    const ProgramOutput& out = program.outputs[o];
    if (out.file >= program.names.size() || out.tensor >= program.names.size())
      return refuse("output", o, "is in a file or a tensor without a name");
    if (!known(out.dtype)) return refuse("output", o, "has an unknown dtype");
    if (out.ndim > kFoldDims || !has_numbers(out.numbers, std::uint64_t{3} * out.ndim))
      return refuse("output", o, "has no shape");
    ExtentsView sizes = program.sizes(out);
    if (!volume(program.shape(out)) || !is_inside(program.offsets(out), sizes, program.shape(out)))
      return refuse("output", o, "is not a box of its tensor");
    auto bytes =
        checked_mul(static_cast<std::uint64_t>(*volume(sizes)), std::uint64_t{size_of(out.dtype)});
    auto end = checked_add(out.offset, out.length);
    if (!bytes || *bytes != out.length)
      return refuse("output", o,
                    fmt::format("is {} of {} and takes another number of bytes than {}",
                                to_text(sizes), name(out.dtype), out.length));
    if (!end || *end > static_cast<std::uint64_t>(kMaxCoordinate))
      return refuse("output", o, "ends beyond what a file can hold");
    return {};
  }

  // The payloads of a file must be in ascending order.
  Status check_order_of_output(std::size_t o) const {
    if (o == 0) return {};
    const ProgramOutput &last = program.outputs[o - 1], &next = program.outputs[o];
    if (std::tuple(last.file, last.offset, last.length, last.tensor) >=
        std::tuple(next.file, next.offset, next.length, next.tensor))
      return refuse("output", o, "is not where canonical order has it");
    if (last.file == next.file && last.offset + last.length > next.offset)
      return refuse("output", o, "begins in the middle of the one before it");
    return {};
  }

  // The byte range that the strides reach from `first`, including the last element.
  Status check_byte_range_of_source(std::size_t j) const {
    const ProgramJob& job = program.jobs[j];
    const ProgramSource& source = program.source(job.source);
    ExtentsView sizes = program.sizes(job), strides = program.source_strides(job);
    std::int64_t low = job.first, high = job.first;
    bool fits = true;
    for (std::size_t d = 0; d < sizes.size() && fits; ++d) {
      auto reach = checked_mul(sizes[d] - 1, strides[d]);
      auto moved = reach ? checked_add(strides[d] < 0 ? low : high, *reach) : std::nullopt;
      fits = moved.has_value();
      if (fits) (strides[d] < 0 ? low : high) = *moved;
    }
    auto end = checked_add(high, std::int64_t{size_of(job.from)});
    if (fits && low >= 0 && end && static_cast<std::uint64_t>(*end) <= source.length) return {};
    return refuse("job", j,
                  fmt::format("reads outside of its source, which is {} bytes of {}", source.length,
                              program.names[source.file]));
  }

  // Every hop must be a supported cast that changes the dtype.
  Status check_cast_chain(std::size_t j) const {
    const ProgramJob& job = program.jobs[j];
    bool scaled = job.op == ElementOp::kScale;
    if (scaled && job.from != Dtype::kFloat32 &&
        !(known(job.from) && can_cast(job.from, Dtype::kFloat32)))
      return refuse("job", j, "scales what is not a floating point number");
    Dtype now = scaled ? Dtype::kFloat32 : job.from;
    bool ended = false, moved = false;
    for (Dtype hop : job.via) {
      if (hop == Dtype::kUnknown) {
        ended = true;
        continue;
      }
      if (ended || !known(hop) || hop == now || !can_cast(now, hop))
        return refuse("job", j, "casts where there is no cast");
      now = hop;
      moved = true;
    }
    bool stays = now == job.to;
    if (stays ? moved || job.op == ElementOp::kCast : !can_cast(now, job.to))
      return refuse("job", j, "casts where there is no cast");
    return {};
  }

  Status check_scale_factor(std::size_t j) const {
    const ProgramJob& job = program.jobs[j];
    if (job.op != ElementOp::kScale) {
      if (job.factor == SourceId::kNone) return {};
      return refuse("job", j, "has a factor and does not scale");
    }
    if (job.constant[1] != 0) return refuse("job", j, "scales by no float32");
    if (job.factor == SourceId::kNone) {
      if (job.constant[0] <= 0xFFFFFFFFu) return {};
      return refuse("job", j, "scales by no float32");
    }
    if (static_cast<std::size_t>(job.factor) >= program.sources.size())
      return refuse("job", j, "scales by nothing");
    const ProgramSource& factor = program.source(job.factor);
    auto end = checked_add(job.constant[0], std::uint64_t{4});
    if (end && *end <= factor.length) return {};
    return refuse("job", j, "has its factor outside of its source");
  }

  Status check_elements(std::size_t j) const {
    const ProgramJob& job = program.jobs[j];
    const ProgramOutput& out = program.output(job.output);
    if (job.to != out.dtype || !known(job.from))
      return refuse("job", j, "makes elements of another dtype than its output's");
    bool has_source = job.source != SourceId::kNone;
    SHW_CHECK(check_scale_factor(j));
    bool changes = job.op == ElementOp::kCast || job.op == ElementOp::kScale;
    if (!changes && job.via != CastChain{}) return refuse("job", j, "has hops and does not cast");
    switch (job.op) {
      case ElementOp::kConstant:
        if (has_source || job.from != job.to || job.first != 0)
          return refuse("job", j, "fills with a constant and has a source");
        return {};
      case ElementOp::kCopy:
        if (job.from != job.to) return refuse("job", j, "copies elements of another dtype");
        break;
      case ElementOp::kCast:
      case ElementOp::kScale:
        SHW_CHECK(check_cast_chain(j));
        break;
      default:
        return refuse("job", j, "does something unknown");
    }
    if (!has_source || static_cast<std::size_t>(job.source) >= program.sources.size())
      return refuse("job", j, "has no source");
    if (job.op != ElementOp::kScale && (job.constant[0] != 0 || job.constant[1] != 0))
      return refuse("job", j, "has a source and a constant");
    return check_byte_range_of_source(j);
  }

  Status check_job(std::size_t j) const {
    const ProgramJob& job = program.jobs[j];
    if (static_cast<std::size_t>(job.output) >= program.outputs.size())
      return refuse("job", j, "fills no output");
    const ProgramOutput& out = program.output(job.output);
    if (!has_numbers(job.numbers, std::uint64_t{3} * out.ndim))
      return refuse("job", j, "has no box");
    ExtentsView at = program.at(job), sizes = program.sizes(job);
    if (!is_inside(at, sizes, program.sizes(out)) || volume(sizes).value_or(0) == 0)
      return refuse("job", j, "fills no box of its output");
    return check_elements(j);
  }

  // Names and sources must be sorted, used and distinct.
  bool has_sorted_rows() const {
    auto rising = [](const ProgramSource& a, const ProgramSource& b) {
      return std::tuple(a.input, a.file, a.offset, a.length, a.form, a.chunk) <
             std::tuple(b.input, b.file, b.offset, b.length, b.form, b.chunk);
    };
    for (std::size_t s = 1; s < program.sources.size(); ++s) {
      if (!rising(program.sources[s - 1], program.sources[s])) return false;
    }
    std::vector<bool> used(program.names.size(), false);
    for (const ProgramSource& source : program.sources) used[source.file] = true;
    for (const ProgramOutput& out : program.outputs) used[out.file] = used[out.tensor] = true;
    for (std::size_t n = 0; n < program.names.size(); ++n) {
      if (!used[n] || (n > 0 && program.names[n - 1] >= program.names[n])) return false;
    }
    return true;
  }

  // The pool must hold exactly the numbers of outputs, then of jobs, in sequence.
  bool has_sorted_pool() const {
    std::size_t next = 0;
    for (const ProgramOutput& out : program.outputs) {
      if (out.numbers != next) return false;
      next += std::size_t{3} * out.ndim;
    }
    for (const ProgramJob& job : program.jobs) {
      if (job.numbers != next) return false;
      next += std::size_t{3} * program.output(job.output).ndim;
    }
    return next == program.pool.size();
  }

  // The common case: one job fills the whole output.
  bool is_filled_by_one_job(std::size_t o, std::size_t j) const {
    auto is_of = [&](std::size_t job) {
      return job < program.jobs.size() && static_cast<std::size_t>(program.jobs[job].output) == o;
    };
    if (!is_of(j) || is_of(j + 1)) return false;
    return same(program.sizes(program.jobs[j]), program.sizes(program.outputs[o]));
  }

  // Checks outputs [first, last), whose jobs begin at `j`; sets `j` behind their last job.
  Status check_coverage(std::size_t first, std::size_t last, std::size_t& j) const {
    std::vector<Box> boxes;
    for (std::size_t o = first; o < last; ++o) {
      boxes.clear();
      std::size_t begin = j;
      if (is_filled_by_one_job(o, j)) {
        ++j;
        continue;
      }
      for (; j < program.jobs.size() && static_cast<std::size_t>(program.jobs[j].output) == o; ++j)
        boxes.push_back(
            {copy_of(program.at(program.jobs[j])), copy_of(program.sizes(program.jobs[j]))});
      for (std::size_t b = 1; b < boxes.size(); ++b) {
        // Row-major order of their begins is lexicographic order.
        if (boxes[b - 1].offsets >= boxes[b].offsets)
          return refuse("job", begin + b, "is not where canonical order has it");
      }
      if (!tiles_exactly(boxes, program.sizes(program.outputs[o])))
        return refuse("output", o, "would not be written exactly once, byte by byte");
    }
    return {};
  }

  Status check_coverage_in_a_row() const {
    std::size_t j = 0;
    SHW_CHECK(check_coverage(0, program.outputs.size(), j));
    if (j == program.jobs.size()) return {};
    return refuse("job", j, "is not where canonical order has it");
  }

  // Jobs are grouped by output, so that all threads can check ranges of outputs.
  Status check_coverage() const {
    auto before = [](const ProgramJob& a, const ProgramJob& b) { return a.output < b.output; };
    if (!std::is_sorted(program.jobs.begin(), program.jobs.end(), before))
      return check_coverage_in_a_row();
    return each_block(program.outputs.size(), [&](std::size_t first, std::size_t last) {
      std::size_t j = jobs_of(program, OutputId{static_cast<std::uint32_t>(first)}).first;
      return check_coverage(first, last, j);
    });
  }

  // Runs check(first, last) on ranges of rows in parallel; returns the lowest error.
  template <class Check>
  static Status each_block(std::size_t rows, Check check) {
    constexpr std::size_t kAtOnce = 1 << 14;
    return parallel_for((rows + kAtOnce - 1) / kAtOnce, [&](std::size_t block) -> Status {
      return check(block * kAtOnce, std::min((block + 1) * kAtOnce, rows));
    });
  }
  template <class Check>
  static Status each_row(std::size_t rows, Check check) {
    return each_block(rows, [&](std::size_t first, std::size_t last) -> Status {
      for (std::size_t row = first; row < last; ++row) SHW_CHECK(check(row));
      return {};
    });
  }
};

}  // namespace

Status prove(const Program& program) {
  const Prover prover{program};
  const std::size_t outputs = program.outputs.size();
  SHW_CHECK(prover.each_row(program.sources.size(),
                            [&](std::size_t s) { return prover.check_source(s); }));
  SHW_CHECK(prover.each_row(outputs, [&](std::size_t o) { return prover.check_output(o); }));
  SHW_CHECK(
      prover.each_row(outputs, [&](std::size_t o) { return prover.check_order_of_output(o); }));
  SHW_CHECK(
      prover.each_row(program.jobs.size(), [&](std::size_t j) { return prover.check_job(j); }));
  SHW_CHECK(prover.check_coverage());
  if (prover.has_sorted_rows() && prover.has_sorted_pool()) return {};
  return fail(ErrorKind::kDamaged, "the program is not in canonical order");
}

}  // namespace shw
