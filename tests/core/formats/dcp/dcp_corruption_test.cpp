// Every `.metadata` of the fixtures with many kinds of damage: the result is an error with a place,
// or a checkpoint. Never a crash, a hang, or memory out of proportion.
#include <malloc.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <random>

#include "core/formats/dcp/dcp_support.h"

using namespace shw;
using namespace shw::test;

namespace {

// Both readers must agree, and a checkpoint must be readable without a crash.
void survives(const Bytes& bytes) {
  auto quick = open_bytes(bytes);
  auto slow = open_bytes(bytes, false);
  REQUIRE(quick.has_value() == slow.has_value());
  if (quick) {
    CHECK(describe(**quick) == describe(**slow));
  } else {
    CHECK_FALSE(quick.error().message.empty());
    CHECK(quick.error().place.file == ".metadata");
    CHECK(quick.error().message == slow.error().message);
    CHECK(quick.error().place.offset == slow.error().place.offset);
  }
}

// The largest files and some others, few enough for the whole matrix to take seconds.
std::vector<std::string> some_files() {
  std::vector<std::string> all = metadata_files(), some;
  for (std::size_t i = 0; i < all.size(); i += 6) some.push_back(all[i]);
  return some;
}

}  // namespace

TEST_CASE("metadata that is cut off anywhere is an error that says where") {
  for (const std::string& file : some_files()) {
    CAPTURE(file);
    Bytes whole = read_file(file);
    std::size_t step = 1 + whole.size() / 64;
    for (std::size_t length = 0; length < whole.size(); length += step) {
      CAPTURE(length);
      auto opened = open_bytes(Bytes(whole.begin(), whole.begin() + static_cast<long>(length)));
      REQUIRE_FALSE(opened);
      CHECK(opened.error().kind == ErrorKind::kDamaged);
      CHECK(opened.error().place.offset.has_value());
      CHECK_FALSE(opened.error().advice.empty());
    }
  }
}

TEST_CASE("a reference to what was never stored ends both readers at the same byte") {
  // The number that means "none" inside the reader, and its neighbours.
  for (std::uint32_t number : {0xFFFFFFFFu, 0xFFFFFFFEu, 0x80000000u, 0x7FFFFFFFu}) {
    for (const std::string& file : some_files()) {
      CAPTURE(file);
      const Bytes whole = read_file(file);
      std::size_t step = 1 + whole.size() / 4096;
      for (std::size_t at = 0; at + 1 < whole.size(); ++at) {
        if (whole[at] != std::byte{'h'} || at % step != 0) continue;
        CAPTURE(at);
        const std::uint32_t words[] = {number};
        auto operand = std::as_bytes(std::span(words));
        Bytes bytes(whole.begin(), whole.begin() + static_cast<long>(at));
        bytes.push_back(std::byte{'j'});
        bytes.insert(bytes.end(), operand.begin(), operand.end());
        bytes.insert(bytes.end(), whole.begin() + static_cast<long>(at + 2), whole.end());
        survives(bytes);
      }
    }
  }
}

TEST_CASE("flipped, zeroed and overwritten bytes never do harm") {
  std::mt19937 random(405);
  for (const std::string& file : some_files()) {
    CAPTURE(file);
    const Bytes whole = read_file(file);
    for (int round = 0; round < 60; ++round) {
      CAPTURE(round);
      Bytes bytes = whole;
      std::size_t at = random() % bytes.size();
      std::size_t length = std::min<std::size_t>(bytes.size() - at, 1 + random() % 16);
      switch (round % 4) {
        case 0:
          bytes[at] ^= static_cast<std::byte>(1u << random() % 8);
          break;
        case 1:
          std::fill_n(bytes.begin() + static_cast<long>(at), length, std::byte{0});
          break;
        case 2:
          for (std::size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<std::byte>(random());
          break;
        default:  // a piece of it twice
          bytes.insert(bytes.begin() + static_cast<long>(at), whole.begin() + static_cast<long>(at),
                       whole.begin() + static_cast<long>(at + length));
      }
      survives(bytes);
    }
  }
}

TEST_CASE("lengths and numbers that are made up never do harm") {
  std::mt19937 random(7);
  const Bytes whole = read_file(metadata_files().front());
  const std::int64_t values[] = {-1,
                                 0,
                                 std::int64_t{1} << 31,
                                 (std::int64_t{1} << 32) - 1,
                                 std::int64_t{1} << 62,
                                 std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max()};
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto opcode = static_cast<unsigned char>(whole[at]);
    Bytes bytes = whole;
    if (opcode == 'K' || opcode == 'M') {  // a number becomes a longer one
      std::size_t width = opcode == 'K' ? 1 : 2;
      Bytes number = bytes_of(std::string_view("\x8a\x08", 2));
      std::int64_t value = values[random() % std::size(values)];
      auto raw = std::as_bytes(std::span(&value, 1));
      number.insert(number.end(), raw.begin(), raw.end());
      bytes.erase(bytes.begin() + static_cast<long>(at),
                  bytes.begin() + static_cast<long>(std::min(at + 1 + width, bytes.size())));
      bytes.insert(bytes.begin() + static_cast<long>(at), number.begin(), number.end());
      survives(bytes);
    } else if (opcode == 0x8c && random() % 4 == 0) {  // a string announces eight bytes of length
      Bytes text = bytes_of(std::string_view("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f", 9));
      bytes.insert(bytes.begin() + static_cast<long>(at), text.begin(), text.end());
      survives(bytes);
    }
  }
}

