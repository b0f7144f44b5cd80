#include <algorithm>
#include <map>

#include "core/base/checked.h"
#include "core/base/version.h"
#include "core/facts/storage/filled.h"
#include "core/facts/storage/missing_data.h"
#include "core/formats/items/items.h"
#include "core/model/index_only_tensors.h"
#include "core/report/json.h"
#include "core/report/listing.h"
#include "core/report/report.h"
#include "core/tensor/element_text.h"

namespace shw {
namespace {

// Number of data files that are referenced or belong to ranks without data.
std::uint64_t data_files(const Checkpoint& checkpoint) {
  auto files = checkpoint.files();
  return static_cast<std::uint64_t>(
      std::count_if(files.begin(), files.end(),
                    [](const FileRow& file) { return file.referenced || file.rank.has_value(); }));
}

Json chunk_json(const Checkpoint& checkpoint, ChunkId chunk) {
  Json out = {{"offsets", json_of(checkpoint.offsets(chunk))},
              {"sizes", json_of(checkpoint.sizes(chunk))},
              {"file", nullptr},
              {"offset", nullptr},
              {"length", nullptr},
              {"writer", nullptr}};
  if (auto item = checkpoint.item(chunk)) {
    out["file"] = checkpoint.file(item->file).path;
    out["offset"] = item->offset;
    out["length"] = item->length;
  }
  if (auto writer = checkpoint.writer(chunk)) out["writer"] = *writer;
  if (std::string_view gone = missing_data_reason(checkpoint, chunk); !gone.empty())
    out["gone"] = gone;
  auto transforms = checkpoint.transforms(chunk);
  if (!transforms.empty())
    out["transforms"] = std::vector<std::string>(transforms.begin(), transforms.end());
  return out;
}

// Limit: for more runs, a program should read the values instead.
constexpr std::size_t kMostRuns = 65'536;

// Byte runs of a chunk's elements, row-major; null if elements must be decoded or computed, or
// their place is unknown.
Json runs_json(const Checkpoint& checkpoint, ChunkId chunk) {
  const auto item = checkpoint.item(chunk);
  const auto& directory = checkpoint.directory();
  if (directory != nullptr && !directory->made_of().empty()) return nullptr;
  auto runs = ranges(checkpoint, chunk,
                     Box{Extents(checkpoint.sizes(chunk).size(), 0),
                         Extents(checkpoint.sizes(chunk).begin(), checkpoint.sizes(chunk).end())});
  if (!item || !runs || !*runs || (*runs)->size() > kMostRuns) return nullptr;
  Json out = Json::array();
  for (const ByteRun& run : **runs) {
    if (run.file != item->file) return nullptr;
    out.push_back({{"offset", run.offset}, {"length", run.length}});
  }
  return out;
}

// Elements filled by an earlier repair; null if there are none.
Json filled_json(const FilledTensor& filled) {
  Json boxes = Json::array();
  for (const Box& box : filled.boxes) boxes.push_back(json_of(box));
  Json out = {{"lost", filled.lost}, {"lost_boxes", std::move(boxes)}};
  out["filled_with"] = replacement_text(filled);
  if (!filled.has_all_boxes) out["more_boxes"] = true;
  return out;
}

bool is_json_number_or_bool(std::string_view text) {
  return !text.empty() &&
         (text == "true" || text == "false" || text.front() == '-' ||
          (text.front() >= '0' && text.front() <= '9')) &&
         !text.ends_with("y");  // -Infinity
}

void append_quoted(std::string& out, std::string_view text) {
  out += is_json_number_or_bool(text) ? std::string(text) : Json(text).dump();
}

// Appends "1.5" unquoted, "NaN" quoted, and complex "[1, NaN]" as a pair of those.
void append_value(std::string& out, std::string_view text) {
  std::size_t comma = text.find(", ");
  if (!text.starts_with("[") || !text.ends_with("]") || comma == std::string_view::npos)
    return append_quoted(out, text);
  out += '[';
  append_quoted(out, text.substr(1, comma - 1));
  out += ", ";
  append_quoted(out, text.substr(comma + 2, text.size() - comma - 3));
  out += ']';
}

// Elements as their shortest exact texts, written directly because a JSON library would convert
// them to doubles.
std::string values_text(const TensorValues& values, std::size_t limit) {
  std::uint32_t size = size_of(values.dtype);
  std::size_t count = size == 0 ? 0 : values.bytes.size() / size;
  if (limit != 0) count = std::min(count, limit);
  std::string out = "[";
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) out += ", ";
    append_value(out, element_text(values.dtype, values.bytes, i));
  }
  return out + "]";
}

// The names of all tensors that make the weight, the stored weight first.
Json quantised_json(const Checkpoint& checkpoint, const QuantisedWeight& weight) {
  Json tensors = Json::array();
  for (TensorId part : weight.tensors) tensors.push_back(checkpoint.fqn(part));
  return {{"scheme", weight.scheme}, {"weight", weight.name}, {"tensors", std::move(tensors)}};
}

}  // namespace

