// Names of files that model libraries read next to the weights: configurations, tokenizers, code.
#pragma once

#include <string_view>

namespace shw {

// True for "config.json", "tokenizer.model", "chat_template.jinja", "modeling_own.py" and other
// files of transformers, diffusers, PEFT, sentence-transformers, MLX and Mistral's programs. Only
// the last part of `path` matters.
bool is_model_companion(std::string_view path);

// "model_index.json", "modules.json" and "router_config.json": what the folders below are parts of.
bool is_part_list_file(std::string_view path);

}  // namespace shw
