#include "core/repair/plan_fingerprint.h"

#include <xxhash.h>

namespace shw {
namespace {

class Digest {
 public:
  Digest() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  ~Digest() { XXH3_freeState(state_); }
  void add(std::int64_t value) { XXH3_128bits_update(state_, &value, sizeof value); }
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    XXH3_128bits_update(state_, text.data(), text.size());
  }
  void add(ExtentsView extents) {
    add(static_cast<std::int64_t>(extents.size()));
    XXH3_128bits_update(state_, extents.data(), extents.size_bytes());
  }
  void add(const std::optional<ItemPlace>& item, const Checkpoint& checkpoint) {
    add(std::string_view(item ? checkpoint.file(item->file).path : "none"));
    add(item ? item->offset : 0);
    add(item ? item->length : 0);
  }
  std::string text() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_));
    std::string hex;
    for (unsigned char byte : canonical.digest) {
      hex += "0123456789abcdef"[byte >> 4];
      hex += "0123456789abcdef"[byte & 15];
    }
    return hex;
  }

 private:
  XXH3_state_t* state_;
};

}  // namespace

std::string fingerprint(const Checkpoint& checkpoint) {
  Digest digest;
  digest.add(name(checkpoint.format()));
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
  for (const ObjectRow& object : checkpoint.objects()) {
    digest.add(std::string_view(object.fqn));
    digest.add(object.item, checkpoint);
  }
  return digest.text();
}

}  // namespace shw
