"""What tests of training share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _process_as_before():
    """Training sets threads and denormals for its process; the tests after it shall not notice."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
