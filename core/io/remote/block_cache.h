// Blocks of remote files that were read, the least recently used of them given up first.
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

  // Bytes of a file from a place inside of its block, or null.
  std::shared_ptr<const Bytes> find(std::uint64_t file, std::uint64_t block);
  // Whole blocks (the last one of a file may be short), beginning with block `first`.
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
