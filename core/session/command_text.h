// Parsing and printing of commands; see commands.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/session/command.h"

namespace shw {

std::optional<Command> parse_open(std::string_view rest);
std::optional<Command> parse_check(std::string_view rest);
std::optional<Command> parse_given_mesh(std::string_view rest);
std::optional<Command> parse_plan(std::string_view rest);
std::optional<Command> parse_repair(std::string_view rest);
std::optional<Command> parse_select(std::string_view rest);
std::optional<Command> parse_tile(std::string_view rest);
std::optional<Command> parse_finding(std::string_view rest);
std::optional<Command> parse_filter(std::string_view rest);
std::optional<Command> parse_sort(std::string_view rest);

// Text of comparisons; defined in compare_run.cpp.
std::optional<Command> parse_compare(std::string_view rest);
std::optional<Command> parse_difference(std::string_view rest);
std::optional<Command> parse_learn(std::string_view rest);
std::string print_learn(const Command& command);
std::string print_compare(const Command& command);
std::string print_difference(const Command& command);

// Text of plan commands; defined in plan_text.cpp.
std::optional<Command> parse_step(std::string_view rest);
std::optional<Command> parse_edit_plan(std::string_view rest);
std::optional<Command> parse_save_plan(std::string_view rest);
std::optional<Command> parse_load_plan(std::string_view rest);
std::optional<Command> parse_write_as(std::string_view rest);
std::optional<Command> parse_target(std::string_view rest);
std::optional<Command> parse_resume(std::string_view rest);
std::optional<Command> parse_roll_back(std::string_view rest);
std::string print_resume(const Command& command);
std::string print_roll_back(const Command& command);
std::string print_step(const Command& command);
std::string print_edit_plan(const Command& command);
std::string print_save_plan(const Command& command);
std::string print_load_plan(const Command& command);
std::string print_write_as(const Command& command);
std::string print_target(const Command& command);

std::string print_open(const Command& command);
std::string print_check(const Command& command);
std::string print_mesh(const Command& command);
std::string print_plan(const Command& command);
std::string print_repair(const Command& command);
std::string print_select(const Command& command);
std::string print_tile(const Command& command);
std::string print_finding(const Command& command);
std::string print_filter(const Command& command);
std::string print_sort(const Command& command);

}  // namespace shw
