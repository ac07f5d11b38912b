#include "cpu/referenced.h"

#include <atomic>
#include <cstring>
#include <vector>

#include "cpu/code_groups.h"
#include "cpu/predicted.h"
#include "cpu/scratch.h"
#include "cpu/select.h"
#include "cpu/threads.h"
#include "stream/prediction_trial.h"

namespace arrcomp::cpu {
namespace {

uint64_t bytes_of(const Element& element, uint64_t count) { return count * (element.width / 8); }

uint64_t elements_of_block(const Element& element) { return hash_block_bytes / (element.width / 8); }

void copy_array(void* to, const void* from, uint64_t bytes, int threads) {
  for_units(ceil_div(bytes, hash_block_bytes), bytes, threads, [&](uint64_t begin, uint64_t end) {
    const uint64_t first = begin * hash_block_bytes, last = std::min(end * hash_block_bytes, bytes);
    memcpy(static_cast<uint8_t*>(to) + first, static_cast<const uint8_t*>(from) + first, last - first);
  });
}

// ---- encoding

// Memory for what is listed.
struct Lists {
  Scratch places, codes, exact_places, exact;
};

// The blocks of an array beside its reference: the reference's hash, and how much of each block is listed.
class Blocks {
 public:
  Blocks(const ReferenceJob& job, int threads)
      : job_(job), size_(elements_of_block(job.element)), counts_(ceil_div(job.count, size_) + 1), threads_(threads) {
    const uint64_t bytes = bytes_of(job.element, job.count);
    std::atomic<uint64_t> hash{0};
    for_units(blocks(), job.count, threads, [&](uint64_t begin, uint64_t end) {
      for (uint64_t b = begin; b < end && !is_interrupted(); ++b) {
        hash += isa().reference.hash(job.reference, bytes, b, b + 1);
        isa().reference.count(job, first(b), last(b) - first(b), counts_[b]);
      }
    });
    hash_ = hash;
    DeltaCounts before{};
    for (DeltaCounts& counts : counts_) {  // become those of all blocks before
      const DeltaCounts own = counts;
      counts = before;
      before.codes += own.codes;
      before.exact += own.exact;
    }
  }

  uint64_t hash() const { return hash_; }
  const DeltaCounts& all() const { return counts_.back(); }

  // Exact elements of all blocks and, where they are asked for, codes.
  Lists lists(bool of_codes) const {
    const uint64_t gap = gap_element_of(job_.count).width / 8, item = job_.element.width / 8;
    const uint64_t code = code_element_of(job_.element, job_.bound, job_.way).width / 8;
    Lists lists{nullptr, nullptr, scratch_memory(all().exact * gap, "places of exact elements"),
                scratch_memory(all().exact * item, "exact elements")};
    if (of_codes) {
      lists.places = scratch_memory(all().codes * gap, "places of codes");
      lists.codes = scratch_memory(all().codes * code, "codes");
    }
    for_units(blocks(), job_.count, threads_, [&](uint64_t begin, uint64_t end) {
      for (uint64_t b = begin; b < end && !is_interrupted(); ++b) {
        const DeltaCounts& before = counts_[b];
        const DeltaLists own{of_codes ? lists.places.get() + before.codes * gap : nullptr,
                             of_codes ? lists.codes.get() + before.codes * code : nullptr,
                             lists.exact_places.get() + before.exact * gap, lists.exact.get() + before.exact * item};
        isa().reference.list(job_, first(b), last(b) - first(b), own);
      }
    });
    return lists;
  }

 private:
  uint64_t blocks() const { return counts_.size() - 1; }
  uint64_t first(uint64_t block) const { return block * size_; }
  uint64_t last(uint64_t block) const { return std::min((block + 1) * size_, job_.count); }

