// A new HDF5 file, written by the library: the only room that knows it. It is not thread-safe, so
// one writer is used by one thread, and no two at once.
//
// Without the library (CMakeLists.txt: WITH_HDF5) the room still links: create() then says what is
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

// Measured with 1.10.8: one more does not fit into an object header.
inline constexpr std::size_t kHdf5MostSegments = 2729;
inline constexpr std::size_t kHdf5MostDims = 32;

// True where the program was built with the library.
bool has_hdf5();

struct Hdf5Attribute {
  std::string name;
  std::variant<std::int64_t, std::string, std::vector<std::string>> value;
};
using Hdf5Attributes = std::vector<Hdf5Attribute>;

// What every dataset of tensors has: its path in the file, whose groups are made on the way.
struct Hdf5Dataset {
  std::string path;
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  Hdf5Attributes attributes = {};
};

// Bytes of another file. Nobody checks them later: past its end HDF5 reads zeros.
struct Hdf5Segment {
  std::string file;
  std::uint64_t offset = 0, length = 0;
};

// A part of a virtual dataset: `at` is, in row-major order, `count` runs of `run` elements, `step`
// apart, of a one-dimensional dataset of `length` in the same file; the first begins at `first`.
struct Hdf5Part {
  Box at;
  std::string dataset;
  std::int64_t length = 0, first = 0, count = 1, step = 1, run = 0;
};

// A column of a list: a dataset of its own.
struct Hdf5Column {
  std::string name;
  std::variant<std::vector<std::int64_t>, std::vector<std::string>> cells;
};

// A table: one dataset of a compound type, a field a column.
struct Hdf5Field {
  enum class Kind : std::uint8_t { kWhole, kReal, kText } kind = Kind::kWhole;
  std::string name;
  std::string unit = {};  // "B"; empty where it is a plain number
};
// Takes the cells of a row, in the order of the fields and each of its kind.
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
  // Fails if the file exists; kUnsupported without the library. Errors call it `name`: what a
  // person knows it by while it is half made under another one.
  static Result<Hdf5Writer> create(const std::string& path, std::string name);
  Hdf5Writer(Hdf5Writer&&) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) noexcept;
  ~Hdf5Writer();  // a file that was not closed is incomplete

  Status set_attributes(const std::string& group, const Hdf5Attributes& attributes);
  // Its elements are the segments' bytes, one after the other.
  Status add_external(const Hdf5Dataset& dataset, std::span<const Hdf5Segment> segments);
  // What no part covers reads as a value that nobody takes for one: NaN, the least whole number.
  Status add_virtual(const Hdf5Dataset& dataset, std::span<const Hdf5Part> parts);
  // It is `stack[index]` of a dataset in the same file, of `count` of its shape.
  Status add_one_of(const Hdf5Dataset& dataset, const std::string& stack, std::int64_t count,
                    std::int64_t index);
  // No elements, or those that `write` puts there, box by box; where it fails the dataset goes.
  using WriteBox = std::function<Status(const Box& box, BytesView bytes)>;
  Status add_copied(const Hdf5Dataset& dataset,
                    const std::function<Status(const WriteBox& write)>& write);
  // One dataset a column, side by side in a group.
  Status add_columns(const std::string& group, std::span<const Hdf5Column> columns);
  // Its fields' units are the attribute `units`. Rows are made while they are written.
  Status add_table(const Hdf5Table& table, Progress* progress);
  // The file is complete; nothing more can be added.
  Status close();

 private:
  struct State;
  explicit Hdf5Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace shw
