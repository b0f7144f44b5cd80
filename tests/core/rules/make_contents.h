// Writes a DCP checkpoint with relevant values: any float dtype, tiles of single ranks, and
// non-tensor entries as torch saves them.
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/formats/dcp/dcp_write.h"
#include "core/formats/open.h"
#include "core/io/store.h"
#include "core/make_zip.h"
#include "core/rules/check.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"

namespace shw::test {

using Numbers = std::vector<double>;

struct WrittenTile {
  Extents offsets, sizes;
  std::uint32_t writer = 0;
};
struct MadeContent {
  std::string fqn;
  Dtype dtype = Dtype::kFloat32;
  Extents shape;
  Numbers values;                  // of the whole tensor, row-major
  std::vector<WrittenTile> tiles;  // none: one, by rank 0
  std::vector<PathPart> path;
};
struct MadeEntry {
  std::string fqn;
  std::string pickled;  // made by a pickled_* function below
  std::uint32_t writer = 0;
};
struct MadeModel {
  std::vector<MadeContent> tensors;
  std::vector<MadeEntry> entries;

  void add(const std::string& fqn, Dtype dtype, const Extents& shape, Numbers values) {
    tensors.push_back({fqn, dtype, shape, std::move(values), {}, {}});
  }
  void pair(const std::string& key, const Extents& shape, Numbers mean, Numbers square) {
    add("optimizer.state." + key + ".exp_avg", Dtype::kFloat32, shape, std::move(mean));
    add("optimizer.state." + key + ".exp_avg_sq", Dtype::kFloat32, shape, std::move(square));
  }
  void step(const std::string& key, double value) {
    add("optimizer.state." + key + ".step", Dtype::kFloat32, {}, {value});
  }
};

// Values as Python pickles them; an entry's pickle is `whole(value)`.
inline std::string pickled_real(double value) {
  auto bits = std::bit_cast<std::uint64_t>(value);
  std::string out = "G";
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(bits >> shift & 0xFF);
  return out;
}
inline std::string pickled_list(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const std::string& item : items) out += item;
  return out + "e";
}
inline std::string pickled_pair(double first, double second) {
  return "(" + pickled_real(first) + pickled_real(second) + "t";
}
inline const std::string kPickledNone = "N";
inline std::string whole_pickle(const std::string& value) {
  return "\x80\x02" + value + ".";
}

inline Bytes as_dtype(const Numbers& values, Dtype dtype) {
  if (dtype >= Dtype::kInt8 && dtype <= Dtype::kUint64) {  // small ones
    std::string text;
    for (double value : values) text += little(static_cast<std::uint64_t>(value), size_of(dtype));
    return to_bytes(text);
  }
  auto bytes = cast_elements(Dtype::kFloat64, std::as_bytes(std::span(values)), dtype);
  REQUIRE(bytes.has_value());
  return *bytes;
}

class ContentWriter {
 public:
  explicit ContentWriter(const std::string& path) {
    auto made = posix_store().make_folder(path);
    REQUIRE(made.has_value());
    directory_ = std::move(*made);
    metadata_.checkpoint_id = path;
  }
  void write(const MadeModel& model) {
    for (const MadeEntry& entry : model.entries) add(entry);
    for (const MadeContent& tensor : model.tensors) add(tensor);
    for (auto& [writer, sink] : sinks_) REQUIRE(sink->finish());
    auto sink = directory_->create(".metadata");
    REQUIRE(sink.has_value());
    REQUIRE(write_dcp_metadata(metadata_, **sink));
    REQUIRE((*sink)->finish());
  }

