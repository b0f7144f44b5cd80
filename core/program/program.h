// A lowered plan: which bytes are read, how they change, and which box of which output they become.
// Tables of plain values with ids instead of pointers, so that a program can be hashed, sent to
// another rank and executed on a GPU.
//
// An output is a payload: a row-major array that a format's writer stores in a file. A job fills a
// box of one output from one source or with a constant. The jobs of an output fill it exactly once;
// prove() checks this for every program before a byte is written.
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

// How the bytes of a source become addressable.
enum class SourceForm : std::uint8_t {
  kStored,  // the file holds the elements as they are used
  kItem,    // the chunk's item is decoded to row-major elements
};

enum class ElementOp : std::uint8_t {
  kCopy,
  kCast,  // casts through the dtypes of `via`
  kConstant,
  kScale,  // converts to float32, multiplies by the float32 `factor`, then casts as kCast does
};

// The dtypes of a conversion in sequence, ended by kUnknown.
using CastChain = std::array<Dtype, 6>;

struct ProgramSource {
  std::uint32_t input = 0;  // index of the opened checkpoint
  std::uint32_t file = 0;   // index in names
  std::uint64_t offset = 0, length = 0;
  SourceForm form = SourceForm::kStored;
  std::uint32_t chunk = 0;  // kItem: chunk of that checkpoint; `length` counts its decoded elements
};

struct ProgramOutput {
  std::uint32_t file = 0, tensor = 0;    // indices in names
  std::uint64_t offset = 0, length = 0;  // of the payload in its file
  Dtype dtype = Dtype::kUnknown;
  std::uint32_t ndim = 0;
  std::uint32_t numbers = 0;  // index in pool: tensor shape, box offsets, box sizes
};

// 56 bytes: there are millions.
struct ProgramJob {
  OutputId output{};
  SourceId source = SourceId::kNone;
  SourceId factor = SourceId::kNone;  // kScale: place of the float32; kNone: it is in `constant`
  std::uint32_t numbers = 0;          // index in pool: box offsets in the output, box sizes,
                                      // byte strides in the source
  std::int64_t first = 0;             // byte of the source at the first element of the box
  // kConstant: the bytes of an element, little-endian. kScale: the bits of the float32, or its byte
  // offset in `factor`.
  std::uint64_t constant[2] = {0, 0};
  ElementOp op = ElementOp::kCopy;
  Dtype from = Dtype::kUnknown, to = Dtype::kUnknown;
  CastChain via{};
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

// How a job changes elements: a cast, preceded by a scale if `is_scaled`.
struct JobConversion {
  CastChain via{};
  bool is_scaled = false;
  SourceId factor = SourceId::kNone;  // kNone: the scale is `factor_bits`, a float32
  std::int64_t factor_at = 0;
  std::uint64_t factor_bits = 0;
  friend bool operator==(const JobConversion&, const JobConversion&) = default;
};

// True if adjacent elements of the output are adjacent in the source.
bool reads_contiguous_rows(const Program& program, const ProgramJob& job);

// XXH3-128 over all columns; equal on every machine.
Hash128 hash_of(const Program& program);

// The jobs [first, last) of an output of a canonical program.
struct JobRange {
  std::size_t first = 0, last = 0;
};
JobRange jobs_of(const Program& program, OutputId output);

// Proves that every byte of every output is written exactly once, that every byte read is inside
// its source, that dtypes and counts agree, and that the program is canonical. Makes no assumptions
// about the program.
Status prove(const Program& program);

}  // namespace shw
