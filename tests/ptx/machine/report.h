// Text of faults: places in kernels.
#pragma once

#include <string>

#include "tests/ptx/machine/block.h"

namespace tutti::ptx {

// "PTX line 12 `ld.global.u32 ...` (inlined.h:34 < kernel.cu:56)", with the calls that were inlined.
std::string describe_statement(const Source& source, const Statement& statement);
std::string describe_place(const Code& code, std::uint32_t pc);

std::string demangle(std::string_view name);
std::string describe_kernel(const Code& code);  // Without the mangling.

// Appends a line to the file: kernel, device and LaunchCounters, in their order.
void append_counters(const std::string& file, const Running& launch);

// "thread (1,0,0) of block (0,0,0)"
std::string describe_thread(const Block& block, std::uint32_t thread);

// Lists the waits of the threads of a block, one line per place.
std::string describe_waits(const Block& block);

}  // namespace tutti::ptx
