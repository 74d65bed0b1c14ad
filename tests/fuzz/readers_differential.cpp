// SPDX-License-Identifier: Apache-2.0
// Whatever our strict profile accepts, the formats' own readers accept. Random changes of good
// files are judged by ours; a GGUF file that is accepted goes to gguf_init_from_file of the
// reference's library in this process, a safetensors file into a folder, for the Python package to
// open.
//
// usage: readers_differential LIBGGML_BASE CHANGES SAFETENSORS_DIR
#include "tests/validate/gguf_builder.hpp"
#include "validate/gguf.hpp"
#include "validate/safetensors.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;

namespace {

using Random = std::mt19937_64; // the same on every machine

std::size_t below(Random& random, std::size_t end) {
  return end == 0 ? 0 : static_cast<std::size_t>(random() % end);
}

// One change of the kinds that files meet: bits, bytes, numbers at their edges, pieces moved.
std::string changed(std::string text, Random& random) {
  constexpr unsigned char k_edges[] = {0, 1, 2, 4, 7, 8, 9, 31, 32, 127, 128, 254, 255};
  for (std::size_t changes = 1 + below(random, 3); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = below(random, text.size());
    const std::size_t length = 1 + below(random, std::min<std::size_t>(16, text.size() - at));
    switch (below(random, 6)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ static_cast<char>(1U << below(random, 8)));
      break;
    case 1:
      text[at] = static_cast<char>(k_edges[below(random, std::size(k_edges))]);
      break;
    case 2:
      text[at] = static_cast<char>(text[at] + (below(random, 2) == 0 ? 1 : -1));
      break;
    case 3:
      text.erase(at, length);
      break;
    case 4:
      text.insert(at, text.substr(below(random, text.size() - length + 1), length));
      break;
    default:
      text.resize(text.size() + 8 * below(random, 5), '\0');
      break;
    }
  }
  return text;
}

// The reference's reader of a file that has no name.
class Reference {
public:
  explicit Reference(const char* library) : handle_(dlopen(library, RTLD_NOW)) {
    if (handle_ == nullptr) return;
    init_ = reinterpret_cast<Init>(dlsym(handle_, "gguf_init_from_file"));
    release_ = reinterpret_cast<void (*)(void*)>(dlsym(handle_, "gguf_free"));
    const auto quiet = reinterpret_cast<void (*)(Log, void*)>(dlsym(handle_, "ggml_log_set"));
    if (quiet != nullptr) quiet([](int, const char*, void*) {}, nullptr);
  }
  bool found() const { return init_ != nullptr && release_ != nullptr; }

  bool accepts(const std::string& file) const {
    const int fd = memfd_create("gguf", MFD_CLOEXEC);
    if (fd < 0 || write(fd, file.data(), file.size()) != static_cast<ssize_t>(file.size())) {
      std::perror("memfd");
      std::exit(2);
    }
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    void* gguf = init_(path.c_str(), {true, nullptr});
    close(fd);
    if (gguf != nullptr) release_(gguf);
    return gguf != nullptr;
  }

private:
  struct Params {
    bool no_alloc;
    void** context;
  };
  using Init = void* (*)(const char*, Params);
  using Log = void (*)(int, const char*, void*);
  void* handle_;
  Init init_ = nullptr;
  void (*release_)(void*) = nullptr;
};

std::vector<std::string> good_gguf_files() {
  const GgufWriter w;
  Gguf kinds = good();
  kinds.kvs.push_back(w.kv("x.flags", 9, w.arr(7, 2, std::string("\0\1", 2))));
  kinds.kvs.push_back(w.kv("x.names", 9, w.arr(8, 2, w.str("one") + w.str("two"))));
  kinds.kvs.push_back(w.kv("x.f64", 12, zeros(8)));
  kinds.tis = {w.ti("q", {32, 2}, 2, 0), w.ti("m", {32}, 39, 64), w.ti("k", {256}, 12, 96)};
  kinds.data = zeros(96 + 160);
  return {good().str(), kinds.str()};
}

std::vector<std::string> good_safetensors_files() {
  return {st(object({"\"__metadata__\":{\"format\":\"pt\"}", entry("a", "F32", "[2]", "0", "8"),
                     entry("b", "BF16", "[2,2]", "8", "16")}),
             zeros(16)),
          st(object({entry("a", "I8", "[]", "0", "1"), entry("b", "BOOL", "[3,1]", "1", "4")}),
             zeros(4)),
          st("{}      ", "")};
}

void keep(const std::filesystem::path& folder, std::size_t number, const std::string& file) {
  std::ofstream(folder / ("case-" + std::to_string(number) + ".safetensors"), std::ios::binary)
      << file;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: readers_differential LIBGGML_BASE CHANGES SAFETENSORS_DIR\n");
    return 2;
  }
  const Reference reference(argv[1]);
  if (!reference.found()) {
    std::fprintf(stderr, "no reference library at '%s': %s\n", argv[1], dlerror());
    return 2;
  }
  const std::size_t changes = std::strtoull(argv[2], nullptr, 10);
  const std::filesystem::path folder = argv[3];
  std::filesystem::create_directories(folder);
  Random random(8);
  std::size_t accepted = 0;
  std::size_t wrong = 0;
  for (const std::string& file : good_gguf_files()) {
    for (std::size_t i = 0; i < changes; ++i) {
      const std::string other = i == 0 ? file : changed(file, random);
      if (!check_gguf(bytes_of(other), other.size(), "m.gguf").accepted()) continue;
      ++accepted;
      if (reference.accepts(other)) continue;
      ++wrong;
      const auto path = folder / ("refused-" + std::to_string(wrong) + ".gguf");
      std::ofstream(path, std::ios::binary) << other;
      std::printf("accepted by us, refused by the reference: %s\n", path.c_str());
    }
  }
  std::set<std::string> kept;
  for (const std::string& file : good_safetensors_files()) {
    for (std::size_t i = 0; i < changes; ++i) {
      const std::string other = i == 0 ? file : changed(file, random);
      if (check_safetensors(bytes_of(other), other.size(), "m.safetensors").accepted() &&
          kept.insert(other).second)
        keep(folder, kept.size(), other);
    }
  }
  std::printf("GGUF: %zu accepted, %zu of them refused by the reference; safetensors: %zu kept\n",
              accepted, wrong, kept.size());
  return wrong == 0 && accepted > 1 && kept.size() > 3 ? 0 : 1;
}
