#include "core/formats/component_constraints.h"

#include <array>

namespace shw {

std::span<const ConfigConstraint> constraints_of_diffusers() {
  static constexpr auto kConstraints = std::to_array<ConfigConstraint>({
      {"UNet2DConditionModel", "conv_in.weight", "block_out_channels[0]", 0},
      {"UNet2DConditionModel", "conv_in.weight", "in_channels", 1},
      {"UNet2DConditionModel", "conv_out.weight", "out_channels", 0},
      {"UNet2DConditionModel", "down_blocks", "len(down_block_types)", kCountsList},
      {"UNet2DConditionModel", "up_blocks", "len(up_block_types)", kCountsList},
      {"UNet2DConditionModel", "down_blocks.#.resnets", "layers_per_block", kCountsList},
      {"UNet2DConditionModel", "down_blocks.#.resnets.0.conv1.weight", "block_out_channels[#]", 0},
      {"UNet2DConditionModel", "*.attn2.to_k.weight", "cross_attention_dim", 1},
      {"UNet2DConditionModel", "add_embedding.linear_1.weight",
       "projection_class_embeddings_input_dim", 1},
      {"UNet2DModel", "conv_in.weight", "block_out_channels[0]", 0},
      {"UNet2DModel", "conv_in.weight", "in_channels", 1},
      {"UNet2DModel", "conv_out.weight", "out_channels", 0},
      {"UNet2DModel", "down_blocks", "len(down_block_types)", kCountsList},
      {"UNet2DModel", "up_blocks", "len(up_block_types)", kCountsList},
      {"UNet2DModel", "down_blocks.#.resnets", "layers_per_block", kCountsList},
      {"UNet2DModel", "down_blocks.#.resnets.0.conv1.weight", "block_out_channels[#]", 0},
      {"ControlNetModel", "conv_in.weight", "block_out_channels[0]", 0},
      {"ControlNetModel", "conv_in.weight", "in_channels", 1},
      {"ControlNetModel", "down_blocks", "len(down_block_types)", kCountsList},
      {"ControlNetModel", "down_blocks.#.resnets", "layers_per_block", kCountsList},
      {"ControlNetModel", "down_blocks.#.resnets.0.conv1.weight", "block_out_channels[#]", 0},
      {"ControlNetModel", "controlnet_mid_block.weight", "block_out_channels[-1]", 0},
      {"ControlNetModel", "*.attn2.to_k.weight", "cross_attention_dim", 1},
      {"AutoencoderKL", "encoder.conv_in.weight", "block_out_channels[0]", 0},
      {"AutoencoderKL", "encoder.conv_in.weight", "in_channels", 1},
      {"AutoencoderKL", "encoder.conv_out.weight", "2*latent_channels", 0},
      {"AutoencoderKL", "encoder.down_blocks", "len(down_block_types)", kCountsList},
      {"AutoencoderKL", "encoder.down_blocks.#.resnets", "layers_per_block", kCountsList},
      {"AutoencoderKL", "encoder.down_blocks.#.resnets.0.conv1.weight", "block_out_channels[#]", 0},
      {"AutoencoderKL", "decoder.conv_in.weight", "block_out_channels[-1]", 0},
      {"AutoencoderKL", "decoder.conv_in.weight", "latent_channels", 1},
      {"AutoencoderKL", "decoder.conv_out.weight", "out_channels", 0},
      {"AutoencoderKL", "decoder.up_blocks", "len(up_block_types)", kCountsList},
      {"FluxTransformer2DModel", "x_embedder.weight", "num_attention_heads*attention_head_dim", 0},
      {"FluxTransformer2DModel", "x_embedder.weight", "in_channels", 1},
      {"FluxTransformer2DModel", "context_embedder.weight", "joint_attention_dim", 1},
      {"FluxTransformer2DModel", "time_text_embed.text_embedder.linear_1.weight",
       "pooled_projection_dim", 1},
      {"SD3Transformer2DModel", "pos_embed.proj.weight", "num_attention_heads*attention_head_dim",
       0},
      {"SD3Transformer2DModel", "pos_embed.proj.weight", "in_channels", 1},
      {"SD3Transformer2DModel", "context_embedder.weight", "caption_projection_dim", 0},
      {"SD3Transformer2DModel", "context_embedder.weight", "joint_attention_dim", 1},
      {"SD3Transformer2DModel", "time_text_embed.text_embedder.linear_1.weight",
       "pooled_projection_dim", 1},
      {"*Transformer", "transformer_blocks", "num_layers", kCountsList},
      {"*Transformer", "single_transformer_blocks", "num_single_layers", kCountsList},
      {"WanTransformer3DModel", "blocks", "num_layers", kCountsList},
      {"WanTransformer3DModel", "patch_embedding.weight", "num_attention_heads*attention_head_dim",
       0},
      {"WanTransformer3DModel", "patch_embedding.weight", "in_channels", 1},
  });
  return kConstraints;
}

std::span<const ConfigConstraint> constraints_of_open_clip() {
  static constexpr auto kConstraints = std::to_array<ConfigConstraint>({
      {"", "visual.conv1.weight", "model_cfg.vision_cfg.width", 0},
      {"", "visual.conv1.weight", "model_cfg.vision_cfg.patch_size", 2},
      {"", "visual.proj", "model_cfg.embed_dim", 1},
      {"", "visual.transformer.resblocks", "model_cfg.vision_cfg.layers", kCountsList},
      {"", "token_embedding.weight", "model_cfg.text_cfg.vocab_size", 0},
      {"", "token_embedding.weight", "model_cfg.text_cfg.width", 1},
      {"", "positional_embedding", "model_cfg.text_cfg.context_length", 0},
      {"", "text_projection", "model_cfg.embed_dim", 1},
      {"", "transformer.resblocks", "model_cfg.text_cfg.layers", kCountsList},
      {"", "text.token_embedding.weight", "model_cfg.text_cfg.vocab_size", 0},
      {"", "text.token_embedding.weight", "model_cfg.text_cfg.width", 1},
      {"", "text.transformer.resblocks", "model_cfg.text_cfg.layers", kCountsList},
  });
  return kConstraints;
}

std::span<const ConfigConstraint> constraints_of_meta() {
  static constexpr auto kConstraints = std::to_array<ConfigConstraint>({
      {"", "layers", "n_layers", kCountsList},
      {"", "norm.weight", "dim", 0},
      {"", "tok_embeddings.weight", "vocab_size", 0},
      {"", "layers.#.attention.wq.weight", "n_heads*head_dim", 0},
      {"", "layers.#.attention.wk.weight", "n_kv_heads*head_dim", 0},
  });
  return kConstraints;
}

std::span<const ConfigConstraint> constraints_of_text_encoders() {
  static constexpr auto kConstraints = std::to_array<ConfigConstraint>({
      {"*CLIPTextModel", "*embeddings.token_embedding.weight", "vocab_size", 0},
      {"*CLIPTextModel", "*embeddings.token_embedding.weight", "hidden_size", 1},
      {"*CLIPTextModel", "*.mlp.fc1.weight", "intermediate_size", 0},
      {"*CLIPTextModel", "text_model.encoder.layers", "num_hidden_layers", kCountsList},
      {"*CLIPTextModel", "encoder.layers", "num_hidden_layers", kCountsList},
      {"CLIPTextModelWithProjection", "text_projection.weight", "projection_dim", 0},
      {"T5EncoderModel", "shared.weight", "vocab_size", 0},
      {"T5EncoderModel", "shared.weight", "d_model", 1},
      {"T5EncoderModel", "encoder.block", "num_layers", kCountsList},
  });
  return kConstraints;
}

}  // namespace shw
