// Arrays that numpy 2 wrote (tests/data/npz), intact and with wrong bytes.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/data_findings.h"
#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/npz/npz_open.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/read_all.h"

using namespace shw;
using namespace shw::test;

namespace {

const std::string kNpzData = std::string(SHW_TEST_DATA) + "/npz/";

Bytes npz_bytes(const std::string& path) {
  return whole_file(kNpzData + path);
}

OpenedCheckpoint open_npz(Bytes bytes) {
  return open_checkpoint(memory_directory("memory", {{"m.npz", std::move(bytes)}}));
}

}  // namespace

TEST_CASE("npz: arrays read as numpy saved them, deflated or not") {
  auto truth = read_truth(kNpzData + "truth.safetensors");
  REQUIRE(truth.has_value());
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    CAPTURE(file);
    auto opened = open_checkpoint(kNpzData + file);
    REQUIRE(opened.has_value());
    CHECK((*opened)->tensor_count() == truth->size());
    check_elements(**opened, *truth);
    for (const Finding& finding : findings_above_info(**opened)) {
      CAPTURE(finding.cause);
      CHECK(finding.rule == "none of these");
    }
  }
  auto one = open_checkpoint(kNpzData + "one.npy");
  REQUIRE(one.has_value());
  CHECK(read_tensor(**one, TensorId{0})->bytes == (*truth)["fortran"].bytes);
}

TEST_CASE("npz: arrays that follow each other in one .npy file are read by their number") {
  const Bytes one = npz_bytes("one.npy");
  Bytes two = one;
  two.insert(two.end(), one.begin(), one.end());
  const auto open_npy = [](Bytes bytes) {
    return open_checkpoint(memory_directory("memory", {{"a.npy", std::move(bytes)}}));
  };
  auto opened = open_npy(two);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(findings_above_info(**opened).empty());
  REQUIRE((*opened)->tensor_count() == 2);
  const auto alone = open_npy(one);
  REQUIRE(alone.has_value());
  const Bytes truth = read_tensor(**alone, TensorId{0})->bytes;
  for (const char* name : {"a.0", "a.1"}) {
    CAPTURE(name);
    REQUIRE((*opened)->find(name).has_value());
    CHECK(read_tensor(**opened, *(*opened)->find(name))->bytes == truth);
  }
  // A second array that is cut off, or bytes that are not an array.
  two.pop_back();
  auto cut = open_npy(two);
  REQUIRE(cut.has_value());
  CHECK_FALSE(findings_above_info(**cut).empty());
  Bytes with_rest = one;
  with_rest.push_back(std::byte{1});
  auto rest = open_npy(with_rest);
  REQUIRE(rest.has_value());
  CHECK_FALSE(findings_above_info(**rest).empty());
}

TEST_CASE("npz: the leaves of an Equinox model are read by their number, behind a line of JSON") {
  const Bytes one = npz_bytes("one.npy");
  const auto alone = open_checkpoint(memory_directory("memory", {{"a.npy", one}}));
  REQUIRE(alone.has_value());
  const Bytes truth = read_tensor(**alone, TensorId{0})->bytes;
  for (const std::string line : {"", "{\"width\": 8}\n"}) {
    CAPTURE(line);
    const auto begin = std::as_bytes(std::span(line));
    Bytes file(begin.begin(), begin.end());
    for (int leaf = 0; leaf < 2; ++leaf) file.insert(file.end(), one.begin(), one.end());
    auto opened = open_checkpoint(memory_directory("memory", {{"m.eqx", file}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK(findings_above_info(**opened).empty());
    REQUIRE((*opened)->tensor_count() == 2);
    for (const char* name : {"m.0", "m.1"})
      CHECK(read_tensor(**opened, (*opened)->find(name).value())->bytes == truth);
    file.pop_back();
    opened = open_checkpoint(memory_directory("memory", {{"m.eqx", file}}));
    REQUIRE(opened.has_value());
    CHECK_FALSE(findings_above_info(**opened).empty());
  }
}

TEST_CASE("npz: an array of objects is named and not read") {
  auto opened = open_checkpoint(kNpzData + "with_object.npz");
  REQUIRE(opened.has_value());
  CHECK((*opened)->tensor_count() == 1);
  REQUIRE((*opened)->opening_findings().size() == 1);
  CHECK((*opened)->opening_findings()[0].severity == Severity::kInfo);
}

TEST_CASE("npz: an element that changed is found by the checksum of its record") {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    CAPTURE(file);
    Bytes bytes = npz_bytes(file);
    auto opened = open_checkpoint(memory_directory("memory", {{"m.npz", bytes}}));
    REQUIRE(opened.has_value());
    auto item = (*opened)->item((*opened)->chunks(*(*opened)->find("layers.0.weight"))[0]);
    REQUIRE(item.has_value());
    bytes[static_cast<std::size_t>(item->offset) + 70] ^= std::byte{4};
    auto check = check_npz(memory_source("m.npz", bytes), nullptr);
    CHECK((!check || check->crc == DataCheck::Crc::kDiffers));
  }
}

TEST_CASE("npz: headers that were made up are refused") {
  auto array = [](const std::string& header) {
    return make_zip({{"a.npy", "\x93NUMPY\1" + std::string(1, '\0') + little(header.size(), 2) +
                                   header + std::string(16, '\1')}});
  };
  for (const char* header :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (4294967296, 4294967296, 0), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f4', 'shape': (4,", "{'descr'", ""})
    check_is_answered(open_npz(to_bytes(array(header))));
  auto right = open_checkpoint(memory_directory(
      "memory",
      {{"m.npz", to_bytes(array("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"))}}));
  REQUIRE(right.has_value());
  CHECK((*right)->tensor_count() == 1);
  auto wrong = open_checkpoint(memory_directory(
      "memory",
      {{"m.npz", to_bytes(array("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }"))}}));
  REQUIRE(wrong.has_value());
  CHECK_FALSE(findings_above_info(**wrong).empty());
}

TEST_CASE("npz: every byte wrong and every length of an archive are answered") {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const Bytes whole = npz_bytes(file);
    for (std::size_t at = 0; at < whole.size(); at += 3) {
      Bytes bent = whole;
      bent[at] ^= std::byte{0x81};
      check_is_answered(open_npz(std::move(bent)));
    }
    for (std::size_t length = 0; length < whole.size(); length += 61)
      check_is_answered(
          open_npz(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))));
  }
}
