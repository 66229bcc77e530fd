// Programs that load the libraries with dlopen() and close them again. This program does not link the libraries.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tutti/tutti.h"

namespace tutti::test {
namespace {

template <typename Function>
Function* look_up(void* library, const char* name) {
  auto* function = reinterpret_cast<Function*>(::dlsym(library, name));
  EXPECT_NE(function, nullptr) << name;
  return function;
}

// A stream has a thread that runs the library's code. Unmapping that code would crash the thread.
TEST(Library, KeepsStreamsRunning_WhenClosed) {
  void* library = ::dlopen(TUTTI_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto create_all = look_up<decltype(tutti_comm_create_all)>(library, "tutti_comm_create_all");
  const auto create_stream = look_up<decltype(tutti_stream_create)>(library, "tutti_stream_create");
  const auto all_reduce = look_up<decltype(tutti_all_reduce)>(library, "tutti_all_reduce");
  const auto destroy_stream = look_up<decltype(tutti_stream_destroy)>(library, "tutti_stream_destroy");
  const auto destroy = look_up<decltype(tutti_comm_destroy)>(library, "tutti_comm_destroy");
  tutti_comm comm = nullptr;
  tutti_stream stream = nullptr;
  ASSERT_EQ(create_all(1, nullptr, &comm), tutti_ok);
  ASSERT_EQ(create_stream(&stream), tutti_ok);
  ASSERT_EQ(::dlclose(library), 0);
  void* still_there = ::dlopen(TUTTI_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(still_there, nullptr) << "dlclose() unmapped the library under the stream's thread";
  const float input = 3;
  float output = 0;
  EXPECT_EQ(all_reduce(&input, &output, 1, tutti_float32, tutti_sum, comm, stream), tutti_ok);
  EXPECT_EQ(destroy_stream(stream), tutti_ok);
  EXPECT_EQ(output, 3);
  EXPECT_EQ(destroy(comm), tutti_ok);
}

// PyTorch and CuPy load NCCL like this.
TEST(NcclLibrary, StaysMapped_WhenClosed) {
  void* library = ::dlopen(TUTTI_NCCL_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  ASSERT_EQ(::dlclose(library), 0);
  EXPECT_NE(::dlopen(TUTTI_NCCL_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
}  // namespace tutti::test
