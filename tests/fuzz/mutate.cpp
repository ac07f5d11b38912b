// Mutations that keep what decoders check first, so that the others reach what is behind: the lengths, the directory.
#include <algorithm>
#include <cstring>
#include <random>

#include "backend.h"
#include "input.h"
#include "stream/payload.h"
#include "stream/reference.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace arrcomp::fuzz {
namespace {

class Mutation {
 public:
  Mutation(uint8_t* data, size_t size, size_t most, unsigned seed)
      : data_(data), size_(size), most_(std::min(most, sizeof(InputHeader) + max_payload_bytes)), random_(seed) {}

  size_t run() {
    if (size_ < sizeof(InputHeader)) return LLVMFuzzerMutate(data_, size_, most_);
    switch (below(8)) {
      case 0: LLVMFuzzerMutate(data_, sizeof(InputHeader), sizeof(InputHeader)); break;
      case 1: change_side_data(); break;
      case 2: resize_group(); break;
      case 3: swap_words(); break;
      default: size_ = sizeof(InputHeader) + LLVMFuzzerMutate(payload(), length(), most_ - sizeof(InputHeader)); break;
    }
    if (below(16) > 0) repair();
    return size_;
  }

 private:
  uint8_t* payload() { return data_ + sizeof(InputHeader); }
  size_t length() const { return size_ - sizeof(InputHeader); }
  bool read(Input& input) const { return input.read({data_, size_}); }
  uint64_t below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_); }

  // Where groups begin, the bytes from there on, and one of the groups; false where there are none, or not so many bytes.
  struct Location {
    Plan plan;
    uint8_t* payload;
    uint64_t begin, end;  // of the group, from `payload` on
  };
  bool find_group(Location& location, uint64_t& group) {
    Input input;
    if (!read(input) || !input.has_groups()) return false;
    location.plan = input.plan();
    location.payload = payload() + input.groups_at();
    const uint64_t offset = location.plan.groups_offset();
    if (location.plan.groups == 0 || length() < input.groups_at() + offset) return false;
    group = below(location.plan.groups);
    const uint64_t bytes = length() - input.groups_at();
    const auto end_of = [&](uint64_t g) { return offset + directory_entry(location.plan, location.payload, g); };
    location.begin = group > 0 ? end_of(group - 1) : offset;
    location.end = end_of(group);
    return location.begin < location.end && location.end <= bytes;
  }

  // A legal mode, table, width or count more often than by chance, in the first words of a group.
  void change_side_data() {
    Location location{};
    uint64_t group = 0;
    if (!find_group(location, group)) return;
    const uint64_t at = location.begin + below(std::min<uint64_t>(location.end - location.begin, 64));
    const auto mode = static_cast<uint8_t>(below(3) | below(3) << 2 | below(3) << 4 | below(4) << 6);
    const uint8_t candidates[] = {mode,
                                  static_cast<uint8_t>(below(table_count)),
                                  static_cast<uint8_t>(below(65)),
                                  static_cast<uint8_t>(0x40 | below(54)),
                                  static_cast<uint8_t>(0x80 | below(65)),
                                  static_cast<uint8_t>(below(8) << 5 | below(32)),
                                  0x00,
                                  0xff};
    location.payload[below(2) > 0 ? at : location.begin + below(4)] = candidates[below(std::size(candidates))];
  }

  // Words of four bytes more or fewer in a group: the ends of those behind it move.
  void resize_group() {
    Location location{};
    uint64_t group = 0;
    if (!find_group(location, group)) return;
    uint8_t* const at = location.payload + location.begin + below((location.end - location.begin) / 4 + 1) * 4;
    uint8_t* const end = data_ + size_;
    const uint64_t bytes = 4 * (1 + below(16));
    const bool grows = below(2) > 0;
    if (grows ? size_ + bytes > most_ : bytes > static_cast<uint64_t>(location.payload + location.end - at)) return;
    if (grows) {
      memmove(at + bytes, at, static_cast<size_t>(end - at));
      for (uint64_t i = 0; i < bytes; ++i) at[i] = static_cast<uint8_t>(below(256));
    } else {
      memmove(at, at + bytes, static_cast<size_t>(end - at) - bytes);
    }
    size_ = grows ? size_ + bytes : size_ - bytes;
    for (uint64_t g = group; g < location.plan.groups; ++g) {
      const uint64_t before = directory_entry(location.plan, location.payload, g);
      set_directory_entry(location.plan, location.payload, g, grows ? before + bytes : before - bytes);
    }
  }

  void swap_words() {
    if (length() < 8) return;
    uint8_t* const one = payload() + below(length() / 4) * 4;
    uint8_t* const other = payload() + below(length() / 4) * 4;
    std::swap_ranges(one, one + 4, other == one ? payload() : other);
  }

  void repair() {
    repair_header();
    Input input;
    if (!read(input)) return;
    if (input.has_reference()) return repair_reference(input);
    if (input.has_groups()) return repair_groups(input);
    const BucketPlan plan = input.bucket_plan();
    if (!plan.has_extras) return resize(plan.length);
    resize(std::max<uint64_t>(plan.length, plan.length + (length() - std::min(length(), plan.length)) / 4 * 4));
    uint64_t* const ends = reinterpret_cast<uint64_t*>(payload() + plan.directory_offset);
    set_ends(
        plan.chunks(), (length() - plan.length) / 4, [&](uint64_t chunk) { return get(ends + chunk); },
        [&](uint64_t chunk, uint64_t end) { memcpy(ends + chunk, &end, sizeof end); });
  }

  static uint64_t get(const void* at) {
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return number;
  }

  // Something that a codec takes, no longer than there is room for.
  void repair_header() {
    InputHeader header;
    memcpy(&header, data_, sizeof header);
    header.elements = static_cast<uint16_t>(header.elements % (max_elements + 1));
    for (int attempt = 0; attempt < 200; ++attempt) {
      memcpy(data_, &header, sizeof header);
      Input input;
      if (!read(input)) {
        header.dtype = static_cast<uint8_t>(1 + below(dtype_count - 1));
      } else if (sizeof header + min_length_of(input) <= most_) {
        return;
      } else {
        header.elements /= 2;
      }
    }
  }

  static uint64_t min_length_of(const Input& input) {
    if (input.has_reference()) return reference_header_bytes;
    if (input.has_groups()) return input.groups_at() + input.plan().groups_offset() + 64;
    return input.bucket_plan().length;
  }

  void resize(uint64_t bytes) {
    if (sizeof(InputHeader) + bytes > most_) return;
    if (bytes > length()) memset(payload() + length(), 0, bytes - length());
    size_ = sizeof(InputHeader) + bytes;
  }

  void repair_groups(const Input& input) {
    const Plan plan = input.plan();
    const uint64_t before = input.groups_at(), offset = before + plan.groups_offset();
    resize(plan.groups == 0 ? before + payload_header_bytes : std::max(offset, length() / 4 * 4));
    if (length() < offset) return;
    resize(offset + (length() - offset) / 4 * 4);
    uint8_t* const start = payload() + before;
    PayloadHeader header;
    memcpy(&header, start, sizeof header);
    header = PayloadHeader::of(plan, header.bound);
    if (!header.fits(plan)) header.bound = plan.element.is_quantizable ? 0x1p-10 : 0;
    if (base_delta_of(input.codec) != nullptr) header.bound = 0;
    memcpy(start, &header, sizeof header);
    set_ends(
        plan.groups, (length() - offset) / 4, [&](uint64_t g) { return directory_entry(plan, start, g) / 4; },
        [&](uint64_t g, uint64_t end) { set_directory_entry(plan, start, g, end * 4); });
  }

  // The hash of zeros, fields that are allowed, and lengths that end where the payload does.
  void repair_reference(const Input& input) {
    resize(reference_header_bytes + (length() - std::min<uint64_t>(length(), reference_header_bytes)) / 4 * 4);
    ReferenceHeader header;
    memcpy(&header, payload(), sizeof header);
    const std::vector<uint8_t> zeros(input.count * (input.element.width / 8u));
    header.hash = cpu::content_hash(input.element, zeros.data(), input.count, 1);
    header.way = static_cast<ReferenceWay>(static_cast<uint8_t>(header.way) % 3);
    header.is_list = header.way == ReferenceWay::plain ? 0 : header.is_list & 1;
    memset(header.zeros, 0, sizeof header.zeros);
    if (header.way != ReferenceWay::difference || !input.element.is_quantizable) header.bound = 0;
    if (header.is_list == 0) header.codes_count = 0;
    if (header.way == ReferenceWay::plain) header.exact_count = 0;
    header.codes_count = std::min(header.codes_count, most_listed(input.count));
    header.exact_count = std::min(header.exact_count, most_listed(input.count));
    const bool has[] = {header.is_list == 0 || header.codes_count > 0, header.codes_count > 0, header.exact_count > 0,
                        header.exact_count > 0};
    uint64_t left = length() - reference_header_bytes;
    for (int part = 0; part < reference_parts; ++part) {
      const bool is_last = std::none_of(has + part + 1, std::end(has), [](bool is_there) { return is_there; });
      const uint64_t before = header.part_bytes[part] / 4 * 4;
      header.part_bytes[part] = !has[part] ? 0 : is_last ? left : std::min(before, left);
      left -= std::min(left, round_up(header.part_bytes[part], uint64_t{8}));
    }
    memcpy(payload(), &header, sizeof header);
  }

  // Makes ends ascend to `last`.
  template <class Get, class Set>
  static void set_ends(uint64_t count, uint64_t last, Get get_end, Set set_end) {
    uint64_t before = 0;
    for (uint64_t i = 0; i < count; ++i) {
      before = i + 1 == count ? last : std::clamp(get_end(i), before, last);
      set_end(i, before);
    }
  }

  uint8_t* data_;
  size_t size_, most_;
  std::minstd_rand random_;
};

}  // namespace
}  // namespace arrcomp::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return arrcomp::fuzz::Mutation(data, size, most, seed).run();
}
