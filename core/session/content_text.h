// Parsing and printing of commands that show file contents; see commands.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/session/command.h"

namespace shw {

std::optional<Command> parse_show_bytes(std::string_view rest);
std::string print_show_bytes(const Command& command);
std::optional<Command> parse_show_values(std::string_view rest);
std::string print_show_values(const Command& command);
std::optional<Command> parse_save_values(std::string_view rest);
std::string print_save_values(const Command& command);
std::optional<Command> parse_browse(std::string_view rest);
std::string print_browse(const Command& command);
std::optional<Command> parse_tile_values(std::string_view rest);
std::string print_tile_values(const Command& command);
std::optional<Command> parse_go(std::string_view rest);
std::string print_go(const Command& command);

}  // namespace shw
