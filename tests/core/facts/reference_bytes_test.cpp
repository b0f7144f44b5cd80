#include "core/facts/reference_bytes.h"

#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

Values numbered(std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i % 8191);
  return values;
}

struct Two {
  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> one, two;
};

void write_two(Two& two, const MadeTensor& one, const MadeTensor& other) {
  write_checkpoint(two.folder / "one", {one});
  write_checkpoint(two.folder / "two", {other});
  two.one = opened(two.folder / "one");
  two.two = opened(two.folder / "two");
}

}  // namespace

TEST_CASE("equal bytes are told chunk by chunk, as a slow look at the whole says it") {
  for (std::int64_t rows : {std::int64_t{8}, std::int64_t{64}}) {
    Extents shape{rows, 1024};
    Values values = numbered(rows * 1024);
    for (std::int64_t changed : {std::int64_t{-1}, std::int64_t{0}, rows * 512, rows * 1024 - 1}) {
      CAPTURE(rows);
      CAPTURE(changed);
      Values others = values;
      if (changed >= 0) others[static_cast<std::size_t>(changed)] += 1;
      Two two;
      write_two(two, cut_in_rows("w", shape, values, 4), cut_in_rows("w", shape, others, 4));
      bool slowly =
          whole_values(*two.one, TensorId{0})->bytes == whole_values(*two.two, TensorId{0})->bytes;
      CHECK(slowly == (changed < 0));
      CHECK(has_equal_bytes(*two.one, TensorId{0}, *two.two, TensorId{0}) == slowly);
      CHECK(has_equal_bytes(*two.one, TensorId{0}, *two.one, TensorId{0}));
    }
  }
}

TEST_CASE("other boxes or another shape are not compared piece by piece") {
  Values values = numbered(64);
  Two two;
  write_two(two, cut_in_rows("w", {8, 8}, values, 2), cut_in_rows("w", {8, 8}, values, 4));
  CHECK_FALSE(has_equal_bytes(*two.one, TensorId{0}, *two.two, TensorId{0}));
  Two shapes;
  write_two(shapes, cut_in_rows("w", {8, 8}, values, 1), cut_in_rows("w", {16, 4}, values, 1));
  CHECK_FALSE(has_equal_bytes(*shapes.one, TensorId{0}, *shapes.two, TensorId{0}));
}

TEST_CASE("raw items larger than a slab are compared slab by slab") {
  constexpr std::size_t kRows = 5 * 1024;  // of 1,024 bytes: more than one slab of 4 MiB
  for (std::ptrdiff_t changed : {-1, 0, 4'500'000, 5 * 1024 * 1024 - 1}) {
    CAPTURE(changed);
    TemporaryFolder folder;
    std::string payload(kRows * 1024, 'x');
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 31 % 251);
    std::string header = R"({"w":{"dtype":"U8","shape":[5120,1024],"data_offsets":[0,5242880]}})";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    std::string length(8, '\0');
    length[0] = static_cast<char>(header.size());
    put(folder / "one.safetensors", length + header + payload);
    if (changed >= 0) payload[static_cast<std::size_t>(changed)] ^= 1;
    put(folder / "two.safetensors", length + header + payload);
    auto one = opened(folder / "one.safetensors"), two = opened(folder / "two.safetensors");
    CHECK(has_equal_bytes(*one, TensorId{0}, *two, TensorId{0}) == (changed < 0));
  }
}