std::string info_to_json(const Checkpoint& checkpoint) {
  const Provenance& provenance = checkpoint.provenance();
  Json out = {{"schema", kJsonSchema},
              {"format", checkpoint.format().name},
              {"tensors", checkpoint.tensor_count()},
              {"chunks", checkpoint.chunk_count()},
              {"objects", checkpoint.objects().size()},
              {"files", data_files(checkpoint)},
              {"bytes", checkpoint.tensor_bytes()},
              {"ranks", checkpoint.rank_count()},
              {"torch", nullptr}};
  if (!provenance.torch.empty()) out["torch"] = provenance.torch;
  FilledReport filled = filled_report_of(checkpoint);
  std::int64_t lost = 0;
  for (const FilledTensor& tensor : filled.tensors) lost += tensor.lost;
  out["filled"] = {
      {"tensors", filled.tensors.size()}, {"elements", lost}, {"entries", filled.entries.size()}};
  if (std::uint64_t gone = missing_chunk_count(checkpoint); gone != 0) out["gone"] = gone;
  if (!index_only_tensors(checkpoint).empty())
    out["named_only"] = index_only_tensors(checkpoint).size();
  return pretty_json_line(out);
}

std::string list_to_json(const Checkpoint& checkpoint, std::span<const std::uint32_t> tensors,
                         std::span<const std::uint32_t> objects,
                         std::span<const QuantisedWeight> quantised) {
  std::map<TensorId, const QuantisedWeight*> weight_of;
  for (const QuantisedWeight& weight : quantised) {
    for (TensorId part : weight.tensors) weight_of[part] = &weight;
  }
  Json listed = Json::array(), others = Json::array();
  FilledReport filled = filled_report_of(checkpoint);
  std::map<std::string_view, const FilledTensor*> losses;
  for (const FilledTensor& tensor : filled.tensors) losses[tensor.fqn] = &tensor;
  for (std::uint32_t index : tensors) {
    TensorId tensor{index};
    listed.push_back({{"fqn", checkpoint.fqn(tensor)},
                      {"shape", json_of(checkpoint.shape(tensor))},
                      {"dtype", name(checkpoint.dtype(tensor))},
                      {"chunks", checkpoint.chunks(tensor).size()}});
    auto loss = losses.find(checkpoint.fqn(tensor));
    if (loss != losses.end()) listed.back()["filled"] = filled_json(*loss->second);
    if (std::uint64_t gone = missing_chunk_count(checkpoint, tensor); gone != 0)
      listed.back()["gone"] = gone;
    if (auto weight = weight_of.find(tensor); weight != weight_of.end())
      listed.back()["quantised"] = quantised_json(checkpoint, *weight->second);
  }
  for (std::uint32_t index : objects) others.push_back(checkpoint.objects()[index].fqn);
  Json out = {
      {"schema", kJsonSchema}, {"tensors", std::move(listed)}, {"objects", std::move(others)}};
  // A selection of tensors excludes those of which only the name is known.
  bool all = tensors.size() == checkpoint.tensor_count();
  for (const UnclaimedStorageRecord& tensor :
       all ? index_only_tensors(checkpoint) : std::span<const UnclaimedStorageRecord>{})
    out["named_only"].push_back(
        {{"fqn", tensor.fqn}, {"file", checkpoint.file(tensor.item.file).path}});
  return pretty_json_line(out);
}

std::string tensor_to_json(const Checkpoint& checkpoint, TensorId tensor,
                           const TensorValues* values, std::size_t limit, bool with_places,
                           const QuantisedWeight* quantised) {
  Json chunks = Json::array();
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    chunks.push_back(chunk_json(checkpoint, chunk));
    if (with_places) chunks.back()["runs"] = runs_json(checkpoint, chunk);
  }
  Json out = {{"schema", kJsonSchema},
              {"fqn", checkpoint.fqn(tensor)},
              {"shape", json_of(checkpoint.shape(tensor))},
              {"dtype", name(checkpoint.dtype(tensor))},
              {"requires_grad", checkpoint.requires_grad(tensor)},
              {"chunks", std::move(chunks)}};
  if (!stored_as(checkpoint, tensor).empty()) out["stored_as"] = stored_as(checkpoint, tensor);
  if (quantised != nullptr) out["quantised"] = quantised_json(checkpoint, *quantised);
  FilledReport filled = filled_report_of(checkpoint);
  if (const FilledTensor* loss = filled.find(checkpoint.fqn(tensor)))
    out["filled"] = filled_json(*loss);
  if (values == nullptr) return pretty_json_line(out);
  out["uncovered"] = values->uncovered;
  std::string text = pretty_json_line(out);
  text.resize(text.rfind('\n', text.size() - 2));  // before the closing brace
  return text + ",\n  \"values\": " + values_text(*values, limit) + "\n}\n";
}

}  // namespace shw