 private:
  ByteSink& sink_of(std::uint32_t writer) {
    auto& sink = sinks_[writer];
    if (sink == nullptr) {
      auto made = directory_->create(file_of(writer));
      REQUIRE(made.has_value());
      sink = std::move(*made);
    }
    return *sink;
  }
  static std::string file_of(std::uint32_t writer) {
    return "__" + std::to_string(writer) + "_0.distcp";
  }
  void add(const MadeEntry& entry) {
    Bytes item = to_bytes(
        make_zip({{"archive/data.pkl", whole_pickle(entry.pickled)}, {"archive/version", "3\n"}}));
    ByteSink& sink = sink_of(entry.writer);
    std::uint64_t offset = sink.position();
    REQUIRE(sink.write(item));
    metadata_.objects.push_back({entry.fqn, {file_of(entry.writer), offset, item.size(), {}}, {}});
  }
  void add(const MadeContent& tensor) {
    DcpTensor out{tensor.fqn, tensor.dtype, false, tensor.shape, {}, tensor.path};
    Bytes all = as_dtype(tensor.values, tensor.dtype);
    std::vector<WrittenTile> tiles = tensor.tiles;
    if (tiles.empty()) tiles = {{Extents(tensor.shape.size(), 0), tensor.shape, 0}};
    for (const WrittenTile& tile : tiles) {
      const std::size_t width = size_of(tensor.dtype);
      REQUIRE(is_inside(tile.offsets, tile.sizes, tensor.shape));
      const Extents strides = row_major_strides(tensor.shape);
      std::int64_t first = 0;
      for (std::size_t d = 0; d < strides.size(); ++d) first += tile.offsets[d] * strides[d];
      Bytes part(static_cast<std::size_t>(*volume(tile.sizes)) * width);
      copy_strided({all, strides, first}, {part, row_major_strides(tile.sizes), 0}, tile.sizes,
                   width);
      ByteSink& sink = sink_of(tile.writer);
      std::uint64_t offset = sink.position();
      auto written = write_torch_item(sink, tensor.dtype, tile.sizes, part);
      REQUIRE(written.has_value());
      out.chunks.push_back(
          {tile.offsets, tile.sizes, {file_of(tile.writer), offset, *written, {}}});
    }
    metadata_.tensors.push_back(std::move(out));
  }

  std::unique_ptr<WritableDirectory> directory_;
  std::map<std::uint32_t, std::unique_ptr<ByteSink>> sinks_;
  DcpMetadata metadata_;
};

inline std::shared_ptr<const Checkpoint> made(const std::string& path, const MadeModel& model) {
  ContentWriter(path).write(model);
  auto checkpoint = open_checkpoint(path);
  if (!checkpoint) FAIL(checkpoint.error().message);
  return *checkpoint;
}

inline std::vector<Finding> found_in(const Checkpoint& checkpoint, std::string_view rule,
                                     Depth depth = Depth::kData,
                                     std::shared_ptr<const Checkpoint> reference = nullptr) {
  CheckOptions options{depth, nullptr, std::nullopt};
  options.reference = std::move(reference);
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  std::vector<Finding> out;
  for (Finding& finding : report->findings) {
    if (finding.rule == rule) out.push_back(std::move(finding));
  }
  return out;
}

template <class T>
T evidence(const Finding& finding, std::string_view key) {
  for (const auto& [name, value] : finding.evidence) {
    if (name == key && std::holds_alternative<T>(value)) return std::get<T>(value);
  }
  FAIL("no evidence " << key);
  return T{};
}

// Moments after `steps` steps of Adam from zero, with gradients of a size of their own per element.
struct Moments {
  Numbers mean, square;
};
inline Moments trained(std::size_t count, int steps, double beta1, double beta2,
                       std::uint64_t seed = 1) {
  Moments out{Numbers(count, 0), Numbers(count, 0)};
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  auto next = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state >> 11) / static_cast<double>(1ull << 53);
  };
  for (std::size_t i = 0; i < count; ++i) {
    double scale = std::exp(6 * next() - 6);
    for (int step = 0; step < steps; ++step) {
      double gradient = scale * (2 * next() - 0.9);
      out.mean[i] = beta1 * out.mean[i] + (1 - beta1) * gradient;
      out.square[i] = beta2 * out.square[i] + (1 - beta2) * gradient * gradient;
    }
  }
  return out;
}

// Distinct numbers that bfloat16 holds well enough to differ.
inline Numbers distinct(std::size_t count, double scale = 1) {
  Numbers out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = scale * std::sin(static_cast<double>(i) * 1.7 + scale) *
             (1 + 0.01 * static_cast<double>(i));
  return out;
}

}  // namespace shw::test
