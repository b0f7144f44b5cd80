// Cache of blocks read from remote files; evicts the least recently used ones.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/base/bytes.h"
#include "core/io/remote/remote_files.h"

namespace shw {

class BlockCache {
 public:
  explicit BlockCache(std::uint64_t most_bytes = std::uint64_t{256} << 20) : most_(most_bytes) {}

  // Returns the block, or null if it is not cached.
  std::shared_ptr<const Bytes> find(std::uint64_t file, std::uint64_t block);
  // Stores whole blocks, beginning with block `first`; the last block of a file may be short.
  void put(std::uint64_t file, std::uint64_t first, BytesView bytes);

 private:
  struct Key {
    std::uint64_t file, block;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>(key.file * 0x9E3779B97F4A7C15ULL ^ key.block * 0xC2B2AE3DULL);
    }
  };
  struct Held {
    Key key;
    std::shared_ptr<const Bytes> bytes;
  };
  std::mutex guard_;
  std::uint64_t most_, held_ = 0;
  std::list<Held> order_;  // most recently used first
  std::unordered_map<Key, std::list<Held>::iterator, KeyHash> places_;
};

}  // namespace shw
