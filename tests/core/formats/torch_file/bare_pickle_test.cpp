// Pickles that pickle.dump of Python 3.11 wrote of numpy 2.4 and torch 2.15 (tests/data/pickle).
#include "core/formats/torch_file/bare_pickle.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/data_findings.h"
#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/read_all.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kPickleData = std::string(SHW_TEST_DATA) + "/pickle/";

Bytes bytes_of_pickle(const std::string& path) {
  return whole_file(kPickleData + path);
}

// `beside`: tensors that the truth does not have.
void check_file_reads(const char* file, const char* truth_file, std::size_t beside = 0) {
  CAPTURE(file);
  auto truth = read_truth(kPickleData + truth_file);
  REQUIRE(truth.has_value());
  auto opened = open_checkpoint(kPickleData + file);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->tensor_count() == truth->size() + beside);
  check_elements(**opened, *truth);
  for (const Finding& finding : findings_above_info(**opened)) {
    CAPTURE(finding.cause);
    CHECK(finding.rule == "none of these");
  }
}

}  // namespace

TEST_CASE("bare pickle: arrays of numpy read as they were, in every protocol") {
  for (const char* file : {"numpy_2.pkl", "numpy_3.pkl", "numpy_4.pkl", "numpy_5.pkl"})
    check_file_reads(file, "numpy.safetensors");
}

TEST_CASE("bare pickle: tensors of torch read as they were, and a parameter stays one") {
  check_file_reads("torch_4.pkl", "torch.safetensors");
  auto opened = open_checkpoint(kPickleData + "torch_4.pkl");
  REQUIRE(opened.has_value());
  // pickle.load gives each tensor a storage of its own, a view too.
  CHECK((*opened)->find("view").has_value());
  CHECK((*opened)->requires_grad(*(*opened)->find("p")));
  CHECK((*opened)->objects().size() == 1);
}

TEST_CASE("bare pickle: a module has the names of its state_dict()") {
  auto opened = open_checkpoint(kPickleData + "module.pkl");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->find("0.weight").has_value());
  CHECK((*opened)->find("0.bias").has_value());
}

TEST_CASE("bare pickle: one of several in a folder has to be named, with a command that works") {
  const Bytes pickle = bytes_of_pickle("numpy_4.pkl");
  auto two = open_checkpoint(memory_directory("run", {{"a.pkl", pickle}, {"b c.pkl", pickle}}));
  REQUIRE_FALSE(two.has_value());
  CHECK(two.error().advice.find("`shardwright check run/a.pkl`") != std::string::npos);
  // What training leaves, and pickles without arrays, are not models.
  auto one = open_checkpoint(memory_directory(
      "run",
      {{"a.pkl", pickle}, {"random_states_0.pkl", pickle}, {"vocab.pkl", to_bytes("\x80\x04}.")}}));
  CHECK(one.has_value());
}

TEST_CASE("bare pickle: bytes after the pickle are reported") {
  Bytes pickle = bytes_of_pickle("numpy_4.pkl");
  pickle.push_back(std::byte{7});
  auto opened = open_checkpoint(memory_directory("run", {{"m.pkl", pickle}}));
  REQUIRE(opened.has_value());
  const auto& findings = (*opened)->opening_findings();
  CHECK(std::any_of(findings.begin(), findings.end(),
                    [](const Finding& one) { return one.rule == "not-looked-at"; }));
}

TEST_CASE("bare pickle: every byte wrong and every length are answered") {
  for (const char* file : {"numpy_2.pkl", "numpy_5.pkl", "torch_4.pkl"}) {
    const Bytes whole = bytes_of_pickle(file);
    for (std::size_t at = 0; at < whole.size(); at += 2) {
      Bytes bent = whole;
      bent[at] ^= std::byte{0x81};
      check_is_answered(open_checkpoint(memory_directory("run", {{"m.pkl", std::move(bent)}})));
    }
    for (std::size_t length = 0; length < whole.size(); length += 7)
      check_is_answered(open_checkpoint(memory_directory(
          "run",
          {{"m.pkl", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))}})));
  }
}

TEST_CASE("torch zip: the files of an agent are parts with their names in front") {
  check_file_reads("agent.zip", "agent.safetensors", 5);
}