  const ReferenceJob& job_;
  uint64_t size_;  // elements of a block
  std::vector<DeltaCounts> counts_;
  int threads_;
  uint64_t hash_;
};

// Writes the parts of a payload one after the other.
class PartWriter {
 public:
  PartWriter(uint8_t* payload, uint64_t capacity, const GroupSettings& settings, int threads)
      : payload_(payload), capacity_(capacity), settings_(codes_settings(settings)), threads_(threads) {}

  // Encodes a part that make(begin, end, to) makes; false where there is no room for it.
  template <class Make>
  bool add(int part, const Plan& plan, Make make) {
    const uint64_t begin = round_up(end_, 8), most = capacity_of_groups(plan.element, plan.count);
    Scratch own;
    if (begin + most > capacity_) own = scratch_memory(most, "a part of a delta");
    uint8_t* const to = own ? own.get() : payload_ + begin;
    CodeGroupsEncoder encoder(plan, settings_, to + plan.groups_offset(), threads_);
    encoder.add(plan.count, make);
    const uint64_t bytes = encoder.finish(to);
    if (begin + bytes > capacity_) return false;
    if (own) memcpy(payload_ + begin, to, bytes);
    memset(payload_ + end_, 0, begin - end_);
    part_bytes_[part] = bytes;
    end_ = begin + bytes;
    return true;
  }

  // Of codes, or elements, and their places.
  bool add_list(int part, const ReferenceLayout& layout, uint64_t count, const uint8_t* stored, const void* places) {
    const Plan &plan = layout.parts[part], &gaps = layout.parts[part + 1];
    if (plan.count == 0) return true;
    const uint64_t item = plan.element.width / 8;
    const auto copy = [&](uint64_t begin, uint64_t end, uint8_t* to) {
      memcpy(to, stored + begin * item, (end - begin) * item);
    };
    const auto gaps_of = [&](uint64_t begin, uint64_t end, uint8_t* to) {
      isa().reference.gaps(count, places, begin, end, to);
    };
    return add(part, plan, copy) && add(part + 1, gaps, gaps_of);
  }

  // Writes what stands before the parts; returns the payload's length.
  uint64_t finish(ReferenceHeader header) const {
    memcpy(header.part_bytes, part_bytes_, sizeof part_bytes_);
    memcpy(payload_, &header, sizeof header);
    return end_;
  }

 private:
  uint8_t* payload_;
  uint64_t capacity_;
  GroupSettings settings_;
  int threads_;
  uint64_t part_bytes_[reference_parts] = {};
  uint64_t end_ = reference_header_bytes;
};

// Tries the ways on chunks of an array.
class WayTrial {
 public:
  WayTrial(const EncodeJob& job, const ReferenceJob& delta) : job_(job), delta_(delta) {
    const Element codes = code_element_of(delta.element, delta.bound, ReferenceWay::difference);
    codes_ = scratch_memory(bytes_of(codes, chunk_size), "codes");
    scratch_ = scratch_memory(std::max(isa().scratch_bytes(codes), isa().scratch_bytes(delta.element)), "a group");
    out_ = scratch_memory(2 * make_plan(codes, chunk_size, 1).group_capacity() +
                              2 * make_plan(delta.element, chunk_size, 1).group_capacity(),
                          "a trial");
  }

  ReferenceWay best() {
    const uint64_t most = ~uint64_t{0};
    return WaySamples(delta_.count)
        .shortest(bytes_of_samples(ReferenceWay::plain), bytes_of_samples(ReferenceWay::difference),
                  delta_.bound != 0 ? most : bytes_of_samples(ReferenceWay::exclusive_or));
  }

 private:
  uint64_t bytes_of_samples(ReferenceWay way) {
    const WaySamples samples(delta_.count);
    uint64_t bytes = 0;
    for (uint64_t s = 0; s < samples.number; ++s) {
      const uint64_t first = samples.first(s), count = samples.count(s);
      bytes += way == ReferenceWay::plain ? plain_bytes(first, count) : delta_bytes(way, first, count);
    }
    return bytes;
  }