// AddressSanitizer's count, because malloc's own counts stay zero under it.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));  // NOLINT

namespace {

std::size_t bytes_in_use() {
  if (&__sanitizer_get_current_allocated_bytes != nullptr)
    return __sanitizer_get_current_allocated_bytes();
#if __GLIBC_PREREQ(2, 33)
  return ::mallinfo2().uordblks;
#else
  return static_cast<std::size_t>(::mallinfo().uordblks);
#endif
}

}  // namespace

TEST_CASE("a small file cannot take much memory") {
  // A megabyte of references to one string, as names, paths and tuples.
  std::string name(200, 'n');
  std::string pickle =
      "\x80\x02"
      "cm\nMetadata\n)\x81}(U\x13state_dict_metadata}(U\xc8" +
      name + std::string("q\0", 2);
  pickle += "ca\nB\n)\x81";
  for (int i = 0; i < 100000; ++i) pickle += std::string("h\0h\0", 4);
  pickle += "uU\x0cplanner_data}(";
  for (int i = 0; i < 1000; ++i) {
    pickle += std::string("h\0(", 3);
    for (int k = 0; k < 100; ++k) pickle += std::string("h\0", 2);
    pickle += "t";
  }
  pickle += "uub.";
  const std::size_t before = bytes_in_use();
  auto opened = open_bytes(bytes_of(pickle));
  const std::size_t after = bytes_in_use();
  REQUIRE(opened);
  CHECK(after > before);
  CHECK(after - before < 16 * pickle.size() + 1000000);
}

TEST_CASE("a record in the place of a name in planner_data is reported") {
  const std::string before =
      "\x80\x02"
      "cm\nMetadata\n)\x81}(U\x13state_dict_metadata}U\x0cplanner_data}(";
  auto is_told = [&](const std::string& key) {
    auto opened = open_bytes(bytes_of(before + key + ")uub."));
    REQUIRE(opened);
    const auto& findings = (*opened)->opening_findings();
    return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.severity == Severity::kError &&
             finding.cause.find("planner_data") != std::string::npos;
    });
  };
  CHECK(is_told("ctorch.distributed.checkpoint.metadata\nChunkStorageMetadata\n)\x81"));
  CHECK(is_told("]"));
  CHECK_FALSE(is_told("U\x01w"));
}

// One wrong reference in the pickle makes one record of another class, with all its attributes.
TEST_CASE("records of a class that torch does not take there are reported") {
  const Bytes whole =
      read_file(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_two_threads/ckpt/.metadata");
  const std::string text(reinterpret_cast<const char*>(whole.data()), whole.size());
  for (std::string name : {"MetadataIndex", "TensorStorageMetadata", "BytesStorageMetadata"}) {
    CAPTURE(name);
    std::string other = text;
    for (std::size_t at = 0; (at = other.find(name, at)) != std::string::npos; at += name.size())
      other[at + name.size() - 1] = '_';
    REQUIRE(other != text);
    auto opened = open_bytes(bytes_of(other));
    const bool is_told =
        !opened ||
        std::any_of((*opened)->opening_findings().begin(), (*opened)->opening_findings().end(),
                    [](const Finding& finding) { return finding.severity == Severity::kError; });
    CHECK(is_told);
    CHECK(open_bytes(whole).has_value());
  }
}
