// Files of torch.save in the form before zip, as torch 2.15 writes them (tests/data/torch-2.15).
#include "core/formats/common/legacy_torch_file.h"

#include "core/fixtures.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

Bytes old_file(const std::string& name) {
  return whole_file(torch_file_path(name));
}

OpenedCheckpoint open_old(const Bytes& bytes) {
  return open_checkpoint(memory_directory("ckpt", {{"model.pt", bytes}}));
}

bool is_old_told(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    if (finding.severity != Severity::kInfo || finding.rule == "not-looked-at") return true;
  }
  return false;
}

// The file in front of its storages, and a storage of that many floats.
std::string old_file_with(const std::string& object, const std::string& keys,
                          const std::string& storages) {
  return std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.") +
         as_pickle("M\xe9\x03") + as_pickle("}") + as_pickle(object) + as_pickle(keys) + storages;
}
std::string old_tensor(const std::string& last_word, std::int64_t count = 2) {
  std::string call = tensor_call({.count = count, .sizes = {2}, .strides = {1}, .key = "7"});
  return call.insert(call.find("tQ"), last_word);
}
std::string old_list(const std::string& items) {
  return "](" + items + "e";
}

}  // namespace

TEST_CASE("torch.save before zip: tensors read as the zip form has them") {
  auto truth = read_truth(torch_file_path("truth.safetensors"));
  REQUIRE(truth.has_value());
  for (const std::string name : {"legacy.pt", "legacy_protocol4.pt"}) {
    auto opened = open_checkpoint(torch_file_path(name));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->opening_findings().empty());
    CHECK_FALSE(is_old_told(**opened));
    std::size_t compared = 0;
    for (const auto& [fqn, bytes] : values_by_name(**opened)) {
      CAPTURE(fqn);
      auto expected = truth->find(fqn.starts_with("model.") ? fqn.substr(6) : fqn);
      if (expected == truth->end()) continue;
      CHECK(bytes == expected->second.bytes);
      ++compared;
    }
    CHECK(compared > 10);
  }
}

TEST_CASE("torch.save before zip: a file cut off at any byte is reported") {
  for (const char* name : {"legacy.pt", "legacy_protocol4.pt"}) {
    const Bytes whole_file = old_file(name);
    for (std::size_t length = 0; length < whole_file.size(); length += 5) {
      CAPTURE(length);
      auto opened = open_old({whole_file.begin(), whole_file.begin() + static_cast<long>(length)});
      if (opened)
        CHECK(is_old_told(**opened));
      else
        CHECK_FALSE(opened.error().place.file.empty());
    }
  }
}

TEST_CASE("torch.save before zip: whatever byte is wrong, opening and reading end") {
  const Bytes whole_file = old_file("legacy.pt");
  for (std::size_t at = 0; at < whole_file.size(); ++at) {
    Bytes bent = whole_file;
    bent[at] ^= std::byte{0x41};
    auto opened = open_old(bent);
    if (opened) (void)values_by_name(**opened);
  }
}

TEST_CASE("torch.save before zip: storages that contradict the pickle are refused with the byte") {
  const std::string two(8, '\0');
  std::string count(8, '\0');
  count[0] = 2;
  const std::string object = pickled_dict({{"a", old_tensor("N")}});
  const std::string keys = old_list(pickled_text("7"));
  auto good = open_model(old_file_with(object, keys, count + two));
  REQUIRE_MESSAGE(good.has_value(), good.error().message);
  CHECK(names_of(**good) == "a |");
  count[0] = 3;
  const std::pair<std::string, std::string> cases[] = {
      {old_file_with(object, keys, count + two), "by its own count"},
      {old_file_with(object, old_list(pickled_text("8")), count + two), "no tensor uses"},
      {old_file_with(object, old_list(pickled_text("7") + pickled_text("7")), count + two),
       "twice"},
      {old_file_with(object, "}", count + two), "storage list after the pickle is missing"},
  };
  for (const auto& [bytes, part] : cases) {
    CAPTURE(part);
    auto refused = open_model(bytes);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find(part) != std::string::npos);
    CHECK(refused.error().place.offset.has_value());
  }
}

TEST_CASE("torch.save before zip: a length beyond any file allocates nothing") {
  std::string count(8, '\xff');
  count[7] = '\x1f';
  const std::string object =
      pickled_dict({{"a", old_tensor("N", std::int64_t{0x1fffffffffffffff})}});
  auto opened = open_model(old_file_with(object, old_list(pickled_text("7")), count + "1234"));
  if (opened) CHECK(is_old_told(**opened));
}

TEST_CASE("torch.save before zip: a storage that is a view of another is not checked") {
  std::string count(8, '\0');
  count[0] = 2;
  const std::string object = pickled_dict({{"a", old_tensor("(" + pickled_text("9") + "K\1K\2t")}});
  auto opened =
      open_model(old_file_with(object, old_list(pickled_text("7")), count + std::string(8, '\0')));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(is_old_told(**opened));
}

TEST_CASE("torch.save before zip: the tar archive of the first torch is refused by name") {
  std::string tar("sys_info");
  tar.resize(1024, '\0');
  tar.replace(257, 5, "ustar");
  auto refused = open_model(tar);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("tar archive") != std::string::npos);
  CHECK_FALSE(refused.error().advice.empty());
}
