// Empty replacement: nccl.h includes this header, but uses no names from it.
#pragma once
