// The Python module arrcomp._core: checks of arguments, nothing else. Its contract is arrcomp/_core.pyi.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "bindings/arrays.h"
#include "bindings/checks.h"
#include "bindings/long_work.h"
#include "bindings/messages.h"
#include "bindings/xla_ffi.h"
#include "memory.h"

namespace nb = nanobind;

namespace arrcomp {
namespace {

[[noreturn]] void raise_corrupt(const char* fault) {
  raise_ours("CorruptStreamError",
             fault != nullptr ? fault : "payload: not one of this data type and number of elements");
}

void check_size(const char* name, uint64_t given, uint64_t size) {
  if (given == size) return;
  throw nb::value_error(expected(name, std::to_string(size) + " bytes", given).c_str());
}

using Parameters = std::vector<double>;

Codec checked_codec(int codec_id, const Parameters& parameters, const Element& element) {
  Codec codec;
  const std::string message = read_codec(codec_id, parameters, element, codec);
  if (!message.empty()) throw nb::value_error(message.c_str());
  return codec;
}

// (id, name, family, names of parameters) of each codec.
nb::list codec_table() {
  nb::list rows;
  const auto add = [&](int id, const char* name, const char* family, const std::vector<std::string_view>& names) {
    nb::list parameters;
    for (const std::string_view parameter : names) parameters.append(std::string(parameter));
    rows.append(nb::make_tuple(id, name, family, nb::tuple(parameters)));
  };
#define ARRCOMP_ADD_ROW(id, name, Type, text) \
  add(id, text, Bucketed<Type##Settings> ? "bucketed" : "grouped", parameter_names<Type##Settings>());
  ARRCOMP_CODECS(ARRCOMP_ADD_ROW)
#undef ARRCOMP_ADD_ROW
  return rows;
}

// (ids of the data types that a codec takes, whether its rate is fixed for all of them, whether its payloads can be
// added)
nb::tuple codec_properties(int codec_id, const Parameters& parameters) {
  nb::list dtypes;
  bool fixed_rate = true, has_sum = false;
  std::string message;
  for (int id = 1; id < dtype_count; ++id) {
    Codec codec;
    if (message = read_codec(codec_id, parameters, elements[id], codec); !message.empty()) continue;
    dtypes.append(id);
    fixed_rate = fixed_rate && has_fixed_rate(codec, elements[id]);
    has_sum = has_sums(codec);
  }
  if (nb::len(dtypes) == 0) throw nb::value_error(message.c_str());
  return nb::make_tuple(nb::tuple(dtypes), fixed_rate, has_sum);
}

uint64_t capacity_of(int codec_id, const Parameters& parameters, int dtype_id, int64_t elements) {
  const Element& element = element_of(dtype_id);
  return capacity(checked_codec(codec_id, parameters, element), element, checked_count(elements));
}

uint64_t min_length_of(int codec_id, const Parameters& parameters, int dtype_id, int64_t elements) {
  const Element& element = element_of(dtype_id);
  return min_length(checked_codec(codec_id, parameters, element), element, checked_count(elements));
}

nb::list capacity_terms_of(int codec_id, const Parameters& parameters, int dtype_id) {
  const Element& element = element_of(dtype_id);
  nb::list list;
  for (const CapacityTerm& term : capacity_terms(checked_codec(codec_id, parameters, element), element))
    list.append(nb::make_tuple(term.inner, term.multiplier, term.outer, term.bytes));
  return list;
}

const char* fault_of(const Codec& codec, const Element& element, const DecodeTask& array) {
  return cpu::payload_fault(codec, element, array.payload, array.limit, array.count);
}

// Calls decode(array), whether it found no corruption, for `elements` of the array. Decoding reads words: a payload that
// is not aligned is moved.
template <class Decode>
void decode_aligned(const Codec& codec, const Element& element, const DecodeTask& given, uint64_t elements,
                    Decode decode) {
  DecodeTask array = given;
  bool ok = false;
  without_gil(elements, [&] {
    std::unique_ptr<uint64_t[]> copy;
    if (reinterpret_cast<uintptr_t>(array.payload) % 8 != 0) {
      copy = allocated<uint64_t>(array.limit / 8 + 1, "a payload, to be aligned");
      memcpy(copy.get(), array.payload, array.limit);
      array.payload = reinterpret_cast<const uint8_t*>(copy.get());
    }
    ok = decode(array);
  });
  if (!ok) raise_corrupt(fault_of(codec, element, given));
}

void check_payload(int codec_id, const Parameters& parameters, int dtype_id, Bytes payload, int64_t elements) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec(codec_id, parameters, element);
  const DecodeTask array{payload.data(), payload.nbytes(), nullptr, nullptr, checked_count(elements)};
  const char* fault = nullptr;
  {
    const WithoutGil released;
    fault = fault_of(codec, element, array);
  }
  if (fault != nullptr) raise_corrupt(fault);
}

// Elements from `first` on, in so many bytes, of an array with `elements` of them; how many.
uint64_t checked_range(const char* name, const Element& element, int64_t elements, int64_t first, uint64_t nbytes) {
  const uint64_t item = element.width / 8, count = nbytes / item, all = checked_count(elements);
  check_size(name, nbytes, count * item);
  if (first < 0 || count > all || static_cast<uint64_t>(first) > all - count)
    throw nb::value_error(expected("first",
                                   std::to_string(count) + " elements from there on among " + std::to_string(elements),
                                   std::to_string(first))
                              .c_str());
  return count;
}

// A codec whose arrays are decoded in parts too.
Codec checked_codec_with_parts(int codec_id, const Parameters& parameters, const Element& element) {
  const Codec codec = checked_codec(codec_id, parameters, element);
  if (has_reference(codec)) throw nb::value_error("codec_id: expected a codec without a reference, got one with it");
  return codec;
}

nb::list list_of(const std::vector<ByteRange>& spans) {
  nb::list list;
  for (const ByteRange& span : spans) list.append(nb::make_tuple(span.begin, span.end));
  return list;
}

nb::list directory_ranges(int codec_id, const Parameters& parameters, int dtype_id, int64_t nbytes, int64_t elements) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec_with_parts(codec_id, parameters, element);
  return list_of(cpu::directory_ranges(codec, element, checked_count(elements), checked_count(nbytes)));
}

nb::list payload_ranges(int codec_id, const Parameters& parameters, int dtype_id, Bytes payload, int64_t elements,
                        int64_t first, int64_t nbytes) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec_with_parts(codec_id, parameters, element);
  const uint64_t count = checked_range("range", element, elements, first, checked_count(nbytes));
  if (reinterpret_cast<uintptr_t>(payload.data()) % 8 != 0)
    throw nb::value_error("payload: expected an address that is a multiple of 8, got another");
  const DecodeTask array{payload.data(), payload.nbytes(), nullptr, nullptr, checked_count(elements)};
  return list_of(cpu::payload_ranges(codec, element, array, static_cast<uint64_t>(first), count));
}

