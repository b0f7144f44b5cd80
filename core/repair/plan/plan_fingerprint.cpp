#include "core/repair/plan/plan_fingerprint.h"

#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/base/json.h"

namespace shw {
namespace {

class Digest {
 public:
  void add(std::int64_t value) { hash_.add(std::as_bytes(std::span(&value, 1))); }
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    hash_.add(std::as_bytes(std::span(text)));
  }
  void add(ExtentsView extents) {
    add(static_cast<std::int64_t>(extents.size()));
    hash_.add(std::as_bytes(extents));
  }
  void add(const std::optional<ItemPlace>& item, const Checkpoint& checkpoint) {
    add(std::string_view(item ? checkpoint.file(item->file).path : "none"));
    add(item ? item->offset : 0);
    add(item ? item->length : 0);
  }
  std::string text() const { return hash_.text(); }

 private:
  RunningHash hash_;
};

}  // namespace

std::string fingerprint(const Checkpoint& checkpoint) {
  Digest digest;
  digest.add(checkpoint.format().name);
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId tensor{t};
    digest.add(checkpoint.fqn(tensor));
    digest.add(static_cast<std::int64_t>(checkpoint.dtype(tensor)));
    digest.add(checkpoint.shape(tensor));
    digest.add(std::int64_t{checkpoint.chunks(tensor).size()});
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      digest.add(checkpoint.offsets(chunk));
      digest.add(checkpoint.sizes(chunk));
      digest.add(checkpoint.item(chunk), checkpoint);
    }
  }
  for (const NonTensorEntry& object : checkpoint.objects()) {
    digest.add(std::string_view(object.fqn));
    digest.add(object.item, checkpoint);
  }
  return digest.text();
}

std::string fingerprint_in(std::string_view plan_json) {
  // Keeps only the top level: the rest may be millions of lines.
  auto only_top = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    return depth <= 1;
  };
  const auto parsed = parse_json<nlohmann::json>(plan_json, only_top).tree;
  auto found = parsed.is_object() ? parsed.find("fingerprint") : parsed.end();
  return found != parsed.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace shw
