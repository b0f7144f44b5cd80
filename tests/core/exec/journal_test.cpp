#include "core/exec/journal.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/memory_store.h"

using namespace shw;

namespace {

const std::vector<ElementSums> kElements{{{kFingerprintPrime - 1, 7}, 0}, {{0, 0}, 1ull << 40}};

JournalText some_journal() {
  JournalText text;
  text.header = {"out \"of\"\n it",
                 R"({"verb": "repair"})",
                 "program",
                 "laid out",
                 {{"/ckpt", {{"a/b.distcp", EntryKind::kFile, 7, -3, 0}}}, {"/other", {}}}};
  text.files = {{"first", 10, {}}, {"sub/second", 1ull << 40, kElements}};
  return text;
}

// The bytes of a journal that was started with one file and then records the other.
std::string written_journal() {
  MemoryStore store;
  auto folder = store.make_folder("/made");
  REQUIRE(folder.has_value());
  JournalText text = some_journal();
  DurableFile last = text.files.back();
  text.files.pop_back();
  auto journal = Journal::begin(**folder, text);
  REQUIRE(journal.has_value());
  REQUIRE((*journal)->add(last));
  // A line is durable once add() has returned and no other thread writes.
  store.cut_power(MemoryStore::Survives::kNames);
  Bytes bytes = store.get(std::string("/made/") + kJournalFile).value();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<JournalText> read_text(const std::string& text) {
  auto bytes = std::as_bytes(std::span(text));
  return read_journal(*memory_directory("in", {{kJournalFile, {bytes.begin(), bytes.end()}}}));
}

void check_header(const JournalText& read) {
  JournalText wanted = some_journal();
  CHECK(read.header.out == wanted.header.out);
  CHECK(read.header.request == wanted.header.request);
  CHECK(read.header.program == wanted.header.program);
  CHECK(read.header.laid_out == wanted.header.laid_out);
  REQUIRE(read.header.inputs.size() == 2);
  CHECK(read.header.inputs[0].folder == "/ckpt");
  REQUIRE(read.header.inputs[0].files.size() == 1);
  CHECK(read.header.inputs[0].files[0].path == "a/b.distcp");
  CHECK(read.header.inputs[0].files[0].size == 7);
  CHECK(read.header.inputs[0].files[0].modified_ns == -3);
}

}  // namespace

TEST_CASE("a journal says what was noted in it, whatever the names are") {
  auto read = read_text(written_journal());
  REQUIRE(read.has_value());
  check_header(*read);
  REQUIRE(read->files.size() == 2);
  CHECK(read->files[1].path == "sub/second");
  CHECK(read->files[1].size == 1ull << 40);
  CHECK(read->files[1].elements == kElements);
}

TEST_CASE("a journal that ends anywhere is one up to its last whole line, or none at all") {
  std::string text = written_journal();
  std::size_t header = text.find('\n') + 1, first = text.find('\n', header) + 1;
  for (std::size_t length = 0; length <= text.size(); ++length) {
    CAPTURE(length);
    for (std::size_t zeros : {0, 4}) {
      std::string torn = text.substr(0, length) + std::string(zeros, '\0');
      auto read = read_text(torn);
      CHECK(read.has_value() == (length >= header));
      if (!read) continue;
      check_header(*read);
      CHECK(read->files.size() == (length == text.size() ? 2u : length >= first ? 1u : 0u));
    }
  }
}

TEST_CASE("zeros in place of lines that were not durable end a journal") {
  std::string text = written_journal();
  std::size_t header = text.find('\n') + 1, first = text.find('\n', header) + 1;
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(header),
            text.begin() + static_cast<std::ptrdiff_t>(first), '\0');
  auto read = read_text(text);
  REQUIRE(read.has_value());
  CHECK(read->files.empty());
}

TEST_CASE("a journal that anybody edited is refused, or says less") {
  std::string text = written_journal();
  std::size_t header = text.find('\n') + 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    CAPTURE(at);
    for (char wrong : {'0', 'x', '\n', '"'}) {
      std::string edited = text;
      if (edited[at] == wrong) continue;
      edited[at] = wrong;
      auto read = read_text(edited);
      if (at < header) {
        CHECK_FALSE(read.has_value());
      } else if (read) {
        CHECK(read->files.size() < 2);
      }
    }
  }
}

