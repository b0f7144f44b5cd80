// What must be true of a message, beyond its pattern, for a row of the table to be about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/explain/error_message.h"

namespace shw {

// Passed if one of these words fits the message's name.
struct NameTest {
  std::vector<std::string_view> is = {}, begins = {}, ends = {}, contains = {};
  bool negated = false;  // passed if none fits
};

struct MessageTest {
  bool (*passes)(const ErrorMessage&) = nullptr;
  bool negated = false;
};

// All of these must pass.
struct MessageCondition {
  std::vector<NameTest> names = {};
  std::vector<MessageTest> tests = {};
  // The number of this key is one of these.
  std::vector<std::pair<std::string_view, std::vector<std::int64_t>>> numbers = {};
};

bool is_satisfied(const MessageCondition& condition, const ErrorMessage& message);

// The test of a name such as "tensor-name" or "not tensor-name"; nullopt if there is none.
std::optional<MessageTest> message_test(std::string_view name);
std::vector<std::string_view> message_test_names();

// "….weight_scale", "….qzeros": a tensor that decodes a quantised weight.
bool is_scale_name(std::string_view name);

}  // namespace shw