void decode_range(int codec_id, const Parameters& parameters, int dtype_id, Bytes payload, int64_t elements,
                  int64_t first, WritableBytes out, int threads) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec_with_parts(codec_id, parameters, element);
  const DecodeTask array{payload.data(), payload.nbytes(), nullptr, out.data(), checked_count(elements)};
  const uint64_t count = checked_range("out", element, elements, first, out.nbytes());
  decode_aligned(codec, element, array, count, [&](const DecodeTask& aligned) {
    return cpu::decode_range(codec, element, aligned, static_cast<uint64_t>(first), count, threads);
  });
}

// By address: source, payload, elements.
using EncodeTuples = std::vector<std::tuple<uint64_t, uint64_t, int64_t>>;
// By address: payload, its bytes, its length or 0, target, elements.
using DecodeTuples = std::vector<std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, int64_t>>;

// The arrays' shapes, which predictors need, or none.
using Shapes = std::vector<std::vector<int64_t>>;
// By address: the arrays' references, which codecs with a reference need, or none.
using References = std::vector<uint64_t>;

// Gives tasks their references, which they must have exactly where the codec needs them.
template <class Tasks>
void set_references(Tasks& arrays, const References& references, const Codec& codec) {
  const size_t needed = has_reference(codec) ? arrays.size() : 0;
  if (references.empty() && needed > 0)
    throw nb::value_error("reference: expected an array, as the codec's predictor is 'reference', got none");
  if (references.size() != needed)
    throw nb::value_error(
        expected("references", std::to_string(needed) + " for this codec", references.size()).c_str());
  for (size_t i = 0; i < needed; ++i) arrays[i].reference = pointer<const void>(references[i]);
}

