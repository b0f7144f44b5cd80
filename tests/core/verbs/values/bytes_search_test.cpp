#include "core/verbs/values/bytes_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/formats/open.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::verbs;

namespace {

Bytes search_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

class SearchedFile : public ByteSource {
 public:
  explicit SearchedFile(const Bytes& bytes) : bytes_(bytes) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }

 private:
  const Bytes& bytes_;
  std::string name_ = "file";
};

// Compares at every byte.
std::optional<std::uint64_t> slow_search(const Bytes& file, const BytePattern& pattern,
                                         std::uint64_t from) {
  for (std::uint64_t i = 0; i < file.size(); ++i) {
    const std::uint64_t at = (from + i) % file.size();
    if (pattern.bytes.size() > file.size() - at) continue;
    const auto away = at >= pattern.first ? at - pattern.first : pattern.first - at;
    if (away % pattern.step != 0) continue;
    if (std::equal(pattern.bytes.begin(), pattern.bytes.end(),
                   file.begin() + static_cast<std::ptrdiff_t>(at)))
      return at;
  }
  return std::nullopt;
}

// A safetensors file with one tensor of four float32: 0.5, 1.5, -2, 1.5.
std::string put_search_model(const TemporaryFolder& folder) {
  std::string header = R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const float numbers[] = {0.5f, 1.5f, -2.0f, 1.5f};
  std::ofstream out(folder / "model.safetensors", std::ios::binary);
  out << static_cast<char>(header.size()) << std::string(7, '\0') << header;
  out.write(reinterpret_cast<const char*>(numbers), sizeof numbers);
  return folder.path();
}

}  // namespace

TEST_CASE("byte search: finds what a search at every byte finds, also across blocks") {
  std::mt19937 random(7);
  Bytes file((std::size_t{1} << 20) + 3000);
  for (auto& byte : file) byte = static_cast<std::byte>(random() % 3);
  const Bytes rare = search_bytes("needle");
  std::copy(rare.begin(), rare.end(), file.begin() + (std::ptrdiff_t{1} << 20) - 3);
  const SearchedFile source(file);
  for (int i = 0; i < 30; ++i) {
    BytePattern pattern{i < 5 ? rare : Bytes(), 0, 1};
    for (std::size_t b = 0; i >= 5 && b < 1 + random() % 9; ++b)
      pattern.bytes.push_back(static_cast<std::byte>(random() % 3));
    pattern.step = i % 2 == 0 ? 1 : 1 + random() % 4;
    pattern.first = random() % 100;
    const std::uint64_t from = random() % file.size();
    auto found = find_bytes(source, pattern, from, nullptr);
    REQUIRE(found.has_value());
    CHECK(*found == slow_search(file, pattern, from));
  }
}

TEST_CASE("byte search: text, bytes and numbers of the shown tensor are found one after another") {
  TemporaryFolder folder;
  auto opened = open_checkpoint(put_search_model(folder));
  REQUIRE(opened.has_value());
  auto window = bytes_of(**opened, ChunkId{0});
  REQUIRE(window.has_value());
  const std::uint64_t data = window->values_first;
  auto next = [&](const char* text) {
    auto found = bytes_found(**opened, *window, text, nullptr);
    REQUIRE(found.has_value());
    window = std::move(*found);
    return window->at;
  };
  CHECK(next("=1.5") == data + 4);
  CHECK(next("=1.5") == data + 12);
  CHECK(next("=1.5") == data + 4);  // from the beginning again
  CHECK(next("\"shape\"") < data);
  CHECK(next("/00 00 00 c0") == data + 8);
  CHECK(window->wrong.empty());
  const std::uint64_t before = window->at;
  CHECK(next("=7.25") == before);
  REQUIRE(window->wrong.size() == 1);
  CHECK(window->wrong[0].find("does not occur in this file") != std::string::npos);
}

TEST_CASE("byte search: a text that is not a pattern is refused with its reason") {
  BytesWindow window;
  for (const char* text : {"\"\"", "/5", "/xy", "=1.5", "12"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_byte_pattern(text, window).has_value());
  }
  window.dtype = Dtype::kBfloat16;
  window.values_last = 10;
  CHECK(parse_byte_pattern("=1.5", window)->bytes == search_bytes(std::string("\xc0\x3f", 2)));
  CHECK_FALSE(parse_byte_pattern("=x", window).has_value());
  window.dtype = Dtype::kInt16;
  window.big_endian = true;
  CHECK(parse_byte_pattern("=258", window)->bytes == search_bytes(std::string("\x01\x02", 2)));
  CHECK_FALSE(parse_byte_pattern("=70000", window).has_value());
}
