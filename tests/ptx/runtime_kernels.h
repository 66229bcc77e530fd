// Kernels for tests of the CUDA stand-in, by their host stubs.
#pragma once

namespace tutti::test {

const void* spin_kernel();   // (const std::uint32_t* word): waits until the word is not 0.
const void* store_kernel();  // (std::uint32_t* to): to[thread of the grid] = its number + 1.
const void* other_kernel();  // (): nothing.
// (std::uint32_t* to): to[thread of the grid] = a sum of words in local memory. A function that the kernel calls keeps
// the words there. The second kernel has fewer of them.
const void* local_kernel();
const void* smaller_local_kernel();

}  // namespace tutti::test
