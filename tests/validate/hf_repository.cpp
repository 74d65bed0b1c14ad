// SPDX-License-Identifier: Apache-2.0
#include "hf_repository.hpp"

namespace modeld::test {
namespace {

std::string shard_name(int shard) {
  return "model-0000" + std::to_string(shard) + "-of-00002.safetensors";
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string out = "[";
  for (const std::uint64_t dim : shape)
    out += (out.size() > 1 ? "," : "") + std::to_string(dim);
  return out + "]";
}

} // namespace

HfRepository::HfRepository() {
  tensors["model.embed_tokens.weight"] = {{16, 8}, "F32", 1};
  tensors["model.norm.weight"] = {{8}, "F32", 2};
  tensors["lm_head.weight"] = {{16, 8}, "F32", 2};
  layer(0, 1);
  layer(1, 2);
  config = {{"architectures", "[\"LlamaForCausalLM\"]"},
            {"model_type", "\"llama\""},
            {"hidden_size", "8"},
            {"num_attention_heads", "2"},
            {"num_key_value_heads", "1"},
            {"head_dim", "4"},
            {"num_hidden_layers", "2"},
            {"intermediate_size", "16"},
            {"vocab_size", "16"},
            {"tie_word_embeddings", "false"},
            {"rope_theta", "10000.0"},
            {"bos_token_id", "1"},
            {"eos_token_id", "2"}};
  for (int i = 0; i < 16; ++i)
    vocab.emplace_back("t" + std::to_string(i), i);
}

void HfRepository::layer(int index, int shard) {
  const std::string p = "model.layers." + std::to_string(index) + ".";
  tensors[p + "input_layernorm.weight"] = {{8}, "F32", shard};
  tensors[p + "post_attention_layernorm.weight"] = {{8}, "F32", shard};
  tensors[p + "self_attn.q_proj.weight"] = {{8, 8}, "F32", shard};
  tensors[p + "self_attn.k_proj.weight"] = {{4, 8}, "F32", shard};
  tensors[p + "self_attn.v_proj.weight"] = {{4, 8}, "F32", shard};
  tensors[p + "self_attn.o_proj.weight"] = {{8, 8}, "F32", shard};
  tensors[p + "mlp.gate_proj.weight"] = {{16, 8}, "F32", shard};
  tensors[p + "mlp.up_proj.weight"] = {{16, 8}, "F32", shard};
  tensors[p + "mlp.down_proj.weight"] = {{8, 16}, "F32", shard};
}

Files HfRepository::files() const {
  Files files = other;
  std::string map;
  for (const int shard : {1, 2}) {
    std::string header;
    std::size_t end = 0;
    for (const auto& [name, tensor] : tensors) {
      if (tensor.shard != shard) continue;
      std::size_t bytes = tensor.dtype == "F32" ? 4 : 1;
      for (const std::uint64_t dim : tensor.shape)
        bytes *= static_cast<std::size_t>(dim);
      header +=
          (header.empty() ? "" : ",") + entry(name, tensor.dtype, shape_text(tensor.shape),
                                              std::to_string(end), std::to_string(end + bytes));
      map += (map.empty() ? "\"" : ",\"") + name + "\":\"" + shard_name(shard) + "\"";
      end += bytes;
    }
    header = "{" + header + "}";
    while (header.size() % 8 != 0)
      header += ' ';
    files[shard_name(shard)] = st(header, std::string(end, '\x11'));
  }
  files["model.safetensors.index.json"] = "{\"weight_map\":{" + map + "}}";
  std::string text;
  for (const auto& [key, value] : config)
    text += (text.empty() ? "\"" : ",\"") + key + "\":" + value;
  files["config.json"] = "{" + text + "}";
  std::string tokens;
  for (const auto& [token, id] : vocab)
    tokens += (tokens.empty() ? "\"" : ",\"") + token + "\":" + std::to_string(id);
  std::string extra;
  for (const auto& [token, id] : added)
    extra += std::string(extra.empty() ? "" : ",") + "{\"id\":" + std::to_string(id) +
             ",\"content\":\"" + token + "\"}";
  files.emplace("tokenizer.json", "{\"added_tokens\":[" + extra +
                                      "],\"model\":{\"type\":\"BPE\",\"vocab\":{" + tokens +
                                      "},\"merges\":[]}}");
  files["tokenizer_config.json"] = tokenizer_config;
  return files;
}

} // namespace modeld::test
