// SPDX-License-Identifier: Apache-2.0
#include "validate/sniff.hpp"

#include "validate/escape.hpp"
#include "validate/pickle.hpp"
#include "validate/safetensors.hpp"

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

using namespace std::string_view_literals;
using K = ContentKind;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Magic {
  std::string_view bytes;
  ContentKind kind;
};

// validation.md 0.6, 5.1 and 5.3. The longer magics stand before their own beginnings.
constexpr std::array k_magics{
    Magic{"GGUF"sv, K::gguf},
    Magic{"FUGG"sv, K::gguf_swapped},
    Magic{"lmgg"sv, K::ggml},
    Magic{"fmgg"sv, K::ggmf},
    Magic{"tjgg"sv, K::ggjt},
    Magic{"algg"sv, K::ggla},
    Magic{"nsgg"sv, K::ggml_state},
    Magic{"qsgg"sv, K::ggml_state},
    Magic{"version https://git-lfs.github.com/spec/v1"sv, K::lfs_pointer},
    Magic{"\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19\x2E"sv, K::torch_legacy},
    Magic{"\x1F\x8B"sv, K::gzip},
    Magic{"\xFD\x37\x7A\x58\x5A\x00"sv, K::xz},
    Magic{"\x28\xB5\x2F\xFD"sv, K::zstd},
    Magic{"BZh"sv, K::bzip2},
    Magic{"\x04\x22\x4D\x18"sv, K::lz4},
    Magic{"\x37\x7A\xBC\xAF\x27\x1C"sv, K::seven_zip},
    Magic{"Rar!\x1A\x07"sv, K::rar},
    Magic{"PK\x03\x04"sv, K::zip},
    Magic{"PK\x05\x06"sv, K::zip},
    Magic{"\x93NUMPY"sv, K::numpy},
    Magic{"\x89HDF\r\n\x1A\n"sv, K::hdf5},
    Magic{"MZqFpD"sv, K::llamafile},
    Magic{"\x7F"
          "ELF"sv,
          K::executable},
};

bool starts_like_error_page(std::string_view text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\n' || text[0] == '\r' || text[0] == '\t'))
    text.remove_prefix(1);
  const auto begins = [&](std::string_view with) {
    return text.size() >= with.size() &&
           std::equal(with.begin(), with.end(), text.begin(), [](char a, char b) {
             return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b + ('a' - 'A')) : b);
           });
  };
  return begins("<!doctype") || begins("<html") || begins("entry not found") ||
         begins("invalid username or password") || begins("{\"error\"");
}

/// What a zip archive holds, by the member names that stand in its ends as plain bytes.
ContentKind zip_kind(const FileEnds& ends) {
  const auto holds = [&](std::string_view name) {
    return text_of(ends.head).find(name) != std::string_view::npos ||
           text_of(ends.tail).find(name) != std::string_view::npos;
  };
  if (holds("data.pkl") || holds("constants.pkl")) return K::torch_zip;
  return holds(".npy") ? K::npz : K::zip;
}

ContentKind tar_kind(std::string_view head) {
  return head.starts_with("sys_info") || head.starts_with("pickle") ||
                 head.find("storages") != std::string_view::npos
             ? K::torch_tar
             : K::tar;
}

bool is_zlib(std::string_view head) {
  return head.size() > 2 && head[0] == 'x' &&
         ("\x01\x5E\x9C\xDA"sv).find(head[1]) != std::string_view::npos;
}

bool is_plain_text(std::string_view head) {
  // The head may end inside of a character.
  return !head.empty() && utf8_valid_prefix(head) + 3 >= head.size() &&
         std::all_of(head.begin(), head.end(), [](char c) {
           return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\r' || c == '\t';
         });
}

} // namespace

FileEnds FileEnds::of(std::span<const std::byte> file) {
  constexpr std::size_t k_head = 4096;
  constexpr std::size_t k_tail = 65536;
  const std::size_t tail = std::min(file.size(), k_tail);
  return {file.first(std::min(file.size(), k_head)), file.last(tail), file.size()};
}

ContentKind sniff(const FileEnds& ends) {
  const std::string_view head = text_of(ends.head);
  if (ends.size == 0) return K::empty;
  // First of all: the length of a good header can itself look like the magic of something else
  // (1F 8B 00 ... is 35615, 80 02 00 ... is 640).
  if (framed_as_safetensors(ends)) return K::safetensors;
  for (const Magic& magic : k_magics) {
    if (!head.starts_with(magic.bytes)) continue;
    if (magic.kind == K::zip) return zip_kind(ends);
    // The pointer is a few lines of text; a large file that starts like one is something else.
    if (magic.kind == K::lfs_pointer && ends.size >= 1024) continue;
    return magic.kind;
  }
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return tar_kind(head);
  if (starts_like_error_page(head)) return K::error_page;
  if (head.size() > 1 && head[0] == '\x80' && head[1] >= 0 && head[1] <= 5) return K::pickle;
  if (is_zlib(head)) return K::joblib;
  if (pickle_opcode_that_acts(ends.head)) return K::pickle; // protocols 0 and 1 have no magic
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (head[first] == '{' || head[first] == '[')) return K::json;
  return is_plain_text(head) ? K::text : K::unknown;
}

bool framed_as_safetensors(const FileEnds& ends) {
  if (ends.head.size() < 10) return false;
  const auto length = safetensors_header_length(ends.head.first<8>());
  if (!length || *length < 2) return false;
  const std::string_view json = text_of(ends.head.subspan(8));
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && json[first] == '{';
}

} // namespace modeld::validate