  uint64_t plain_bytes(uint64_t first, uint64_t count) {
    const Plan plan = make_plan(delta_.element, count, 1);
    const auto* const source = static_cast<const uint8_t*>(delta_.source) + bytes_of(delta_.element, first);
    return encode({plan, source, job_.bound, job_.rounded_bits, job_.settings, job_.tables, nullptr, 0});
  }

  uint64_t delta_bytes(ReferenceWay way, uint64_t first, uint64_t count) {
    ReferenceJob delta = delta_;
    delta.way = way;
    DeltaCounts counts{};
    isa().reference.codes(delta, first, count, codes_.get(), counts);
    const Plan plan = make_plan(code_element_of(delta.element, delta.bound, way), count, 1);
    return WaySamples::exact_bytes(delta.element, counts.exact) +
           encode({plan, codes_.get(), 0, 0, codes_settings(job_.settings), job_.tables, nullptr, 0});
  }

  uint64_t encode(const EncodeJob& job) {
    uint32_t size = 0;
    isa().encode_groups(job, 0, 1, out_.get(), &size, scratch_.get());
    return size;
  }

  const EncodeJob& job_;
  const ReferenceJob& delta_;
  Scratch codes_, scratch_, out_;
};

// The payload of the array itself.
uint64_t encode_plain(const EncodeJob& job, uint64_t hash, uint8_t* payload, int threads) {
  ReferenceHeader header{};
  header.hash = hash;
  header.way = ReferenceWay::plain;
  header.part_bytes[codes_part] = encode_job(job, payload + reference_header_bytes, threads);
  memcpy(payload, &header, sizeof header);
  return reference_header_bytes + header.part_bytes[codes_part];
}

// The payload of listed codes; 0 where it has no room.
uint64_t encode_list(const ReferenceJob& job, const Blocks& blocks, uint8_t* payload, uint64_t capacity, int threads) {
  const ReferenceHeader header{job.bound, blocks.hash(), job.way, true, {}, blocks.all().codes, blocks.all().exact, {}};
  const ReferenceLayout layout = ReferenceLayout::of(job.element, header, job.count);
  PartWriter writer(payload, capacity, job.settings, threads);
  const Lists lists = blocks.lists(true);
  const bool fits = writer.add_list(codes_part, layout, job.count, lists.codes.get(), lists.places.get()) &&
                    writer.add_list(exact_part, layout, job.count, lists.exact.get(), lists.exact_places.get());
  return fits ? writer.finish(header) : 0;
}

// The payload of all codes, which are made, counted and encoded in one pass; 0 where they should have been listed, where
// too many elements are exact, or where it has no room.
uint64_t encode_all(const ReferenceJob& job, uint8_t* payload, uint64_t capacity, int threads) {
  const uint64_t bytes = bytes_of(job.element, job.count), block = elements_of_block(job.element);
  std::atomic<uint64_t> hash{0}, codes{0}, exact{0};
  const auto make = [&](uint64_t begin, uint64_t end, uint8_t* to) {
    // Blocks that begin here: what they have more is still in a cache when its codes are made.
    hash += isa().reference.hash(job.reference, bytes, ceil_div(begin, block), ceil_div(end, block));
    DeltaCounts own{};
    isa().reference.codes(job, begin, end - begin, to, own);
    codes += own.codes;
    exact += own.exact;
  };
  ReferenceHeader header{job.bound, 0, job.way, false, {}, 0, 0, {}};
  PartWriter writer(payload, capacity, job.settings, threads);
  const ReferenceLayout all_codes = ReferenceLayout::of(job.element, header, job.count);
  if (!writer.add(codes_part, all_codes.parts[codes_part], make)) return 0;
  if (codes <= most_listed(job.count) || exact > most_exact(job.count)) return 0;
  header.hash = hash;
  header.exact_count = exact;
  if (exact > 0) {
    const ReferenceLayout layout = ReferenceLayout::of(job.element, header, job.count);
    const Lists lists = Blocks(job, threads).lists(false);
    if (!writer.add_list(exact_part, layout, job.count, lists.exact.get(), lists.exact_places.get())) return 0;
  }
  return writer.finish(header);
}

// Whether so many codes are not 0 on samples that all will hardly be listed.
bool seems_dense(const ReferenceJob& job) {
  const WaySamples samples(job.count);
  DeltaCounts counts{};
  uint64_t elements = 0;
  for (uint64_t s = 0; s < samples.number; ++s) {
    isa().reference.count(job, samples.first(s), samples.count(s), counts);
    elements += samples.count(s);
  }
  return counts.codes > most_listed(elements);
}

// ---- decoding

bool decode_part(const Plan& plan, const uint8_t* part, uint64_t bytes, void* target, int threads) {
  return decode_array(plan, lossless_codec, part, bytes, target, threads);
}

// Codes or elements with their places.
class List {
 public:
  // False where it is corrupt. `part` is that of the codes or elements.
  bool read(const ReferencePayload& payload, int part, uint64_t count, int threads) {
    count_ = count;
    entries_ = payload.layout.parts[part].count;
    if (entries_ == 0) return true;
    stored_ = decoded(payload, part, threads);
    gaps_ = decoded(payload, part + 1, threads);
    return stored_ && gaps_ && find_places(threads);
  }

