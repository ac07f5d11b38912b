"""Training benchmarks: models, data sets, and one module for each measured question."""

from training import (
    activation_tables,
    compressed_activations,
    few_bit,
    gradients,
    local_updates,
    memory,
    optimizer_state,
    randomized_linear,
)

# By their names in results.csv, in the page's order.
SECTIONS = {
    "gradients": gradients.SECTION,
    "local updates": local_updates.SECTION,
    "memory": memory.SECTION,
    "optimizer state": optimizer_state.SECTION,
    "compressed activations": compressed_activations.SECTION,
    "randomized linear": randomized_linear.SECTION,
    "few bit": few_bit.SECTION,
    activation_tables.NAME: activation_tables.SECTION,
}
