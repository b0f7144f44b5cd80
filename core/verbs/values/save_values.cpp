#include "core/verbs/values/save_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/io/path_text.h"
#include "core/io/publish.h"
#include "core/report/text_words.h"
#include "core/tensor/cast.h"
#include "core/tensor/element_text.h"
#include "core/verbs/new_file.h"
#include "core/verbs/output_place.h"
#include "core/verbs/values/slice_reader.h"

namespace shw::verbs {
namespace {

constexpr std::int64_t kMaxInBlock = 1 << 18;  // elements: a few MiB with their text

bool is_widened(Dtype dtype) {
  return number_kind(dtype) == NumberKind::kFloat && !is_complex(dtype) && size_of(dtype) <= 2 &&
         dtype != Dtype::kFloat16 && can_cast(dtype, Dtype::kFloat32);
}

Dtype dtype_in_file(Dtype dtype) {
  return is_widened(dtype) ? Dtype::kFloat32 : dtype;
}

bool has_nan(Dtype dtype) {
  return dtype == Dtype::kFloat64 || dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16;
}

void put_nan(Dtype dtype, std::byte* element) {
  const double wide = std::nan("");
  const float narrow = std::nanf("");
  const std::uint16_t half = 0x7E00;
  if (dtype == Dtype::kFloat64) std::memcpy(element, &wide, sizeof wide);
  if (dtype == Dtype::kFloat32) std::memcpy(element, &narrow, sizeof narrow);
  if (dtype == Dtype::kFloat16) std::memcpy(element, &half, sizeof half);
}

// "\x93NUMPY", version 1.0, the length of the text; the text ends at a multiple of 64.
std::string npy_head(const SliceValues& slice, bool transposed) {
  std::string shape;
  if (slice.row_dim >= 0) shape = fmt::format("{}, {}", slice.rows, slice.columns);
  if (slice.row_dim < 0 && slice.column_dim >= 0) shape = fmt::format("{},", slice.columns);
  if (transposed) shape = fmt::format("{}, {}", slice.columns, slice.rows);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}",
                                 npy_dtype(slice.dtype), transposed ? "True" : "False", shape);
  constexpr std::size_t kBefore = 10, kAlign = 64;
  text.append(kAlign - 1 - (kBefore + text.size()) % kAlign, ' ');
  text += '\n';
  std::string head = "\x93NUMPY";
  head += std::string("\x01\x00", 2);
  head += static_cast<char>(text.size() & 0xFF);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

std::string cell_text(Dtype dtype, BytesView bytes, std::size_t index) {
  std::string text = element_text(dtype, bytes, index);
  // A complex number contains a comma.
  return text.find(',') == text.npos ? text : '"' + text + '"';
}

class ValuesWriter {
 public:
  ValuesWriter(const SaveValues& wanted, const SliceValues& slice, ByteSink& sink, SavedValues& out)
      : wanted_(wanted), slice_(slice), sink_(sink), out_(out) {}

  Status put(std::string_view text) { return sink_.write(std::as_bytes(std::span(text))); }

  Status begin() {
    const Checkpoint& checkpoint = *wanted_.opened.checkpoint;
    if (wanted_.kind == ValuesFile::kNpy) return put(npy_head(slice_, wanted_.ask.transposed));
    return put("# " + printable(checkpoint.fqn(wanted_.tensor)) + to_text(wanted_.ask) + " " +
               std::string(name(slice_.dtype)) + "\n");
  }

  Status add(const SliceReader::Block& block) {
    const auto without = static_cast<std::int64_t>(block.state.size()) -
                         std::count(block.state.begin(), block.state.end(), SliceReader::kThere);
    out_.missing += without;
    return wanted_.kind == ValuesFile::kNpy ? add_numbers(block, without) : add_lines(block);
  }

 private:
  // Reads the slice in the tensor's own order, so that blocks are contiguous.
  Status add_numbers(const SliceReader::Block& block, std::int64_t without) {
    const Dtype dtype = dtype_in_file(slice_.dtype);
    Bytes bytes(block.bytes.begin(), block.bytes.end());
    if (dtype != slice_.dtype) {
      SHW_TRY(auto cast, cast_elements(slice_.dtype, block.bytes, dtype));
      bytes.assign(cast.begin(), cast.end());
    }
    if (without > 0 && !has_nan(dtype))
      return fail(
          ErrorKind::kDamaged,
          fmt::format("{} of the slice cannot be read, and {} has no NaN to mark them",
                      plural(static_cast<std::uint64_t>(without), "element"), name(slice_.dtype)),
          {"", std::nullopt, std::string(wanted_.opened.checkpoint->fqn(wanted_.tensor))},
          "Save as .csv: their cells stay empty.");
    for (std::size_t i = 0; without > 0 && i < block.state.size(); ++i) {
      if (block.state[i] != SliceReader::kThere) put_nan(dtype, bytes.data() + i * size_of(dtype));
    }
    return sink_.write(bytes);
  }

