// Runs the CUDA kernels of activation functions on emulated warps and compares them with the CPU: the same values, packed
// steps and gradients, whatever the order in which a warp's lanes run. Prints what differs and a summary; exits with 0 if
// nothing does.
// clang-format off
#include "emulated_inputs.h"  // before what it emulates CUDA for
// clang-format on
#include "backend.h"
#include "cuda/activation_kernels.cuh"

namespace {

struct NamedSteps {
  const char* name;
  std::vector<double> numbers;  // Steps::read

  Steps steps() const {
    Steps steps;
    if (!Steps::read(numbers, steps)) std::abort();
    return steps;
  }
};

// Steps between ascending borders, with levels up and down.
NamedSteps of_levels(const char* name, double rule, int levels) {
  NamedSteps made{name, {rule, static_cast<double>(std::bit_width(static_cast<unsigned>(levels - 1)))}};
  for (int i = 1; i < levels; ++i) made.numbers.push_back((i - (rule == 1 ? 0.0 : levels / 2)) * 4.0 / levels);
  for (int i = 0; i < levels; ++i) made.numbers.push_back(std::sin(i) + 0.25);
  return made;
}

const NamedSteps all_steps[] = {
    of_levels("1 bit", 0, 2),        of_levels("3 levels", 0, 3),          of_levels("3 bits", 0, 8),
    of_levels("5 bits", 0, 32),      of_levels("8 bits", 0, 256),          of_levels("3 bits, even", 1, 8),
    {"inside", {2, 1, -1, 1, 0, 1}}, {"outside", {3, 1, -0.5, 0.5, 0, 1}},
};

const Pattern sources[] = {
    {"numbers around 0", [](uint64_t i, Random& r) { return i % 97 == 5 ? 30 * r.bell() : 3 * r.bell(); }},
    patterns[9],
    patterns[11],
};

struct Case {
  Element element;
  const detail::ActivationName& function;
  const NamedSteps& steps;
  const Pattern& source;
  uint64_t count;
};

Activation activation_of(const detail::ActivationName& function) {
  const double parameters[] = {0.75, 1.5};
  Activation activation;
  if (!find_activation(function.name, {parameters, function.given}, activation)) std::abort();
  return activation;
}

template <class Real>
Bytes activated(const Case& input, const Activation& activation, const Steps& steps, Bytes& packed, const Bytes& source,
                Order order) {
  Bytes values(source.size(), untouched);
  const cuda::ActivateArguments a{
      activation, steps, input.element, {source.data(), values.data(), packed.data(), input.count}};
  launch(ceil_div(input.count, activation_unit), order, input.count, [&] { cuda::activate_kernel<Real>(a); });
  return values;
}

template <class Real>
Bytes multiplied(const Case& input, const Steps& steps, const Bytes& packed, const Bytes& gradients, Order order) {
  Bytes target(gradients.size(), untouched);
  const cuda::StepsArguments a{steps, input.element, {packed.data(), gradients.data(), target.data(), input.count}};
  launch(ceil_div(input.count, activation_unit), order, input.count, [&] { cuda::step_grad_kernel<Real>(a); });
  return target;
}

class Comparison {
 public:
  explicit Comparison(int orders_each) : orders_each_(orders_each) {}

  void check(const Case& input) {
    cuda::visit_real(input.element, [&](auto real) { check_with<decltype(real)>(input); });
  }

  bool finish() const {
    std::printf("%d runs, %d differences\n", runs_, differences_);
    return differences_ == 0 && runs_ > 0;
  }

 private:
  template <class Real>
  void check_with(const Case& input) {
    const Steps steps = input.steps.steps();
    const Activation activation = activation_of(input.function);
    const Bytes source = elements_of(input.element, input.count, input.source);
    Bytes values(source.size()), packed(step_bytes(steps, input.count)), gradient(source.size());
    cpu::activate(activation, steps, input.element, {source.data(), values.data(), packed.data(), input.count}, 1);
    cpu::step_grad(steps, input.element, {packed.data(), values.data(), gradient.data(), input.count}, 1);
    for (int i = 0; i < orders_each_; ++i) {
      const Order order = orders[(runs_ + i) % std::size(orders)];
      Bytes own_packed(packed.size(), untouched);
      report(input, "values", activated<Real>(input, activation, steps, own_packed, source, order), values);
      report(input, "steps", own_packed, packed);
      report(input, "gradients", multiplied<Real>(input, steps, packed, values, order), gradient);
    }
    ++runs_;
  }

  void report(const Case& input, const char* what, const Bytes& got, const Bytes& wanted) {
    if (got == wanted) return;
    ++differences_;
    std::printf("%s of %d bits, '%s', %s, %s, %llu elements: %s\n", what, input.element.width,
                input.function.name.data(), input.steps.name, input.source.name,
                static_cast<unsigned long long>(input.count), difference(got, wanted).c_str());
  }

  int orders_each_, runs_ = 0, differences_ = 0;
};

}  // namespace

// The argument: how many of the three orders each input is run in.
int main(int, char** arguments) {
  Comparison comparison(arguments[1] ? std::atoi(arguments[1]) : 1);
  constexpr uint64_t counts[] = {0, 1, 31, 33, 130, 1024, 1025, 5000};
  size_t turn = 0;
  for (const int id : {10, 11, 12, 13}) {
    for (const auto& function : detail::activation_names)
      for (const Pattern& source : sources) {
        comparison.check({elements[id], function, all_steps[turn % std::size(all_steps)], source, 3 * 1024 + 77});
        ++turn;
      }
    for (const NamedSteps& steps : all_steps)
      for (const uint64_t count : counts)
        comparison.check({elements[id], detail::activation_names[turn++ % 2], steps, sources[turn % 3], count});
  }
  return comparison.finish() ? 0 : 1;
}
