// Writes a new HDF5 file with the library, which only core/hdf5 uses. The library is not
// thread-safe: one writer at a time, on one thread.
//
// Without the library (CMakeLists.txt: WITH_HDF5) everything links, and create() reports what is
// missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// Measured with 1.10.8: larger counts do not fit into an object header.
inline constexpr std::size_t kHdf5MostSegments = 2729;
inline constexpr std::size_t kHdf5MostDims = 32;

// True if built with the library.
bool has_hdf5();

struct Hdf5Attribute {
  std::string name;
  std::variant<std::int64_t, std::string, std::vector<std::string>> value;
};
using Hdf5Attributes = std::vector<Hdf5Attribute>;

// Properties common to all datasets of tensors. `path` is in the file; groups are created as
// needed.
struct Hdf5Dataset {
  std::string path;
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  Hdf5Attributes attributes = {};
};

// A byte range of another file. HDF5 does not check it when reading: beyond the file's end it reads
// zeros.
struct Hdf5Segment {
  std::string file;
  std::uint64_t offset = 0, length = 0;
};

// A part of a virtual dataset: the box `at` in row-major order is `count` runs of `run` elements,
// `step` apart, starting at `first` in a one-dimensional dataset of `length` elements in the same
// file.
struct Hdf5Part {
  Box at;
  std::string dataset;
  std::int64_t length = 0, first = 0, count = 1, step = 1, run = 0;
};

// A column of a list, stored as a dataset.
struct Hdf5Column {
  std::string name;
  std::variant<std::vector<std::int64_t>, std::vector<std::string>> cells;
};

// A field of a table, which is one dataset of a compound type.
struct Hdf5Field {
  enum class Kind : std::uint8_t { kWhole, kReal, kText } kind = Kind::kWhole;
  std::string name;
  std::string unit = {};  // "B"; empty for plain numbers
};
// Receives the cells of a row in the order and of the kinds of the fields.
class Hdf5Row {
 public:
  virtual ~Hdf5Row() = default;
  virtual void put(std::int64_t whole) = 0;
  virtual void put(double real) = 0;
  virtual void put(std::string text) = 0;
};
struct Hdf5Table {
  std::string path;
  std::vector<Hdf5Field> fields;
  std::uint64_t rows = 0;
  std::function<void(std::uint64_t row, Hdf5Row& cells)> fill;
  Hdf5Attributes attributes = {};
};

class Hdf5Writer {
 public:
  // Fails if the file exists; kUnsupported without the library. `name` is used in errors, since the
  // file has a temporary path.
  static Result<Hdf5Writer> create(const std::string& path, std::string name);
  Hdf5Writer(Hdf5Writer&&) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) noexcept;
  ~Hdf5Writer();  // a file that was not closed is incomplete

  Status set_attributes(const std::string& group, const Hdf5Attributes& attributes);
  // Adds a dataset whose elements are the concatenated bytes of the segments.
  Status add_external(const Hdf5Dataset& dataset, std::span<const Hdf5Segment> segments);
  // Adds a dataset that is `stack[index]` of a dataset in the same file, which stacks `count` of
  // its shape.
  Status add_virtual(const Hdf5Dataset& dataset, std::span<const Hdf5Part> parts);
  // The dataset is `stack[index]` of a dataset in the same file, of `count` of its shape.
  Status add_stack_slice(const Hdf5Dataset& dataset, const std::string& stack, std::int64_t count,
                         std::int64_t index);
  // Adds a dataset without elements, or with those that `write` adds box by box; on failure it is
  // removed.
  using WriteBox = std::function<Status(const Box& box, BytesView bytes)>;
  Status add_copied(const Hdf5Dataset& dataset,
                    const std::function<Status(const WriteBox& write)>& write);
  // Adds a group with one dataset per column.
  Status add_columns(const std::string& group, std::span<const Hdf5Column> columns);
  // Adds a table; units of fields become the attribute `units`. Rows are requested while writing.
  Status add_table(const Hdf5Table& table, Progress* progress);
  // Completes the file; nothing can be added afterwards.
  Status close();

 private:
  struct State;
  explicit Hdf5Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shw