std::vector<EncodeTask> encode_tasks(const EncodeTuples& tuples, const Shapes& shapes = {}) {
  if (!shapes.empty() && shapes.size() != tuples.size())
    throw nb::value_error(
        expected("shapes", std::to_string(tuples.size()) + " shapes, or none", shapes.size()).c_str());
  std::vector<EncodeTask> arrays;
  arrays.reserve(tuples.size());
  for (const auto& [source, payload, elements] : tuples) {
    EncodeTask array{pointer<const void>(source), pointer<uint8_t>(payload), checked_count(elements)};
    if (!shapes.empty()) array.axes = axes_of(shapes[arrays.size()], array.count);
    arrays.push_back(array);
  }
  return arrays;
}

std::vector<DecodeTask> decode_tasks(const DecodeTuples& tuples) {
  std::vector<DecodeTask> arrays;
  arrays.reserve(tuples.size());
  for (const auto& [payload, limit, length, target, elements] : tuples)
    arrays.push_back({pointer<const uint8_t>(payload), limit, pointer<const uint64_t>(length), pointer<void>(target),
                      checked_count(elements)});
  return arrays;
}

void encode_at(int codec_id, const Parameters& parameters, int dtype_id, const EncodeTuples& tuples, uint64_t lengths,
               uint64_t seed, uint64_t seed_at, int threads, const Shapes& shapes, const References& references) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec(codec_id, parameters, element);
  std::vector<EncodeTask> arrays = encode_tasks(tuples, shapes);
  set_references(arrays, references, codec);
  const Seed random{seed, pointer<const uint64_t>(seed_at)};
  without_gil(elements_of(arrays),
              [&] { cpu::encode(codec, element, arrays, pointer<uint64_t>(lengths), random, threads); });
}

int64_t decode_at(int codec_id, const Parameters& parameters, int dtype_id, const DecodeTuples& tuples, int threads,
                  const References& references) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec(codec_id, parameters, element);
  std::vector<DecodeTask> arrays = decode_tasks(tuples);
  set_references(arrays, references, codec);
  size_t corrupt = 0;
  try {
    without_gil(elements_of(arrays), [&] { corrupt = cpu::decode(codec, element, arrays, threads); });
  } catch (const WrongReference& wrong) {
    raise_ours("WrongReferenceError", wrong_reference(wrong, arrays.size()).c_str());
  }
  return corrupt == arrays.size() ? -1 : static_cast<int64_t>(corrupt);
}

uint64_t content_hash(int dtype_id, uint64_t array, int64_t elements, int threads) {
  const Element& element = element_of(dtype_id);
  const uint64_t count = checked_count(elements);
  uint64_t hash = 0;
  without_gil(count, [&] { hash = cpu::content_hash(element, pointer<const void>(array), count, threads); });
  return hash;
}

// By address: payload, its bytes, its length or 0; and the weight.
using SummandTuples = std::vector<std::tuple<uint64_t, uint64_t, uint64_t, double>>;
// A codec's id and its parameters.
using CodecPair = std::pair<int, Parameters>;

// A sum as Python gives it, checked.
struct CheckedSum {
  Element element;
  Codec codec;
  std::vector<Summand> terms;
  uint64_t count;

  CheckedSum(const CodecPair& given, int dtype_id, const SummandTuples& tuples, int64_t elements)
      : element(element_of(dtype_id)),
        codec(checked_codec(given.first, given.second, element)),
        count(checked_count(elements)) {
    if (!has_sums(codec))
      throw nb::value_error(
          expected("codec_id", "a codec whose payloads can be added", std::to_string(given.first)).c_str());
    if (tuples.empty()) throw nb::value_error("terms: expected at least one, got none");
    for (const auto& [payload, limit, length, weight] : tuples)
      terms.push_back({pointer<const uint8_t>(payload), limit, pointer<const uint64_t>(length), weight});
  }

  Sum sum() const { return {codec, element, terms, count}; }

  // The elements of all terms.
  uint64_t elements() const { return terms.size() * count; }

  // The number by which calls report a corrupt payload.
  int64_t index(size_t corrupt) const { return corrupt == terms.size() ? -1 : static_cast<int64_t>(corrupt); }
};

int64_t accumulate_at(const CodecPair& codec, int dtype_id, const SummandTuples& terms, int64_t elements,
                      uint64_t target, int threads) {
  const CheckedSum given(codec, dtype_id, terms, elements);
  size_t corrupt = 0;
  without_gil(given.elements(), [&] {
    corrupt = cpu::accumulate(given.sum(), pointer<const void>(target), pointer<void>(target), threads);
  });
  return given.index(corrupt);
}

