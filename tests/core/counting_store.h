// A store in memory that counts reads of data files.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "core/faulty_store.h"
#include "core/memory_store.h"

namespace shw::test {

struct CountingStore {
  MemoryStore store{};
  std::shared_ptr<std::atomic<std::uint64_t>> read = std::make_shared<std::atomic<std::uint64_t>>();
  FaultyStore counting{store, [](const auto&, const auto&) { return std::nullopt; },
                       [read = read](const std::string& path, std::uint64_t,
                                     std::size_t length) -> std::optional<Error> {
                         if (path.ends_with(".distcp")) *read += length;
                         return std::nullopt;
                       }};
};

}  // namespace shw::test
