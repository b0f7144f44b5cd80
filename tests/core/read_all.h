// Reads all contents of a checkpoint.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"

namespace shw::test {

inline Bytes whole_file(const std::string& path) {
  auto source = open_file(path, path);
  REQUIRE(source.has_value());
  auto bytes = read_bytes(**source, 0, (*source)->size());
  REQUIRE(bytes.has_value());
  return *bytes;
}

// Every tensor of the truth is there, and reads with its shape, dtype and bytes.
inline void check_elements(const Checkpoint& checkpoint,
                           const std::map<std::string, TruthTensor>& truth) {
  for (const auto& [fqn, expected] : truth) {
    CAPTURE(fqn);
    auto tensor = checkpoint.find(fqn);
    REQUIRE(tensor.has_value());
    auto values = read_tensor(checkpoint, *tensor);
    INFO((values ? std::string() : values.error().message));
    REQUIRE(values.has_value());
    CHECK(values->uncovered == 0);
    CHECK((values->shape == expected.shape));
    CHECK((values->dtype == expected.dtype));
    CHECK((values->bytes == expected.bytes));
  }
}

// For any bytes: opening and reading end, and an error has a message.
inline void check_is_answered(OpenedCheckpoint opened) {
  if (!opened) {
    CHECK_FALSE(opened.error().message.empty());
    return;
  }
  for (std::uint32_t t = 0; t < (*opened)->tensor_count(); ++t)
    (void)read_tensor(**opened, TensorId{t}, 1 << 20);
}

}  // namespace shw::test
