// A plan lowered for machines: what is read from where, what goes into it, and which box of which
// output it becomes. Tables of plain values with ids for rows and no pointers, so that a program
// can be hashed, sent to a worker and given to a GPU (design.md section 4).
//
// An output is a payload: a row-major array that a format's writer wraps into a file. A job fills a
// box of one output from one source, or with a constant. Jobs of an output fill it exactly once;
// prove() holds every program against that before a byte is written.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/result.h"
#include "core/tensor/dtype.h"
#include "core/tensor/layout.h"
#include "core/tensor/shape.h"

namespace shw {

enum class SourceId : std::uint32_t { kNone = 0xFFFFFFFFu };
enum class OutputId : std::uint32_t {};

// What has to be done before bytes of a source can be addressed.
enum class SourceForm : std::uint8_t {
  kStored,  // nothing: they lie in the file as they are used
  kItem,    // the chunk's item is decoded, to its elements in row-major order
};

enum class ElementOp : std::uint8_t {
  kCopy,
  kCast,  // by way of the dtypes of `via`
  kConstant,
  kScale,  // to float32, times the float32 of `factor`, then as kCast
};

// Dtypes that an element takes on its way, one after the other; kUnknown ends them.
using Hops = std::array<Dtype, 6>;

struct ProgramSource {
  std::uint32_t input = 0;  // which opened checkpoint
  std::uint32_t file = 0;   // in names
  std::uint64_t offset = 0, length = 0;
  SourceForm form = SourceForm::kStored;
  std::uint32_t chunk = 0;  // kItem: of that checkpoint; `length` is then that of the elements
};

struct ProgramOutput {
  std::uint32_t file = 0, tensor = 0;    // in names
  std::uint64_t offset = 0, length = 0;  // of the payload in its file
  Dtype dtype = Dtype::kUnknown;
  std::uint32_t ndim = 0;
  std::uint32_t numbers = 0;  // in pool: the tensor's shape, the box's offsets in it, its sizes
};

// 56 bytes: there are millions.
struct ProgramJob {
  OutputId output{};
  SourceId source = SourceId::kNone;
  SourceId factor = SourceId::kNone;  // of kScale: where one float32 lies; none: it is `constant`
  std::uint32_t numbers = 0;  // in pool: where the box begins in the output, its sizes, and the
                              // source's strides in bytes
  std::int64_t first = 0;     // byte of the source where the box's first element begins
  // Of kConstant: the bytes of an element, little-endian. Of kScale: the bits of the float32, or
  // how many bytes into `factor` it lies.
  std::uint64_t constant[2] = {0, 0};
  ElementOp op = ElementOp::kCopy;
  Dtype from = Dtype::kUnknown, to = Dtype::kUnknown;
  Hops via{};
};

struct Program {
  std::vector<std::string> names;
  std::vector<std::int64_t> pool;
  std::vector<ProgramSource> sources;
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramJob> jobs;

  ExtentsView numbers(std::uint32_t at, std::size_t count) const {
    return ExtentsView(pool).subspan(at, count);
  }
  const ProgramOutput& output(OutputId id) const { return outputs[static_cast<std::size_t>(id)]; }
  const ProgramSource& source(SourceId id) const { return sources[static_cast<std::size_t>(id)]; }

  ExtentsView shape(const ProgramOutput& out) const { return numbers(out.numbers, out.ndim); }
  ExtentsView offsets(const ProgramOutput& out) const {
    return numbers(out.numbers + out.ndim, out.ndim);
  }
  ExtentsView sizes(const ProgramOutput& out) const {
    return numbers(out.numbers + 2 * out.ndim, out.ndim);
  }
  ExtentsView at(const ProgramJob& job) const {
    return numbers(job.numbers, output(job.output).ndim);
  }
  ExtentsView sizes(const ProgramJob& job) const {
    std::uint32_t ndim = output(job.output).ndim;
    return numbers(job.numbers + ndim, ndim);
  }
  ExtentsView source_strides(const ProgramJob& job) const {
    std::uint32_t ndim = output(job.output).ndim;
    return numbers(job.numbers + 2 * ndim, ndim);
  }
};

// Puts a program together. Names and sources that are given twice are one row when it is taken: who
// holds on to a source's id keeps the table short meanwhile.
class ProgramBuilder {
 public:
  // Room for that many rows, and for the numbers of one of the two that have any: tables that
  // double as they grow end half empty.
  void expect(std::size_t sources, std::size_t outputs, std::size_t numbers);

  SourceId add_stored(std::uint32_t input, std::string_view file, std::uint64_t offset,
                      std::uint64_t length);
  SourceId add_item(std::uint32_t input, std::string_view file, std::uint64_t offset,
                    std::uint64_t length, std::uint32_t chunk);
  // A box of a tensor; the offset in the file is given later.
  OutputId add_output(std::string_view tensor, Dtype dtype, ExtentsView shape, const Box& box);
  void place(OutputId output, std::string_view file, std::uint64_t offset);

  // `box` lies in the output. Strides in bytes, `first` the byte of the box's first element.
  void add_copy(OutputId output, const Box& box, SourceId source, Dtype from, std::int64_t first,
                ExtentsView strides);
  // The same with values that change on their way: cast, and where there is a factor scaled first.
  struct Change {
    Hops via{};
    bool is_scaled = false;
    SourceId factor = SourceId::kNone;  // none: `factor_bits`, a float32
    std::int64_t factor_at = 0;
    std::uint64_t factor_bits = 0;
    friend bool operator==(const Change&, const Change&) = default;
  };
  void add_changed(OutputId output, const Box& box, SourceId source, Dtype from, std::int64_t first,
                   ExtentsView strides, const Change& change);
  void add_zeros(OutputId output, const Box& box);
  void add_constant(OutputId output, const Box& box, const std::array<std::uint64_t, 2>& bits);

  // In canonical order, which leaves nothing here. `moved[i]` becomes where output i went.
  Program take(std::vector<OutputId>* moved = nullptr);

 private:
  std::uint32_t name(std::string_view text);
  SourceId add(const ProgramSource& source);
  ProgramJob& add_job(OutputId output, const Box& box, ExtentsView strides);

  Program program_;  // its pool has the numbers of outputs
  std::vector<std::int64_t> job_numbers_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
};

// Rows sorted by what they say and nothing said twice: two programs that do the same work on the
// same bytes are equal, whoever lowered them. `moved` as above.
Program canonical(Program program, std::vector<OutputId>* moved = nullptr);

// The elements that follow each other in the output do so in the source.
bool reads_in_rows(const Program& program, const ProgramJob& job);

// XXH3-128 over all columns; equal on every machine.
Hash128 hash_of(const Program& program);

// The jobs of an output of a canonical program: [first, last) in jobs.
struct JobRange {
  std::size_t first = 0, last = 0;
};
JobRange jobs_of(const Program& program, OutputId output);

// Every byte of every output is written exactly once, every byte that is read lies in its source,
// dtypes and counts agree, and the program is canonical. Takes nothing for granted: the program may
// have come from anywhere.
Status prove(const Program& program);

}  // namespace shw
