// Names of what model libraries read beside the weights: configurations, tokenizers, code.
#pragma once

#include <string_view>

namespace shw {

// "config.json", "tokenizer.model", "chat_template.jinja", "modeling_own.py": transformers,
// diffusers, PEFT, sentence-transformers, MLX, Mistral's programs. `path`: its last part tells.
bool is_model_companion(std::string_view path);

// "model_index.json", "modules.json" and "router_config.json": what the folders below are parts of.
bool lists_parts(std::string_view path);

}  // namespace shw