int64_t encode_sum_at(const CodecPair& codec, int dtype_id, const SummandTuples& terms, int64_t elements,
                      const CodecPair& result, uint64_t payload, uint64_t length, uint64_t seed, uint64_t seed_at,
                      int threads) {
  const CheckedSum given(codec, dtype_id, terms, elements);
  const Codec result_codec = checked_codec(result.first, result.second, given.element);
  const Seed random{seed, pointer<const uint64_t>(seed_at)};
  size_t corrupt = 0;
  without_gil(given.elements(), [&] {
    corrupt = cpu::encode_sum(given.sum(), result_codec, pointer<uint8_t>(payload), pointer<uint64_t>(length), random,
                              threads);
  });
  return given.index(corrupt);
}

nb::list instruction_sets() {
  nb::list names;
  for (const char* const* name = cpu::instruction_sets(); *name; ++name) names.append(*name);
  return names;
}

void use_instruction_set(const std::string& name) {
  if (cpu::use_instruction_set(name.c_str())) return;
  const std::string known = nb::repr(instruction_sets()).c_str();
  throw nb::value_error(expected("name", "one of " + known, "'" + name + "'").c_str());
}

std::vector<uint64_t> checked_counts(const std::vector<int64_t>& elements) {
  std::vector<uint64_t> counts;
  for (const int64_t count : elements) counts.push_back(checked_count(count));
  return counts;
}

uint64_t cuda_encode_scratch(int codec_id, const Parameters& parameters, int dtype_id,
                             const std::vector<int64_t>& elements, int device) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec(codec_id, parameters, element);
  uint64_t bytes = 0;
  check_cuda(cuda::encode_scratch_bytes(codec, element, checked_counts(elements), device, bytes));
  return bytes;
}

uint64_t cuda_decode_scratch(int codec_id, const Parameters& parameters, int dtype_id,
                             const std::vector<int64_t>& elements) {
  const Element& element = element_of(dtype_id);
  return cuda::decode_scratch_bytes(checked_codec(codec_id, parameters, element), element, checked_counts(elements));
}

void cuda_encode(int codec_id, const Parameters& parameters, int dtype_id, const EncodeTuples& arrays, uint64_t lengths,
                 uint64_t seed, uint64_t seed_at, const Shapes& shapes, const References& references, uint64_t scratch,
                 uint64_t stream, int device) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec(codec_id, parameters, element);
  std::vector<EncodeTask> tasks = encode_tasks(arrays, shapes);
  set_references(tasks, references, codec);
  check_cuda(cuda::encode(codec, element, tasks, pointer<uint64_t>(lengths), {seed, pointer<const uint64_t>(seed_at)},
                          pointer<void>(scratch), pointer<void>(stream), device));
}

void cuda_decode(int codec_id, const Parameters& parameters, int dtype_id, const DecodeTuples& arrays, uint64_t status,
                 const References& references, uint64_t scratch, uint64_t stream, int device) {
  const Element& element = element_of(dtype_id);
  const Codec codec = checked_codec(codec_id, parameters, element);
  std::vector<DecodeTask> tasks = decode_tasks(arrays);
  set_references(tasks, references, codec);
  check_cuda(cuda::decode(codec, element, tasks, pointer<uint32_t>(status), pointer<void>(scratch),
                          pointer<void>(stream), device));
}

void cuda_accumulate(const CodecPair& codec, int dtype_id, const SummandTuples& terms, int64_t elements,
                     uint64_t target, uint64_t status, uint64_t scratch, uint64_t stream, int device) {
  const CheckedSum given(codec, dtype_id, terms, elements);
  check_cuda(cuda::accumulate(given.sum(), pointer<const void>(target), pointer<void>(target),
                              pointer<uint32_t>(status), pointer<void>(scratch), pointer<void>(stream), device));
}

uint64_t cuda_encode_sum_scratch(const CodecPair& codec, int dtype_id, size_t terms, int64_t elements,
                                 const CodecPair& result, int device) {
  const Element& element = element_of(dtype_id);
  uint64_t bytes = 0;
  check_cuda(cuda::encode_sum_scratch_bytes(checked_codec(codec.first, codec.second, element),
                                            checked_codec(result.first, result.second, element), element, terms,
                                            checked_count(elements), device, bytes));
  return bytes;
}

void cuda_encode_sum(const CodecPair& codec, int dtype_id, const SummandTuples& terms, int64_t elements,
                     const CodecPair& result, uint64_t payload, uint64_t length, uint64_t seed, uint64_t seed_at,
                     uint64_t status, uint64_t scratch, uint64_t stream, int device) {
  const CheckedSum given(codec, dtype_id, terms, elements);
  check_cuda(cuda::encode_sum(given.sum(), checked_codec(result.first, result.second, given.element),
                              pointer<uint8_t>(payload), pointer<uint64_t>(length),
                              {seed, pointer<const uint64_t>(seed_at)}, pointer<uint32_t>(status),
                              pointer<void>(scratch), pointer<void>(stream), device));
}