TEST_CASE("lines in good form that say what cannot be are refused") {
  std::string text = written_journal();
  std::size_t header = text.find('\n') + 1;
  auto sealed = [](const std::string& json) {
    return to_hex(hash_of(std::as_bytes(std::span(json)))) + " " + json + "\n";
  };
  for (const char* json :
       {"{}", "[]", "1", "\"path\"", R"({"path": "../up", "size": 1, "elements": []})",
        R"({"path": "/etc/passwd", "size": 1, "elements": []})", R"({"path": "a", "size": 1})",
        R"({"path": "a", "size": -1, "elements": []})",
        R"({"path": "a", "size": 1.5, "elements": []})", R"({"path": "a", "size": 1, "crc32": []})",
        R"({"path": "a", "size": 1, "elements": [7]})",
        R"({"path": "a", "size": 1, "elements": 7})",
        R"({"path": "a", "size": 1, "elements": "00"})",
        R"({"path": "a", "size": 1, "elements": "0000000000000000000000000000000g"})",
        R"({"path": "a", "size": 1, "elements": "ffffffffffffffffffffffffffffffff"})",
        R"({"path": "a", "size": 1, "elements": ["00"]})",
        R"({"path": "a", "size": 1, "elements": ["ffffffffffffffffffffffffffffffff"]})",
        R"({"path": "a", "size": 1, "elements": [[[[[[[[[[[]]]]]]]]]]]})"}) {
    CAPTURE(json);
    CHECK_FALSE(read_text(text.substr(0, header) + sealed(json) + text.substr(header)).has_value());
    CHECK_FALSE(read_text(sealed(json)).has_value());
  }
  auto of_another_version = read_text(sealed(R"({"schema": "shardwright/1", "journal": 1})"));
  REQUIRE_FALSE(of_another_version.has_value());
  CHECK(of_another_version.error().kind == ErrorKind::kUnsupported);
  CHECK_FALSE(read_text("").has_value());
}

TEST_CASE("a journal of another version is refused whatever else it says") {
  const std::string text = written_journal();
  const std::string now = R"("journal":4)";
  const std::size_t at = text.find(now), end = text.find('\n');
  REQUIRE(at < end);
  for (int version = 1; version < 7; ++version) {
    CAPTURE(version);
    std::string json = text.substr(33, end - 33);
    json.replace(at - 33, now.size(), R"("journal":)" + std::to_string(version));
    const std::string hash = to_hex(hash_of(std::as_bytes(std::span(json))));
    auto read = read_text(hash + " " + json + text.substr(end));
    REQUIRE(read.has_value() == (version == 4));
    if (read)
      check_header(*read);
    else
      CHECK(read.error().kind == ErrorKind::kUnsupported);
  }
}

TEST_CASE("the header of a journal is the JSON of a tree that holds all of it") {
  // Pieces may end inside characters, escapes and invalid bytes.
  std::string request;
  for (int i = 0; i < 40'000; ++i)
    request += i % 3 == 0 ? "\"\n" : i % 3 == 1 ? "\xc3\xa4\xf0\x9f\x94\xa5" : "\xff\xc3x";
  for (const std::string& text : {std::string(), std::string("x"), request}) {
    MemoryStore store;
    auto folder = store.make_folder("/made");
    REQUIRE(folder.has_value());
    JournalText wanted = some_journal();
    wanted.files.clear();
    wanted.header.request = text;
    REQUIRE(Journal::begin(**folder, wanted).has_value());
    Bytes bytes = store.get(std::string("/made/") + kJournalFile).value();
    const std::string line(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    auto json = nlohmann::json::parse(line.substr(33));
    CHECK(json.dump(-1, ' ', true) + "\n" == line.substr(33));
    const std::string as_tree =
        nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    CHECK(nlohmann::json(json["request"].get<std::string>()).dump(-1, ' ', true) == as_tree);
    auto read = read_text(line);
    REQUIRE(read.has_value());
    CHECK(read->header.program == wanted.header.program);
  }
}
