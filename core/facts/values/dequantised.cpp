#include "core/facts/values/dequantised.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/base/words.h"
#include "core/facts/check_input.h"
#include "core/facts/values/quant_forms.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/not_looked_at.h"
#include "core/formats/joined_folders.h"
#include "core/model/builder.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// Raw elements, told apart by their address: what they are was computed.
const Codec kDecodedCodec{"dequantised", kRawCodec.reader, true};
constexpr Format kDecodedFormat = {
    .name = "dequantised", .title = "dequantised weights", .codec = &kDecodedCodec};
constexpr std::int64_t kDecodedAtOnce = std::int64_t{4} << 20;  // elements
constexpr std::string_view kModelConfig = "config.json";
constexpr std::uint64_t kMostConfig = std::uint64_t{16} << 20;

// The elements of a weight, decoded while they are read: the last rows are kept.
class DecodedSource final : public ByteSource {
 public:
  DecodedSource(std::string name, DecodedWeight weight, Dtype dtype, std::uint64_t size)
      : name_(std::move(name)), weight_(std::move(weight)), dtype_(dtype), size_(size) {
    const std::int64_t row = std::max<std::int64_t>(
        static_cast<std::int64_t>(size / size_of(dtype)) / std::max<std::int64_t>(rows(), 1), 1);
    row_bytes_ = static_cast<std::uint64_t>(row) * size_of(dtype);
    const std::int64_t fitting = std::max<std::int64_t>(kDecodedAtOnce / row, 1);
    step_ = std::max(weight_.rows_at_once, std::min(fitting, rows()));
  }
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset)
      return fail(ErrorKind::kDamaged, "decodes to too few bytes", {name_});
    std::lock_guard lock(guard_);
    while (!out.empty()) {
      const auto row = static_cast<std::int64_t>(offset / row_bytes_);
      const std::int64_t first = row / step_ * step_;
      if (kept_.empty() || first != first_) SHW_CHECK(decode(first));
      const std::uint64_t at = offset - static_cast<std::uint64_t>(first) * row_bytes_;
      if (at >= kept_.size()) return fail(ErrorKind::kDamaged, "decodes to too few bytes", {name_});
      const std::size_t part = std::min<std::uint64_t>(out.size(), kept_.size() - at);
      std::memcpy(out.data(), kept_.data() + at, part);
      out = out.subspan(part);
      offset += part;
    }
    return {};
  }

 private:
  std::int64_t rows() const { return weight_.shape.empty() ? 1 : weight_.shape[0]; }

  Status decode(std::int64_t first) const {
    kept_.clear();
    SHW_TRY(std::vector<float> made, weight_.decode(first, std::min(step_, rows() - first)));
    const auto bytes = std::as_bytes(std::span(made));
    if (dtype_ == Dtype::kFloat32) {
      kept_.assign(bytes.begin(), bytes.end());
    } else {
      SHW_TRY(kept_, cast_elements(Dtype::kFloat32, bytes, dtype_));
    }
    first_ = first;
    return {};
  }

  const std::string name_;
  const DecodedWeight weight_;
  const Dtype dtype_;
  const std::uint64_t size_;
  std::uint64_t row_bytes_ = 1;
  std::int64_t step_ = 1;
  mutable std::mutex guard_;  // of what follows
  mutable Bytes kept_;
  mutable std::int64_t first_ = 0;
};

// The folder with a file more for each decoded weight, and a config that says nothing of
// quantising.
class DequantisedFolder final : public Directory {
 public:
  explicit DequantisedFolder(std::shared_ptr<const Directory> folder)
      : folder_(std::move(folder)) {}
  void add(std::shared_ptr<const ByteSource> source) {
    const std::string name = source->name();
    sources_.emplace(name, std::move(source));
  }
  const std::string& name() const override { return folder_->name(); }
  Result<std::vector<Entry>> list(std::size_t limit) const override {
    auto entries = folder_->list(limit);
    if (!entries) return entries;
    for (Entry& entry : *entries) entry = stat(entry.path);
    return entries;
  }
  Entry stat(const std::string& path) const override {
    const auto found = sources_.find(path);
    Entry entry = folder_->stat(path);
    if (found == sources_.end()) return entry;
    entry.path = path;
    entry.kind = EntryKind::kFile;
    entry.size = found->second->size();
    return entry;
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    const auto found = sources_.find(path);
    if (found == sources_.end()) return folder_->open(path);
    return found->second;
  }

 private:
  std::shared_ptr<const Directory> folder_;
  std::map<std::string, std::shared_ptr<const ByteSource>> sources_;
};

// A loader that finds the method there looks for scales that are not there any more.
std::shared_ptr<const ByteSource> config_without_quantisation(const Directory& folder) {
  const std::string path(kModelConfig);
  if (folder.stat(path).kind != EntryKind::kFile) return nullptr;
  auto source = folder.open(path);
  if (!source || (*source)->size() > kMostConfig) return nullptr;
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) return nullptr;
  auto json = parse_json<nlohmann::ordered_json>(
                  {reinterpret_cast<const char*>(bytes->data()), bytes->size()})
                  .tree;
  if (!json.is_object()) return nullptr;
  for (const char* key : {"quantization_config", "compression_config", "quantization"})
    json.erase(key);
  const std::string text =
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const auto view = std::as_bytes(std::span(text));
  return memory_source(path, Bytes(view.begin(), view.end()));
}