  // Makes the elements at its places.
  void put(const ReferenceJob& job, bool exact, void* target, int threads) const {
    for_units(passed_.size(), entries_, threads, [&](uint64_t begin, uint64_t end) {
      for (uint64_t u = begin; u < end && !is_interrupted(); ++u)
        isa().reference.put(job, exact, gaps_.get(), passed_[u], stored_.get(), u * list_unit, last(u), target);
    });
  }

 private:
  uint64_t last(uint64_t unit) const { return std::min((unit + 1) * list_unit, entries_); }

  static Scratch decoded(const ReferencePayload& payload, int part, int threads) {
    const Plan& plan = payload.layout.parts[part];
    Scratch memory = scratch_memory(bytes_of(plan.element, plan.count), "a list of a delta");
    if (!decode_part(plan, payload.part[part], payload.header.part_bytes[part], memory.get(), threads)) return nullptr;
    return memory;
  }

  // How many elements have been passed before each unit; false where the list leads behind the last element.
  bool find_places(int threads) {
    passed_.resize(ceil_div(entries_, list_unit));
    for_units(passed_.size(), entries_, threads, [&](uint64_t begin, uint64_t end) {
      for (uint64_t u = begin; u < end && !is_interrupted(); ++u)
        passed_[u] = isa().reference.passed(count_, gaps_.get(), u * list_unit, last(u));
    });
    uint64_t before = 0;
    for (uint64_t& passed : passed_) {
      const uint64_t own = passed;
      if (own > count_ - before) return false;
      passed = before;
      before += own;
    }
    return true;
  }

