// Parsing and printing of commands that show file contents; see commands.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/session/command.h"

namespace shw {

std::optional<Command> parse_byte_look(std::string_view rest);
std::string print_byte_look(const Command& command);
std::optional<Command> parse_value_look(std::string_view rest);
std::string print_value_look(const Command& command);
std::optional<Command> parse_save_values(std::string_view rest);
std::string print_save_values(const Command& command);
std::optional<Command> parse_browse(std::string_view rest);
std::string print_browse(const Command& command);
std::optional<Command> parse_tile_values(std::string_view rest);
std::string print_tile_values(const Command& command);
std::optional<Command> parse_go(std::string_view rest);
std::string print_go(const Command& command);

}  // namespace shw