// What most of the weights that are not quantised have; float32 where there are none.
Dtype dtype_of_others(const Checkpoint& c, const std::set<TensorId>& used) {
  std::map<Dtype, std::size_t> counts;
  for (TensorId tensor : c.tensors()) {
    const Dtype dtype = c.dtype(tensor);
    const bool is_plain =
        dtype == Dtype::kBfloat16 || dtype == Dtype::kFloat16 || dtype == Dtype::kFloat32;
    if (is_plain && !used.contains(tensor)) ++counts[dtype];
  }
  Dtype most = Dtype::kFloat32;
  std::size_t count = 0;
  for (const auto& [dtype, times] : counts) {
    if (times > count) most = dtype;
    count = std::max(count, times);
  }
  return most;
}

struct DecodedWeights {
  std::vector<DecodedWeight> weights;
  std::map<std::string, std::vector<std::string>> not_decoded;  // by why
};

DecodedWeights decode_families(const std::shared_ptr<const Checkpoint>& checkpoint) {
  DecodedWeights found;
  const auto config = read_quant_config(*checkpoint->directory());
  const CheckInput input{*checkpoint, nullptr, nullptr, {}, {}, {}, {}};
  for (const QuantFamily& family : quant_families(input, config)) {
    for (const QuantPair& pair : family.pairs) {
      auto weight = decoded_weight(checkpoint, family, pair, config.value_or(QuantConfig{}));
      if (weight)
        found.weights.push_back(std::move(*weight));
      else
        found.not_decoded[weight.error().message].emplace_back(checkpoint->fqn(pair.weight));
    }
  }
  return found;
}

void report_not_decoded(CheckpointBuilder& builder, const DecodedWeights& found) {
  for (const auto& [why, names] : found.not_decoded) {
    builder.add_finding(not_looked_at(
        names, fmt::format("{} {} as {} stored: {} {}.", plural(names.size(), "quantised weight"),
                           names.size() == 1 ? "stays" : "stay",
                           names.size() == 1 ? "it is" : "they are", some_of(names), why)));
  }
}

}  // namespace

bool is_rounded_in_decoding(const Checkpoint& checkpoint, TensorId tensor) {
  const auto chunks = checkpoint.chunks(tensor);
  return !chunks.empty() && &checkpoint.codec(chunks[0]) == &kDecodedCodec &&
         checkpoint.dtype(tensor) != Dtype::kFloat32;
}

Result<std::shared_ptr<const Checkpoint>> dequantised(std::shared_ptr<const Checkpoint> checkpoint,
                                                      Progress* progress) {
  if (checkpoint->directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint lies in no directory");
  DecodedWeights found = decode_families(checkpoint);
  if (found.weights.empty()) {
    const std::string why =
        found.not_decoded.empty() ? "" : ": a quantised weight " + found.not_decoded.begin()->first;
    return fail(ErrorKind::kUnsupported, "holds no quantised weight that is decoded" + why,
                {checkpoint->directory()->name()}, "Open it without @dequantised.");
  }
  std::set<TensorId> used;
  for (const DecodedWeight& weight : found.weights)
    used.insert(weight.used.begin(), weight.used.end());
  const Dtype dtype = dtype_of_others(*checkpoint, used);
  auto folder = std::make_shared<DequantisedFolder>(checkpoint->directory());
  if (auto config = config_without_quantisation(*checkpoint->directory()))
    folder->add(std::move(config));
  CheckpointBuilder builder;
  builder.set_format(kDecodedFormat);
  builder.set_directory(folder);
  for (DecodedWeight& weight : found.weights) {
    const auto elements = checked_volume(weight.shape);
    const auto bytes =
        elements ? checked_mul(*elements, std::int64_t{size_of(dtype)}) : std::nullopt;
    if (!bytes)
      return fail(ErrorKind::kDamaged, weight.fqn + " would have too many elements when decoded",
                  {checkpoint->directory()->name()});
    const std::string path = fmt::format("dequantised weight {}", builder.chunk_count());
    builder.add_tensor(weight.fqn, dtype, weight.shape);
    builder.add_chunk(Extents(weight.shape.size(), 0), weight.shape,
                      {builder.file(path), 0, *bytes});
    folder->add(std::make_shared<DecodedSource>(path, std::move(weight), dtype,
                                                static_cast<std::uint64_t>(*bytes)));
  }
  report_not_decoded(builder, found);
  auto decoded = builder.finish(progress);
  return join_folders(
      folder, {{std::move(checkpoint), "", "", std::move(used)}, {std::move(decoded), "", "", {}}});
}

}  // namespace shw