uint64_t address_of(nb::handle buffer) {
  Py_buffer view;
  if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const auto address = reinterpret_cast<uintptr_t>(view.buf);
  PyBuffer_Release(&view);
  return address;
}

}  // namespace

NB_MODULE(_core, m) {
  using nb::arg;
  m.def("address", &address_of, arg("buffer"));
  m.def("codec_table", &codec_table);
  m.def("codec_properties", &codec_properties, arg("codec_id"), arg("parameters"));
  m.def("capacity", &capacity_of, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("elements"));
  m.def("min_length", &min_length_of, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("elements"));
  m.def("capacity_terms", &capacity_terms_of, arg("codec_id"), arg("parameters"), arg("dtype_id"));
  m.def("check_payload", &check_payload, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("payload"),
        arg("elements"));
  m.def("directory_ranges", &directory_ranges, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("nbytes"),
        arg("elements"));
  m.def("payload_ranges", &payload_ranges, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("payload"),
        arg("elements"), arg("first"), arg("nbytes"));
  m.def("decode_range", &decode_range, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("payload"),
        arg("elements"), arg("first"), arg("out"), arg("threads"));
  m.def("encode_at", &encode_at, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("arrays"), arg("lengths"),
        arg("seed"), arg("seed_at"), arg("threads"), arg("shapes"), arg("references"));
  m.def("decode_at", &decode_at, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("arrays"), arg("threads"),
        arg("references"));
  m.def("content_hash", &content_hash, arg("dtype_id"), arg("array"), arg("elements"), arg("threads"));
  m.def("accumulate_at", &accumulate_at, arg("codec"), arg("dtype_id"), arg("terms"), arg("elements"), arg("target"),
        arg("threads"));
  m.def("encode_sum_at", &encode_sum_at, arg("codec"), arg("dtype_id"), arg("terms"), arg("elements"), arg("result"),
        arg("payload"), arg("length"), arg("seed"), arg("seed_at"), arg("threads"));
  m.def("import_dlpack", &import_dlpack, arg("x"));
  m.def("instruction_set", &cpu::instruction_set);
  m.def("instruction_sets", &instruction_sets);
  m.def("missing_instruction_set", &cpu::missing_instruction_set);
  m.def("use_instruction_set", &use_instruction_set, arg("name"));
  m.def("available_threads", &cpu::available_threads);
  add_activations(m);
  m.def("xla_handlers", &xla_handlers);
  m.def("cuda_built", &cuda::is_built);
  m.def("cuda_device_count", &cuda::device_count);
  m.def("cuda_encode_scratch", &cuda_encode_scratch, arg("codec_id"), arg("parameters"), arg("dtype_id"),
        arg("elements"), arg("device"));
  m.def("cuda_encode", &cuda_encode, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("arrays"), arg("lengths"),
        arg("seed"), arg("seed_at"), arg("shapes"), arg("references"), arg("scratch"), arg("stream"), arg("device"));
  m.def("cuda_decode_scratch", &cuda_decode_scratch, arg("codec_id"), arg("parameters"), arg("dtype_id"),
        arg("elements"));
  m.def("cuda_decode", &cuda_decode, arg("codec_id"), arg("parameters"), arg("dtype_id"), arg("arrays"), arg("status"),
        arg("references"), arg("scratch"), arg("stream"), arg("device"));
  m.def("cuda_accumulate_scratch", &cuda::accumulate_scratch_bytes, arg("terms"));
  m.def("cuda_accumulate", &cuda_accumulate, arg("codec"), arg("dtype_id"), arg("terms"), arg("elements"),
        arg("target"), arg("status"), arg("scratch"), arg("stream"), arg("device"));
  m.def("cuda_encode_sum_scratch", &cuda_encode_sum_scratch, arg("codec"), arg("dtype_id"), arg("terms"),
        arg("elements"), arg("result"), arg("device"));
  m.def("cuda_encode_sum", &cuda_encode_sum, arg("codec"), arg("dtype_id"), arg("terms"), arg("elements"),
        arg("result"), arg("payload"), arg("length"), arg("seed"), arg("seed_at"), arg("status"), arg("scratch"),
        arg("stream"), arg("device"));
}

}  // namespace arrcomp
