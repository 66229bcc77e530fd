#include "src/base/handle_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>
#include <vector>

namespace tutti::test {
namespace {

// Tables are static, so each test has its own type of object.
template <int>
struct Object {};
template <int number>
using Table = HandleTable<std::shared_ptr<Object<number>>, HandleKind::event>;

template <int number>
void* made() {
  return insert(Table<number>::instance(), std::make_shared<Object<number>>()).value();
}

TEST(HandleTable, RejectsStaleHandle_WhenEntryIsReused) {
  auto& table = Table<0>::instance();
  const void* const stale = made<0>();
  EXPECT_NE(held(table, stale), nullptr);
  EXPECT_NE(table.remove(stale), nullptr);
  for (std::uint32_t i = 0; i < table.kEntries; ++i) (void)made<0>();  // One of them is in the entry of `stale`.
  EXPECT_EQ(held(table, stale), nullptr);
  EXPECT_EQ(table.remove(stale), nullptr);
  EXPECT_EQ(insert(table, std::make_shared<Object<0>>()).status().code(), Code::invalid_usage) << "the table is full";
}

TEST(HandleTable, KeepsObjectOfHolder_AfterRemove) {
  auto& table = Table<1>::instance();
  const void* const handle = made<1>();
  const std::shared_ptr<Object<1>> holder = held(table, handle);
  EXPECT_EQ(holder.use_count(), 2);
  table.remove(handle);
  EXPECT_EQ(holder.use_count(), 1);
}

#ifndef __SANITIZE_THREAD__  // It supports no threads in the child of a process with threads.
TEST(HandleTable, WorksInChild_WhenOtherThreadVisitsAtFork) {
  auto& table = Table<2>::instance();
  std::vector<const void*> handles(32);
  for (const void*& handle : handles) handle = made<2>();
  std::promise<void> visiting, forked;
  std::thread other([&] {
    table.visit(handles[0], [&](auto&) {
      visiting.set_value();
      forked.get_future().wait();
    });
  });
  visiting.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // Ends a child that waits for the other thread.
    for (const void* handle : handles)
      if (held(table, handle) != nullptr) ::_exit(1);
    for (const void*& handle : handles) handle = made<2>();
    for (const void* handle : handles)
      if (held(table, handle) == nullptr || table.remove(handle) == nullptr) ::_exit(2);
    ::_exit(0);
  }
  forked.set_value();
  other.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(held(table, handles[0]), nullptr);
}
#endif

}  // namespace
}  // namespace tutti::test