  Status add_lines(const SliceReader::Block& block) {
    std::string text;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      for (std::int64_t c = 0; c < block.columns; ++c) {
        const auto at = static_cast<std::size_t>(r * block.row_stride + c * block.column_stride);
        if (!row_begins_) text += ',';
        row_begins_ = false;
        if (block.state[at] == SliceReader::kThere)
          text += cell_text(slice_.dtype, block.bytes, at);
      }
      if (!block.ends_row) continue;
      text += '\n';
      row_begins_ = true;
    }
    return put(text);
  }

  const SaveValues& wanted_;
  const SliceValues& slice_;
  ByteSink& sink_;
  SavedValues& out_;
  bool row_begins_ = true;
};

Status check_room(const Store& store, const std::string& folder, const SliceValues& slice) {
  const auto elements = checked_mul(slice.rows, slice.columns);
  const auto bytes =
      elements
          ? checked_mul(*elements, static_cast<std::int64_t>(size_of(dtype_in_file(slice.dtype))))
          : std::nullopt;
  SHW_TRY(std::uint64_t free, store.free_bytes(folder));
  if (bytes && static_cast<std::uint64_t>(*bytes) <= free) return {};
  return fail(ErrorKind::kIo,
              fmt::format("the slice needs {}, but {} are free",
                          bytes ? human_bytes(static_cast<std::uint64_t>(*bytes)) : "too much",
                          human_bytes(free)),
              {folder}, "Show a smaller slice, or choose a folder with more space.");
}

Status check_dtype(const SaveValues& wanted, const SliceValues& slice) {
  if (wanted.kind == ValuesFile::kCsv || !npy_dtype(slice.dtype).empty()) return {};
  return fail(ErrorKind::kUnsupported, "numpy has no type for " + std::string(name(slice.dtype)),
              {"", std::nullopt, std::string(wanted.opened.checkpoint->fqn(wanted.tensor))},
              "Save as .csv.");
}

}  // namespace

std::string npy_dtype(Dtype dtype) {
  switch (dtype_in_file(dtype)) {
    case Dtype::kFloat64:
      return "<f8";
    case Dtype::kFloat32:
      return "<f4";
    case Dtype::kFloat16:
      return "<f2";
    case Dtype::kInt8:
      return "|i1";
    case Dtype::kInt16:
      return "<i2";
    case Dtype::kInt32:
      return "<i4";
    case Dtype::kInt64:
      return "<i8";
    case Dtype::kUint8:
      return "|u1";
    case Dtype::kUint16:
      return "<u2";
    case Dtype::kUint32:
      return "<u4";
    case Dtype::kUint64:
      return "<u8";
    case Dtype::kBool:
      return "|b1";
    case Dtype::kComplex64:
      return "<c8";
    case Dtype::kComplex128:
      return "<c16";
    default:
      return {};
  }
}

Result<SavedValues> save_values(Store& store, const SaveValues& wanted, Progress* progress) {
  const Checkpoint& checkpoint = *wanted.opened.checkpoint;
  ValuesRequest ask = wanted.ask;
  const bool is_npy = wanted.kind == ValuesFile::kNpy;
  if (is_npy) ask.transposed = false;  // the .npy header states the order of elements
  SHW_TRY(SliceValues slice, slice_window(checkpoint, wanted.tensor, ask));
  SHW_CHECK(check_dtype(wanted, slice));
  SaveValues exact = wanted;
  exact.ask = slice.ask;
  exact.ask.transposed = wanted.ask.transposed && slice.row_dim >= 0;
  SHW_TRY(std::string path,
          free_path(store,
                    place_request(is_npy ? NewFile::kNpy : NewFile::kCsv, wanted.options.checkpoint,
                                  checkpoint.fqn(wanted.tensor), wanted.path)));
  SHW_CHECK(check_output_place(wanted.opened, wanted.options, path));
  SHW_CHECK(check_room(store, parent_of(path), slice));
  TempFile half_made(path);
  SHW_TRY(auto folder, store.edit_folder(parent_of(path)));
  SHW_TRY(auto sink, folder->create(half_made.name()));
  SavedValues saved{path, 0, slice.rows, slice.columns, std::string(name(slice.dtype))};
  if (is_npy) saved.dtype = name(dtype_in_file(slice.dtype));
  if (is_npy && exact.ask.transposed) std::swap(saved.rows, saved.columns);
  if (progress != nullptr)
    progress->begin(Phase::kReadingBytes, static_cast<std::uint64_t>(slice.rows * slice.columns),
                    false);
  SliceReader looker(checkpoint, wanted.tensor, slice, progress);
  ValuesWriter writer(exact, slice, *sink, saved);
  SHW_CHECK(writer.begin());
  SHW_CHECK(looker.each_block(kMaxInBlock, [&](const auto& block) { return writer.add(block); }));
  saved.bytes = sink->position();
  SHW_CHECK(sink->finish());
  SHW_CHECK(half_made.publish());
  return saved;
}

}  // namespace shw::verbs
