// Copies a folder from the disk into a store in memory.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "core/io/source.h"
#include "core/memory_store.h"

namespace shw::test {

inline void put_folder(MemoryStore& store, const std::string& from, const std::string& to) {
  auto directory = open_directory(from);
  REQUIRE(directory.has_value());
  auto entries = (*directory)->list();
  REQUIRE(entries.has_value());
  for (const Entry& entry : *entries) {
    auto source = (*directory)->open(entry.path);
    REQUIRE(source.has_value());
    store.put(to + "/" + entry.path, read_bytes(**source, 0, (*source)->size()).value());
  }
}

}  // namespace shw::test