  uint64_t count_ = 0, entries_ = 0;
  Scratch stored_, gaps_;
  std::vector<uint64_t> passed_;
};

bool decode_codes(const ReferencePayload& payload, const ReferenceJob& job, void* target, int threads) {
  const Plan& plan = payload.layout.parts[codes_part];
  Groups groups{};
  if (!groups.read(plan, lossless_codec, payload.part[codes_part], payload.header.part_bytes[codes_part])) return false;
  CodeGroupsDecoder decoder(plan, lossless_codec, groups, threads);
  const bool streaming = target != job.reference && is_streamed(make_plan(job.element, job.count), target);
  return decoder.take(job.count, [&](uint64_t begin, uint64_t end, const uint8_t* codes) {
    isa().reference.apply(job, begin, end - begin, codes, target, streaming);
  });
}

}  // namespace

uint64_t content_hash(const Element& element, const void* array, uint64_t count, int threads) {
  const uint64_t bytes = bytes_of(element, count);
  std::atomic<uint64_t> hash{0};
  for_units(ceil_div(bytes, hash_block_bytes), count, threads_for(count, threads),
            [&](uint64_t begin, uint64_t end) { hash += isa().reference.hash(array, bytes, begin, end); });
  return hash;
}

uint64_t encode_referenced(const EncodeJob& job, const void* reference, uint8_t* payload, int threads) {
  const Element& element = job.plan.element;
  const uint64_t count = job.plan.count;
  const bool are_bits = codes_are_bits(job.settings, element);
  const bool has_codes = count > 0 && (are_bits || is_predictable(element, job.bound));
  ReferenceJob delta{element,
                     job.settings,
                     has_codes && !are_bits ? job.bound : 0,
                     job.rounded_bits,
                     ReferenceWay::difference,
                     count,
                     job.source,
                     reference};
  const uint64_t capacity = reference_header_bytes + capacity_of_groups(element, count);
  if (!has_codes) return encode_plain(job, content_hash(element, reference, count, threads), payload, threads);
  if (seems_dense(delta)) {
    delta.way = WayTrial(job, delta).best();
    if (delta.way == ReferenceWay::plain)
      return encode_plain(job, content_hash(element, reference, count, threads), payload, threads);
    if (const uint64_t length = encode_all(delta, payload, capacity, threads)) return length;
    delta.way = ReferenceWay::difference;
  }
  const Blocks blocks(delta, threads);
  const auto [codes, exact] = blocks.all();
  if (exact <= most_exact(count)) {
    if (codes > 0) delta.way = WayTrial(job, delta).best();
    if (delta.way != ReferenceWay::plain) {
      const uint64_t length = codes <= most_listed(count) ? encode_list(delta, blocks, payload, capacity, threads)
                                                          : encode_all(delta, payload, capacity, threads);
      if (length > 0) return length;
    }
  }
  return encode_plain(job, blocks.hash(), payload, threads);
}

void check_references(const Element& element, std::span<const DecodeTask> arrays, int threads) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const DecodeTask& array = arrays[i];
    const uint64_t length = length_of(array);
    ReferencePayload payload{};
    // What is corrupt is found later.
    if (length > array.limit || payload.read(element, array.payload, length, array.count) != nullptr) continue;
    const uint64_t hash = content_hash(element, array.reference, array.count, threads);
    if (hash != payload.header.hash) throw WrongReference{i, payload.header.hash, hash};
  }
}

const char* referenced_fault(const Element& element, const uint8_t* payload, uint64_t length, uint64_t count) {
  ReferencePayload parts{};
  if (const char* fault = parts.read(element, payload, length, count)) return fault;
  for (int p = 0; p < reference_parts; ++p) {
    if (parts.header.part_bytes[p] == 0) continue;
    const char* fault =
        Groups{}.fault_in(parts.layout.parts[p], lossless_codec, parts.part[p], parts.header.part_bytes[p]);
    if (fault != nullptr) return fault;
  }
  return nullptr;
}

bool decode_referenced(const Element& element, const DecodeTask& array, uint64_t length, int threads) {
  ReferencePayload payload{};
  if (payload.read(element, array.payload, length, array.count) != nullptr) return false;
  const ReferenceHeader& header = payload.header;
  if (header.way == ReferenceWay::plain)
    return decode_part(payload.layout.parts[codes_part], payload.part[codes_part], header.part_bytes[codes_part],
                       array.target, threads);
  const ReferenceJob job{element, {}, header.bound, 0, header.way, array.count, nullptr, array.reference};
  List codes, exact;
  // All that is listed is read before anything is written.
  if (header.is_list != 0 && !codes.read(payload, codes_part, array.count, threads)) return false;
  if (!exact.read(payload, exact_part, array.count, threads)) return false;
  if (header.is_list == 0) {
    if (!decode_codes(payload, job, array.target, threads)) return false;
  } else {
    if (array.target != array.reference)
      copy_array(array.target, array.reference, bytes_of(element, array.count), threads);
    codes.put(job, false, array.target, threads);
  }
  exact.put(job, true, array.target, threads);
  return true;
}

}  // namespace arrcomp::cpu
